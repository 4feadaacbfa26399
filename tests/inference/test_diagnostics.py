"""Diagnostics say what is true of the draws, warn of wrong ones, and do not warn of what is as it should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit

import otimpute
from otimpute import MultipleImputer
from otimpute.baselines import ChainedImputer, GaussianEMImputer
from otimpute.inference import Convergence, Diagnostics
from otimpute.inference.matched_comparison import MatchedComparison, compare_matched


def missing_where_high(n: int, seed: int) -> np.ndarray:
    """A table whose second column follows the first and is missing rather where that is high."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    X = np.column_stack([x, x + rng.normal(size=n)])
    X[rng.random(n) < expit(2 * x), 1] = np.nan
    return X


@pytest.fixture(scope="module")
def imputer(flats: pd.DataFrame) -> MultipleImputer:
    return MultipleImputer(m=6, random_state=0).fit(flats.drop(columns="remark"))


@pytest.fixture(scope="module")
def found(imputer: MultipleImputer) -> Diagnostics:
    return imputer.diagnostics()


def test_statistics_are_those_of_observed_and_imputed_values(
    flats: pd.DataFrame, imputer: MultipleImputer, found: Diagnostics
) -> None:
    rent, holes = found["rent"], flats["rent"].isna().to_numpy()
    assert rent.statistics[:2] == ("mean", "sd")
    assert rent.of_observed[:2] == pytest.approx([flats["rent"].mean(), flats["rent"].std()])
    assert rent.of_observed[4] == pytest.approx(flats["rent"].median())
    for table, draws, row in zip(imputer.tables_, rent.draws, rent.of_draws, strict=True):
        assert draws == pytest.approx(table["rent"].to_numpy(float)[holes])
        assert row[0] == pytest.approx(draws.mean())
    heating = found["heating"]
    assert heating.of_observed == pytest.approx(flats["heating"].value_counts(normalize=True)[list(heating.labels)])
    imputed = imputer.tables_[2]["heating"][flats["heating"].isna()]
    assert heating.of_draws[2] == pytest.approx(
        imputed.value_counts(normalize=True).reindex(list(heating.labels), fill_value=0)
    )
    # Dates are whole days only when they are written.
    built = imputer.tables_[0]["built"]
    first = flats["built"].min()
    assert found["built"].draws[0] == pytest.approx((built[flats["built"].isna()] - first).dt.total_seconds(), abs=43_201)
    assert [column.name for column in found.columns] == [name for name in flats if name not in ("whole", "remark")]


def test_what_is_unknown_is_what_pool_says(imputer: MultipleImputer, found: Diagnostics) -> None:
    n = found.n_rows

    def analysis(table: pd.DataFrame) -> tuple[dict[str, float], list[float]]:
        rent, oil = table["rent"], (table["heating"] == "oil").astype(float)
        return {"rent": rent.mean(), "oil": oil.mean()}, [rent.var() / n, oil.var() / n]

    pooled = otimpute.pool(imputer, analysis, df_complete=n - 1)
    for k, (name, parameter) in enumerate([("rent", "mean"), ("heating", "oil")]):
        own = found[name].pooled
        assert own is not None
        place = own.names.index(parameter)
        for what in ("estimate", "within", "between", "fmi", "monte_carlo_error"):
            assert getattr(own, what)[place] == pytest.approx(getattr(pooled, what)[k], rel=1e-9)
        assert found[name].tables_needed >= pooled.tables_needed()[k]


def test_values_that_are_missing_where_they_are_high_raise_no_alarm() -> None:
    X = missing_where_high(400, 0)
    column = MultipleImputer(m=5, random_state=0).fit(X).diagnostics()["1"]
    assert column.of_draws[:, 0].min() > column.of_observed[0] + 0.7  # so different are they, and should be
    assert column.matched is not None and not column.matched.is_clear and abs(column.matched.difference) < 0.2
    assert column.findings == ()


@pytest.mark.parametrize("delta", ["2 sd", "-0.7 sd"])
def test_draws_that_are_too_high_or_too_low_are_found(delta: str) -> None:
    column = MultipleImputer(m=5, delta={1: delta}, random_state=0).fit(missing_where_high(400, 0)).diagnostics()["1"]
    assert column.matched is not None and column.matched.is_clear and column.matched.name == "mean"
    assert column.matched.difference == pytest.approx(float(delta.split()[0]), abs=0.25)
    assert ("higher" if delta[0] != "-" else "lower") in column.findings[0]


def test_draws_without_spread_and_classes_drawn_too_often_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 500, 1))
    x[:] = x[0]
    missing = rng.random(500) < expit(x[0, :, 0])
    y = np.repeat(x[:1, :, 0] + rng.normal(size=500), 3, axis=0)
    y[:, missing] = x[0, missing, 0]  # what is expected, without noise
    found = compare_matched((), y, x, missing, n_columns=1)
    assert found is not None and found.is_clear and found.name == "spread" and found.difference < 0
    classes = np.repeat((rng.random((1, 500)) < 0.3).astype(float), 3, axis=0)
    classes[:, missing] = rng.random((3, missing.sum())) < 0.6
    found = compare_matched(("no", "yes"), classes, x, missing, n_columns=1)
    assert found is not None and found.is_clear and abs(found.difference) == pytest.approx(0.3, abs=0.1)


def drawn_from_the_truth(kind: str, seed: int) -> MatchedComparison | None:
    """Observed and imputed values of the same distribution given the others, missing rather in some rows."""
    rng = np.random.default_rng(seed)
    n, m = 300, 4
    x, u = rng.normal(size=(2, n))
    draw = {
        "linear": lambda: x + u + rng.normal(size=n),
        "curved": lambda: x**2 + rng.normal(size=n),
        "skewed": lambda: np.exp(0.7 * x + 0.5 * rng.normal(size=n)),
        "uneven": lambda: x + np.exp(0.5 * x) * rng.normal(size=n),
        "crossed": lambda: 2 * x * u + rng.normal(size=n),
        "classes": lambda: (rng.random(n) < expit(x)) + (rng.random(n) < expit(x - 1)).astype(float),
    }[kind]
    values = np.array([draw() for _ in range(m)])
    score = (1.5 * x - 0.5, 2 * np.abs(x) - 2, 1.5 * x + u - 0.5)[seed % 3]
    missing = rng.random(n) < expit(score)
    values[:, ~missing] = values[0, ~missing]
    labels = ("a", "b", "c") if kind == "classes" else ()
    return compare_matched(labels, values, np.repeat(np.column_stack([x, u])[None], m, axis=0), missing, n_columns=1)


@pytest.mark.parametrize("kind", ["linear", "curved", "skewed", "uneven", "crossed", "classes"])
def test_right_draws_raise_hardly_any_alarm_whatever_the_table(kind: str) -> None:
    results = [drawn_from_the_truth(kind, seed) for seed in range(40)]
    assert sum(each is not None for each in results) >= 35
    assert sum(each is not None and each.is_clear for each in results) <= 2  # 5 %


def test_the_distance_is_that_of_kolmogorov_and_smirnov_if_all_rows_are_alike() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(2, 200)).round(1)
    missing = np.arange(200) < 80
    y[1] = y[0]
    found = compare_matched((), y, np.zeros((2, 200, 1)), missing, n_columns=1)
    assert found is not None and found.n_alike == pytest.approx(80)
    assert found.distance == pytest.approx(stats.ks_2samp(y[0, missing], y[0, ~missing]).statistic)


def test_draws_that_are_still_moving_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    n_alarms = 0
    for _ in range(100):
        means, spreads = rng.normal(size=(2, 5, 10)) * 0.1 + [[[0.0]], [[1.0]]]
        means += 0.1 * rng.normal(size=10)  # tables differ, rounds do not
        n_alarms += Convergence.of(means, spreads, n_missing=100, n_columns=1).has_drifted
    assert n_alarms <= 5
    moving = Convergence.of(means + 0.15 * np.arange(5)[:, None], spreads, n_missing=100, n_columns=1)
    assert moving.has_drifted and moving.drift > 1 and moving.r_hat > 0


def test_r_hat_is_that_of_gelman_and_rubin() -> None:
    rng = np.random.default_rng(0)
    chains = rng.normal(size=(5, 4))
    n_rounds = 5
    between = n_rounds * chains.mean(axis=0).var(ddof=1)
    within = chains.var(axis=0, ddof=1).mean()
    expected = np.sqrt(((n_rounds - 1) / n_rounds * within + between / n_rounds) / within)
    assert Convergence.of(chains, np.ones((5, 4)), n_missing=9, n_columns=1).r_hat == pytest.approx(expected)


def test_traces_end_with_the_draws_of_the_tables(found: Diagnostics) -> None:
    for name in ("rent", "built"):
        column = found[name]
        assert column.convergence is not None and column.convergence.means.shape == (5, 6)
        assert column.convergence.means[-1] == pytest.approx(column.of_draws[:, 0], rel=1e-3)
    assert all(not column.findings for column in found.columns)


def test_one_round_has_no_drift_and_no_rounds_have_no_trace() -> None:
    X = missing_where_high(60, 1)
    one = MultipleImputer(ChainedImputer(n_rounds=1), m=3, random_state=0).fit(X).diagnostics()["1"].convergence
    assert one is not None and np.isnan(one.drift) and np.isnan(one.r_hat) and not one.has_drifted
    assert MultipleImputer(GaussianEMImputer(), m=3, random_state=0).fit(X).diagnostics()["1"].convergence is None


def test_a_loaded_imputer_says_the_same_of_its_table_except_how_it_came_about(tmp_path: Path) -> None:
    X = missing_where_high(80, 2)
    imputer = MultipleImputer(m=3, random_state=0).fit(X)
    imputer.save(tmp_path / "model")
    loaded = otimpute.load(tmp_path / "model")
    with pytest.raises(AttributeError, match="call complete"):
        loaded.diagnostics()
    there, back = imputer.diagnostics()["1"], loaded.diagnostics(X)["1"]
    assert np.array_equal(there.draws, back.draws) and there.matched == back.matched and back.convergence is None


def test_columns_that_tell_nothing_are_no_problem() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30), "same": 3.0, "only": "x", "few": rng.choice(["p", "q"], 30)})
    frame.loc[:3, "same"] = np.nan
    frame.loc[:3, "only"] = None
    frame.loc[:3, "few"] = None
    found = MultipleImputer(m=3, random_state=0).fit(frame).diagnostics()
    assert found["same"].pooled is None and found["only"].pooled is None and np.isnan(found["same"].fmi)
    assert found["few"].matched is None
    assert "same" in repr(found) and len(found.summary()) == 3


def test_the_summary_is_a_frame_of_the_kind_of_the_table(found: Diagnostics) -> None:
    summary = found.summary()
    assert summary.loc["rent", "fmi"] == found["rent"].fmi
    assert summary.loc["rent", "low"] <= summary.loc["rent", "imputed"] <= summary.loc["rent", "high"]
    assert repr(found).splitlines()[0] == "Diagnostics of 6 tables, 7 columns with missing values"
    assert len({len(line) for line in repr(found).splitlines()[2:]}) == 1
    assert "<table>" in found._repr_html_()
    frame = pl.DataFrame({"x": [1.0, 2, 3, 4, 5, None], "y": [2.0, 3, 4, 5, 7, 8]})
    own = MultipleImputer(m=2, random_state=0).fit(frame).diagnostics().summary()
    assert isinstance(own, pl.DataFrame) and own.columns[:2] == ["column", "missing"]
    with pytest.raises(KeyError, match="no missing values"):
        found["whole"]
