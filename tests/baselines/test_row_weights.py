"""Rows count as often as ``sample_weight`` says: compared with tables in which they are repeated, or left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from otimpute import AutoImputer, SinkhornImputer
from otimpute.baselines import (
    ExtraTreesImputer,
    GaussianEMImputer,
    GaussianMixtureImputer,
    KernelRidgeImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
)
from otimpute.baselines.standardised import TrainingSet
from otimpute.estimator import BaseImputer
from otimpute.fitting import ColumnLayout
from otimpute.gaussian import fit_gaussian

Table = NDArray[np.float64]
WEIGHING: dict[str, Callable[[], BaseImputer]] = {
    "mean": MeanImputer,
    "gaussian_em": GaussianEMImputer,
    "gaussian_mixture": lambda: GaussianMixtureImputer(n_components=2, random_state=0),
    "extra_trees": lambda: ExtraTreesImputer(n_estimators=10, n_rounds=2, random_state=0),
    "kernel_ridge": KernelRidgeImputer,
    "missforest": lambda: MissForestImputer(n_estimators=20, max_iter=2, min_samples_leaf=10, random_state=0),
    "auto": lambda: AutoImputer(n_splits=1, random_state=0),
}
each_weighing = pytest.mark.parametrize("make", WEIGHING.values(), ids=WEIGHING)


def incomplete_table(n: int = 160, seed: int = 0) -> tuple[Table, NDArray[np.int64]]:
    """A table and whole weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, rng.integers(0, 4, n)


def repeated(X: Table, weight: NDArray[np.int64]) -> tuple[Table, NDArray[np.int64]]:
    """Every row as often as its weight says, and where the first of each is that is there."""
    return X.repeat(weight, axis=0), (np.cumsum(weight) - weight)[weight > 0]


def test_the_mean_is_that_of_repeated_rows() -> None:
    X, weight = incomplete_table()
    weighted, plain = MeanImputer().fit(X, sample_weight=weight), MeanImputer().fit(repeated(X, weight)[0])
    np.testing.assert_allclose(weighted.means_, plain.means_, rtol=1e-12)


def test_a_gaussian_is_that_of_repeated_rows() -> None:
    X, weight = incomplete_table()
    rows, place = repeated(X, weight)
    prior = len(rows) / np.count_nonzero(weight)  # rows of the prior, relative to all
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 3000}
    weighted = GaussianEMImputer(**options)
    plain = GaussianEMImputer(prior_rows=prior, **options)
    got, expected = weighted.fit_transform(X, sample_weight=weight), plain.fit_transform(rows)
    np.testing.assert_allclose(got[weight > 0], expected[place], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(weighted.covariance_, plain.covariance_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[weight == 0], plain.transform(X[weight == 0]), rtol=1e-9, atol=1e-9)


def test_a_gaussian_with_very_many_holes_is_that_of_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 240))
    missing = rng.random(values.shape) < 0.85  # more than 200 in a row: LAPACK's part
    weight = rng.integers(1, 4, 20)
    options: dict[str, Any] = {"prior_rows": 40.0, "max_iterations": 3}
    weighted = fit_gaussian(values, missing, row_weight=weight.astype(float), **options)
    rows, holes = (each.repeat(weight, axis=0) for each in (values, missing))
    plain = fit_gaussian(rows, holes, **options)
    assert (missing.sum(axis=1) > 200).any()
    np.testing.assert_allclose(weighted.covariance, plain.covariance, rtol=1e-7, atol=1e-9)


def test_a_gaussian_on_torch_weighs_rows_as_on_the_cpu() -> None:
    pytest.importorskip("torch")
    X, weight = incomplete_table(60)
    values, missing, counts = np.nan_to_num(X), np.isnan(X), weight + 0.5
    cpu, torch = (fit_gaussian(values, missing, row_weight=counts, torch_device=each) for each in (None, "cpu"))
    np.testing.assert_allclose(torch.covariance, cpu.covariance, rtol=1e-9)
    assert np.abs(torch.covariance - fit_gaussian(values, missing).covariance).max() > 0.01


@pytest.mark.parametrize("n_landmarks", [256, 20])
def test_kernel_ridge_on_torch_weighs_rows_as_on_the_cpu(n_landmarks: int) -> None:
    pytest.importorskip("torch")
    X, weight = incomplete_table()
    fits = _fits_on_cpu_and_torch(KernelRidgeImputer(n_landmarks=n_landmarks, n_rounds=1), X, weight + 0.5)
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-3)
    assert np.abs(fits[2] - fits[0]).max() > 0.01


def test_mixtures_on_torch_weigh_rows_as_on_the_cpu() -> None:
    pytest.importorskip("torch")
    X, weight = incomplete_table()
    fits = _fits_on_cpu_and_torch(GaussianMixtureImputer(n_components=3, max_iter=4), X, weight + 0.5)
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-4)
    assert np.abs(fits[2] - fits[0]).max() > 0.01


def _fits_on_cpu_and_torch(imputer: Any, X: Table, weight: Table) -> list[Table]:
    """Rows completed on the CPU, by torch, and on the CPU without weights."""
    holes, layout = np.isnan(X), ColumnLayout.of_numbers("abcd")
    training = TrainingSet(np.nan_to_num(X), holes, np.arange(4), layout, np.arange(4), seed=0)
    weighted = replace(training, row_weight=weight / weight.mean())
    return [imputer._fit_on(*each).completed for each in ((None, weighted), ("cpu", weighted), (None, training))]


def test_kernel_ridge_is_that_of_repeated_rows() -> None:
    X, weight = incomplete_table()
    weight += 1
    values, missing, layout = np.nan_to_num(X), np.isnan(X), ColumnLayout.of_numbers("abcd")
    start = np.zeros(int(missing.sum()))
    rows, place = repeated(X, weight)
    holes = np.isnan(rows)
    n_per_row = len(rows) / len(X)
    counts = weight / weight.mean()
    got = KernelRidgeImputer(ridge=0.1).fit_cells(values, missing, layout, seed=0, start=start, sample_weight=counts)
    plain = KernelRidgeImputer(ridge=0.1 * n_per_row).fit_cells(
        np.nan_to_num(rows), holes, layout, seed=0, start=np.zeros(int(holes.sum()))
    )
    expected = np.zeros(rows.shape)
    expected[holes] = plain.cells
    np.testing.assert_allclose(got.cells, expected[place][missing], atol=2e-4)  # predictions are in float32


def test_landmarks_of_kernel_ridge_weigh_rows() -> None:
    X, y, missing, weight = two_populations(700)
    made = KernelRidgeImputer(n_landmarks=50, random_state=0).fit_transform(X, sample_weight=weight)
    assert made[missing, 0].mean() == pytest.approx(np.average(y, weights=weight), abs=0.4)


def two_populations(n: int = 400) -> tuple[Table, Table, NDArray[np.bool_], Table]:
    """0 in rows that count once, 10 in those that count four times; no other column tells which."""
    rng = np.random.default_rng(3)
    of_second = rng.random(n) < 0.5
    X = np.column_stack([10.0 * of_second, rng.normal(size=(n, 2))])
    y, missing = X[:, 0].copy(), rng.random(n) < 0.3
    X[missing, 0] = np.nan
    X[:2, 1] = np.nan
    return X, y, missing, np.where(of_second, 4.0, 1.0)


@each_weighing
def test_what_is_imputed_is_that_of_the_weighted_population(make: Callable[[], BaseImputer]) -> None:
    X, y, missing, weight = two_populations()
    weighted = make().fit_transform(X, sample_weight=weight)
    plain = make().fit_transform(X)
    assert plain[missing, 0].mean() == pytest.approx(y.mean(), abs=1.0)
    assert weighted[missing, 0].mean() == pytest.approx(np.average(y, weights=weight), abs=1.0)


@each_weighing
def test_rows_without_weight_are_imputed_and_nothing_is_learned_from_them(make: Callable[[], BaseImputer]) -> None:
    X, weight = incomplete_table()
    counts = weight > 0
    odd = np.where(counts[:, None], X, X + 1000 * np.arange(len(X))[:, None])
    weighted = make().fit(odd, sample_weight=counts)
    plain = make().fit(X[counts])
    assert np.isfinite(make().fit_transform(odd, sample_weight=counts)).all()
    if not isinstance(weighted, AutoImputer):  # which numbers the rows that it draws for
        np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-12)
    off = np.abs(weighted.transform(X) - plain.transform(X))
    assert off.max() < 5


@each_weighing
def test_only_ratios_of_weights_matter(make: Callable[[], BaseImputer]) -> None:
    X, weight = incomplete_table(80)
    made = [make().fit_transform(X, sample_weight=factor * weight) for factor in (1.0, 4.0, 2.0**-1000)]
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])


@each_weighing
def test_equal_weights_are_none(make: Callable[[], BaseImputer]) -> None:
    X, _ = incomplete_table(80)
    np.testing.assert_array_equal(make().fit_transform(X, sample_weight=np.full(80, 7)), make().fit_transform(X))


def test_workers_do_not_change_weighted_fits() -> None:
    X, weight = incomplete_table(300)
    for make in (GaussianEMImputer, GaussianMixtureImputer, ExtraTreesImputer, AutoImputer):
        seed = {} if make is GaussianEMImputer else {"random_state": 0}
        one, two = (make(n_jobs=n, **seed).fit_transform(X, sample_weight=weight) for n in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_frames_and_series_come_with_weights() -> None:
    X, weight = incomplete_table(60)
    expected = GaussianEMImputer().fit_transform(X, sample_weight=weight)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(60)[::-1])
    made = GaussianEMImputer().fit_transform(frame, sample_weight=pd.Series(weight, index=np.arange(60)))  # by place
    np.testing.assert_array_equal(made.to_numpy(), expected)
    other = GaussianEMImputer().fit_transform(pl.DataFrame(X, schema=list("abcd")), sample_weight=pl.Series(weight))
    np.testing.assert_array_equal(other.to_numpy(), np.where(np.isnan(X), expected, other.to_numpy()))


@pytest.mark.parametrize(
    ("weight", "problem"),
    [
        ([1.0, -1.0, 1.0], r"-1.0 in row 1"),
        ([1.0, np.nan, 1.0], r"nan in row 1"),
        ([1.0, np.inf, 1.0], r"inf in row 1"),
        ([1.0, 1.0], r"shape \(2,\) for 3 rows"),
        ([[1.0], [1.0], [2.0]], r"shape \(3, 1\)"),
        (2.0, r"shape \(\)"),
        ([0, 0, 0], "zero in every row"),
        (["a", "b", "c"], "list of other values"),
        ([1, 1, 0], "0 in all rows in which 0 is observed"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weight: Any, problem: str) -> None:
    X = np.array([[np.nan, 1.0], [np.nan, 2.0], [3.0, 4.0]])
    with pytest.raises((TypeError, ValueError), match=problem):
        MeanImputer().fit(X, sample_weight=weight)


def test_imputers_that_cannot_weigh_rows_say_so() -> None:
    X, weight = incomplete_table(60)
    for imputer in (SinkhornImputer(), KNNImputer()):
        with pytest.raises(ValueError, match=f"sample_weight cannot be used by {type(imputer).__name__}"):
            imputer.fit(X, sample_weight=weight)
    for experts in (["gaussian_em", "knn"], [KNNImputer()]):
        with pytest.raises(ValueError, match=r"cannot be used by these experts: (knn|KNNImputer);"):
            AutoImputer(experts).fit(X, sample_weight=weight)
    with pytest.raises(ValueError, match="cannot be used by these experts: ice"):
        AutoImputer(methods={0: "ice"}).fit(X, sample_weight=weight)
