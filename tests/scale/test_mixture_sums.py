"""A step of EM of mixtures over all rows: as textbook formulas in plain NumPy have it, the same bits in any order."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import otimpute
from otimpute import AutoImputer
from otimpute.baselines import GaussianMixtureImputer
from otimpute.estimator import scan_fit
from otimpute.gaussian import MixtureModel
from otimpute.streams import WholeSums

Rows = np.ndarray


def some_mixture(n_components: int, d: int) -> MixtureModel:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_components, d, d)) + 1.5 * np.eye(d)
    mixing[:, 0] *= 0.05  # columns whose variances are far apart
    share = rng.uniform(0.2, 1, size=n_components)
    share[-1] = 1e-9
    mean = 1.5 * rng.normal(size=(n_components, d))
    mean[-1] += 10  # of a component that no row is near
    return MixtureModel(share / share.sum(), mean, mixing @ mixing.transpose(0, 2, 1) / (d + 2))


def some_rows(model: MixtureModel, n: int, n_far: int = 3) -> tuple[Rows, Rows]:
    """Rows of the mixture, some of them moved away from it; one without an observed value, one without a hole."""
    rng, d = np.random.default_rng(1), model.mean.shape[1]
    missing = rng.random((n, d)) < rng.choice([0.2, 0.5, 0.8], size=(n, 1))
    missing[0], missing[1] = True, False
    roots = np.linalg.cholesky(model.covariance)
    belongs = rng.choice(len(model.share), size=n, p=model.share)
    values = model.mean[belongs] + np.einsum("nab,nb->na", roots[belongs], rng.normal(size=(n, d)))
    values[missing] = np.nan
    values[2 : 2 + n_far] += 20
    return values, missing


def step_of_em(model: MixtureModel, values: Rows, missing: Rows, prior: float) -> MixtureModel:
    """Row by row, with the imaginary rows of `fit_mixture`: one at the table's mean, ``prior`` of the pooled covariance."""
    (n, d), n_components = values.shape, len(model.share)
    mass, total, square = np.zeros(n_components), np.zeros((n_components, d)), np.zeros((n_components, d, d))
    for row, hole in zip(values, missing, strict=True):
        seen, log_parts, completed, spreads = ~hole, [], [], []
        for share, mean, covariance in zip(model.share, model.mean, model.covariance, strict=True):
            own = multivariate_normal.logpdf(row[seen], mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else 0.0
            slope = covariance[np.ix_(hole, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
            log_parts.append(np.log(share) + own)
            completed.append(np.array(row))
            completed[-1][hole] = mean[hole] + slope @ (row[seen] - mean[seen])
            spreads.append(np.zeros((d, d)))
            spreads[-1][np.ix_(hole, hole)] = covariance[np.ix_(hole, hole)] - slope @ covariance[np.ix_(seen, hole)]
        belongs = np.exp(np.array(log_parts) - logsumexp(log_parts))
        mass += belongs
        total += belongs[:, None] * completed
        square += belongs[:, None, None] * (np.einsum("ka,kb->kab", completed, completed) + spreads)
    mean = (total + total.sum(axis=0) / n) / (mass[:, None] + 1)
    products = np.einsum("ka,kb->kab", mean, total)
    scatter = square - products - products.transpose(0, 2, 1) + mass[:, None, None] * np.einsum("ka,kb->kab", mean, mean)
    pooled = scatter.sum(axis=0) / n + 1e-4 * np.eye(d)
    pooled = 0.97 * pooled + 0.03 * np.diag(np.diag(pooled))
    covariance = (scatter + prior * pooled) / (mass[:, None, None] + prior)
    return MixtureModel((mass + 1) / (n + n_components), mean, covariance)


@pytest.mark.parametrize(("n_components", "d"), [(2, 1), (3, 4), (9, 6)])
@pytest.mark.parametrize(("prior_rows", "n_far", "atol"), [(None, 0, 1e-4), (0.5, 0, 1e-4), (None, 3, 5e-3)])
def test_a_step_over_all_rows_is_a_step_of_em(
    n_components: int, d: int, prior_rows: float | None, n_far: int, atol: float
) -> None:
    model = some_mixture(n_components, d)
    values, missing = some_rows(model, 300, n_far)
    expected = step_of_em(model, values, missing, d + 2 if prior_rows is None else prior_rows)
    whole = model.expect(values, missing)
    found = model.improved(whole, len(values), prior_rows)
    np.testing.assert_allclose(found.share, expected.share, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=atol)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=0, atol=atol)


def test_sums_over_rows_do_not_depend_on_their_order_or_company() -> None:
    model = some_mixture(9, 5)
    values, missing = some_rows(model, 40_000)  # several times as many as are added in float64
    whole = model.expect(values, missing)
    assert all(each.any() for each in whole)  # rows near components, rows far from them, holes
    order = np.random.default_rng(0).permutation(len(values))
    parts = [model.expect(values[rows], missing[rows]) for rows in np.split(order, [1, 8, 9000])]
    np.testing.assert_array_equal(sum(parts[1:], parts[0]), whole)


def test_sums_of_whole_numbers_have_as_many_digits_as_they_need() -> None:
    numbers = np.array([2**53, -(2**53), -1, 2**32 - 1])
    sums = WholeSums.empty(4)
    for _ in range(3):
        sums.add(numbers)
    for _ in range(30):  # twice as much each time
        sums.merge(WholeSums.from_data(sums.as_data(), 4))
    assert sums.totals().tolist() == [int(each) * 3 * 2**30 for each in numbers]


# --- Fits to tables that are read in batches ---------------------------------------------------------------------------


def curved(n: int = 5000) -> pa.Table:
    """A parabola, and a noisy copy of its argument."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.7, 1.7, size=n)
    X = np.column_stack([x, x**2 - 1, x + 0.3 * rng.normal(size=n)])
    return pa.table({f"c{k}": pa.array(X[:, k], mask=rng.random(n) < 0.25) for k in range(3)})


def write(table: pa.Table, folder: Path, n_parts: int) -> ds.Dataset:
    folder.mkdir()
    for k, (begin, end) in enumerate(pairwise(np.linspace(0, len(table), n_parts + 1).astype(int).tolist())):
        pq.write_table(table.slice(begin, end - begin), folder / f"{k}.parquet", row_group_size=700)
    return ds.dataset(folder)


MAKE: dict[str, Any] = {
    "mixtures": lambda: GaussianMixtureImputer(n_components=(3, 9), prior_rows=2, max_iter=3, random_state=0),
    "auto": lambda: AutoImputer(["gaussian_em", "gaussian_mixture"], n_splits=1, random_state=0),
}
SCAN: dict[str, Any] = {"sample_rows": 400, "min_observed": 30}


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_fit_is_the_same_to_the_bit_for_any_partitioning_and_order(name: str, tmp_path: Path) -> None:
    table = curved()
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    sources = [write(table, tmp_path / "one", 1), write(table, tmp_path / "two", 2), write(shuffled, tmp_path / "seven", 7)]
    first, *others = [MAKE[name]().fit(otimpute.scan(X, **SCAN)).to_bytes() for X in sources]
    assert others == [first, first]


def mixtures_of(imputer: Any) -> list[MixtureModel]:
    model = imputer.model_
    if isinstance(imputer, AutoImputer):
        model = model.panel.models[model.panel.names.index("gaussian_mixture")]
    return model.method.mixtures


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_round_is_a_step_of_em_over_the_whole_table(name: str) -> None:
    table = curved(600)
    before, after = (
        MAKE[name]().fit(otimpute.scan(pl.from_arrow(table).lazy(), rounds=rounds, sample_rows=200, min_observed=1))
        for rounds in (0, 1)
    )
    values, missing = after.training_table_.arrays_of(after.read_table(table))
    model = (
        after.model_ if name == "mixtures" else after.model_.panel.models[after.model_.panel.names.index("gaussian_mixture")]
    )
    seen = values if name == "mixtures" else after.model_.columns.clip_outliers(values, missing)
    rows, holes = model.columns.standardise(seen, missing)
    start, found = mixtures_of(before)[0], mixtures_of(after)[0]
    expected = step_of_em(start, rows, holes, 2 if name == "mixtures" else 5)
    np.testing.assert_allclose(found.share, expected.share, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=0, atol=1e-4)
    assert np.abs(found.mean - start.mean).max() > 1e-2


def test_summaries_say_that_mixtures_are_of_all_rows_and_where_they_are_not() -> None:
    X = pl.from_arrow(curved(1500)).lazy()
    summed = {rounds: MAKE["auto"]().fit(otimpute.scan(X, rounds=rounds, **SCAN)).scan_summary_ for rounds in (0, 1)}
    assert "components of mixtures (a step of EM)" in summed[1].summed
    assert not any("EM" in each for each in summed[0].summed)
    without = AutoImputer(["gaussian_em"], n_splits=1, random_state=0).fit(otimpute.scan(X, **SCAN)).scan_summary_
    assert without.summed[-2:] == ["means", "mean and covariance of the Gaussian (a step of EM)"]


def test_more_rounds_make_all_rows_likelier() -> None:
    table = curved()

    def log_likelihood(rounds: int) -> float:
        fitted = GaussianMixtureImputer(n_components=4, random_state=0).fit(
            otimpute.scan(pl.from_arrow(table).lazy(), rounds=rounds, sample_rows=200, min_observed=1)
        )
        (mixture,) = mixtures_of(fitted)
        complete = table.filter(pa.compute.is_valid(pa.compute.add(pa.compute.add(table["c0"], table["c1"]), table["c2"])))
        rows, _ = fitted.model_.columns.standardise(*fitted.training_table_.arrays_of(fitted.read_table(complete)))
        parts = [
            np.log(share) + multivariate_normal.logpdf(rows, mean, covariance)
            for share, mean, covariance in zip(mixture.share, mixture.mean, mixture.covariance, strict=True)
        ]
        return float(logsumexp(parts, axis=0).mean())

    of_sample, once, thrice = map(log_likelihood, (0, 1, 3))
    assert thrice > once > of_sample + 1e-3


def test_threads_change_no_bit() -> None:
    X = pl.from_arrow(curved(40_000)).lazy()  # several pieces, added up side by side
    one, two = (mixtures_of(MAKE["mixtures"]().set_params(n_jobs=n_jobs).fit(otimpute.scan(X, **SCAN))) for n_jobs in (1, 2))
    for own, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(own.share, other.share)
        np.testing.assert_array_equal(own.mean, other.mean)
        np.testing.assert_array_equal(own.covariance, other.covariance)


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, state = write(curved(), tmp_path / "X", 6), tmp_path / "state"
    at_once = MAKE[name]().fit(otimpute.scan(X, rounds=2, **SCAN))
    monkeypatch.setattr(scan_fit, "_SECONDS_BETWEEN", 0.0)
    add, n_added = scan_fit.SumPass.add, []

    def stop_in_the_second_round(self: Any, batch: Any) -> None:
        n_added.append(batch.num_rows)
        if sum(n_added) > 5000 + 3000:
            raise KeyboardInterrupt
        add(self, batch)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(scan_fit.SumPass, "add", stop_in_the_second_round)
        MAKE[name]().fit(otimpute.scan(X, rounds=2, checkpoint=state, **SCAN))
    assert state.exists()
    resumed = MAKE[name]().fit(otimpute.scan(X, rounds=2, checkpoint=state, **SCAN))
    assert resumed.to_bytes() == at_once.to_bytes()
    assert not state.exists()
