"""Results from elsewhere, other scales, and how a result is shown."""

from __future__ import annotations

import pickle
import sys
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from otimpute import pool, pool_estimates
from otimpute.exceptions import AnalysisError, NotInstalledError, ParameterError, ParameterValueError

Q, U = [[1.9, 0.4], [2.3, 0.2], [2.1, 0.5]], [[[0.5, 0.1], [0.1, 0.4]]] * 3
POOLED = pool_estimates(Q, U, names=["age", "dose"], df_complete=50)


def test_variances_are_within_tables_between_them_and_of_their_mean() -> None:
    pooled = pool_estimates([1.0, 2.0, 6.0], [2.0, 3.0, 4.0])
    assert (pooled.estimate, pooled.within, pooled.between) == (pytest.approx(3), pytest.approx(3), pytest.approx(7))
    assert pooled.total == pytest.approx(3 + 4 / 3 * 7) and pooled.std_error == pytest.approx(np.sqrt(pooled.total))
    assert pooled.monte_carlo_error == pytest.approx(np.sqrt(7 / 3))
    assert pooled.relative_efficiency == pytest.approx(1 / (1 + pooled.fmi / 3))


def test_variances_and_covariances_give_the_same_rows() -> None:
    only_variances = pool_estimates(Q, np.diagonal(U, axis1=1, axis2=2), df_complete=50)
    assert only_variances.names == ("0", "1")
    np.testing.assert_array_equal(only_variances.p, POOLED.p)


def test_names_are_those_of_a_frame() -> None:
    assert pool_estimates(pd.DataFrame(Q, columns=["age", "dose"]), U).names == ("age", "dose")


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_interval_has_the_level(level: float) -> None:
    pooled = pool_estimates([1.0, 2.0, 6.0], [2.0, 3.0, 4.0], level=level)
    inside = stats.t.cdf((pooled.high - pooled.estimate) / pooled.std_error, pooled.df) * 2 - 1
    assert inside == pytest.approx(level)


@pytest.mark.parametrize(
    ("scale", "to", "back", "estimates"),
    [
        ("fisher_z", np.arctanh, np.tanh, [0.5, 0.7, -0.1]),
        ("log", np.log, np.exp, [0.5, 2.0, 8.0]),
        ("logit", lambda q: np.log(q / (1 - q)), lambda z: 1 / (1 + np.exp(-z)), [0.5, 0.9, 0.02]),
    ],
)
def test_a_transformed_parameter_is_pooled_on_its_scale_and_returned_in_its_units(
    scale: str, to: Any, back: Any, estimates: list[float]
) -> None:
    Q, U, step = np.array(estimates), np.array([0.01, 0.02, 0.015]), 1e-6
    slopes = (to(Q + step) - to(Q - step)) / (2 * step)
    there = pool_estimates(to(Q), U * slopes**2)
    pooled = pool_estimates(Q, U, transform=scale)
    for name in ("estimate", "low", "high"):
        np.testing.assert_allclose(getattr(pooled, name), back(getattr(there, name)), rtol=1e-6)
    for name in ("df", "p", "fmi", "riv", "within", "between", "total"):
        np.testing.assert_allclose(getattr(pooled, name), getattr(there, name), rtol=1e-6)
    back_slope = (back(there.estimate + step) - back(there.estimate - step)) / (2 * step)
    np.testing.assert_allclose(pooled.std_error, there.std_error * back_slope, rtol=1e-6)
    np.testing.assert_allclose(pooled.monte_carlo_error, there.monte_carlo_error * back_slope, rtol=1e-6)
    assert pooled.test().statistic == pytest.approx(there.test().statistic, rel=1e-6)


def test_only_named_parameters_are_transformed() -> None:
    pooled = pool_estimates(Q, U, names=["age", "dose"], df_complete=50, transform={"dose": "log"})
    np.testing.assert_array_equal([pooled.low[0], pooled.high[0]], [POOLED.low[0], POOLED.high[0]])
    np.testing.assert_allclose(pooled.estimate[1], np.exp(np.log([0.4, 0.2, 0.5]).mean()))


def test_an_estimate_without_a_value_on_the_scale_is_refused() -> None:
    with pytest.raises(AnalysisError, match=r"tables\[1\]: the estimate of 'r' is 1; .* between -1 and 1, exclusively"):
        pool([0.5, 1.0], lambda r: ({"r": r}, 0.01), transform={"r": "fisher_z"})


def test_d1_of_tables_that_agree_is_the_wald_test() -> None:
    estimate, covariance = np.array([1.0, 2.0]), np.array([[1.0, 0.3], [0.3, 2.0]])
    test = pool_estimates([estimate] * 5, [covariance] * 5).test()
    wald = estimate @ np.linalg.solve(covariance, estimate)
    assert test.statistic == pytest.approx(wald / 2) and test.df2 == np.inf
    assert test.p == pytest.approx(stats.chi2.sf(wald, 2))


@pytest.mark.parametrize("m", [2, 3, 5, 20])
@pytest.mark.parametrize("df_complete", [1, 4, 10, 1000, np.inf])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 100.0])
def test_d1_has_degrees_of_freedom_however_few_rows_and_tables(m: int, df_complete: float, spread: float) -> None:
    Q = 1 + spread * np.random.default_rng(0).normal(size=(m, 2))
    test = pool_estimates(Q, [np.eye(2)] * m, df_complete=df_complete).test()
    assert test.df2 > 0 and 0 <= test.p <= 1


def test_d1_does_not_depend_on_units() -> None:
    units = np.array([1e-3, 1e4])
    scaled = pool_estimates(Q * units, np.array(U) * np.outer(units, units), df_complete=50)
    assert astuple(scaled.test()) == pytest.approx(astuple(POOLED.test()))


def test_parameters_that_follow_from_each_other_cannot_be_tested_together() -> None:
    with pytest.raises(ValueError, match="the covariance of 0, 1 is singular"):
        pool_estimates([[1.0, 1.0], [2.0, 2.0]], [np.ones((2, 2))] * 2).test()


@pytest.mark.parametrize("names", ["agee", ["age", "age"], []])
def test_only_parameters_that_there_are_can_be_tested(names: Any) -> None:
    with pytest.raises(ParameterValueError, match="names must be different names among age, dose"):
        POOLED.test(names)


def test_tables_needed_follow_the_quadratic_rule() -> None:
    for cv in (0.05, 0.1):
        np.testing.assert_array_equal(POOLED.tables_needed(cv), np.ceil(1 + (POOLED.fmi / cv) ** 2 / 2))
    with pytest.raises(ParameterValueError, match="cv must be a finite number > 0"):
        POOLED.tables_needed(0)


def test_the_summary_has_a_row_per_parameter_in_a_frame_of_the_tables_kind() -> None:
    columns = ["estimate", "std_error", "df", "low", "high", "p", "fmi"]
    summary = POOLED.summary()
    assert list(summary.columns) == columns and list(summary.index) == ["age", "dose"]
    np.testing.assert_array_equal(summary["std_error"], POOLED.std_error)
    tables = [pl.DataFrame({"x": [1.0, 2.0, 3.0]}), pl.DataFrame({"x": [1.0, 2.0, 4.0]})]
    of_polars = pool(tables, lambda table: ({"mean": table["x"].mean()}, 0.1)).summary()
    assert isinstance(of_polars, pl.DataFrame) and of_polars.columns == ["parameter", *columns]
    assert of_polars["parameter"].to_list() == ["mean"]


def test_a_summary_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotInstalledError, match=r"summary\(\) needs the package 'pandas': pip install pandas"):
        POOLED.summary()


def test_the_result_is_printed_as_an_aligned_table() -> None:
    title, *lines = repr(POOLED).splitlines()
    assert title == "Pooled over 3 tables, intervals of 95 %"
    assert [line.split()[0] for line in lines] == ["estimate", "age", "dose"] and len({len(line) for line in lines}) == 1


def test_names_are_escaped_in_notebooks() -> None:
    html = pool_estimates([1.0, 2.0], [1.0, 1.0], names=["<script>"])._repr_html_()
    assert "<th>&lt;script&gt;</th>" in html and "<script>" not in html


def test_results_and_errors_survive_pickling() -> None:
    again = pickle.loads(pickle.dumps(POOLED))
    assert repr(again) == repr(POOLED) and again.test() == POOLED.test()
    error = pickle.loads(pickle.dumps(AnalysisError(3, "it failed")))
    assert (str(error), error.table) == ("tables[3]: it failed", 3)


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        (([1.0], [1.0]), {}, "at least two completed tables, got 1"),
        ((3.0, 1.0), {}, r"estimates must be an array of shape \[m\] or \[m, K\], got \(\)"),
        (
            (Q, [1.0, 2.0, 3.0]),
            {},
            r"variances must be an array of shape \(3, 2\), as the estimates, or of covariances, got \(3,\)",
        ),
        (([1.0, 2.0], np.eye(2)), {}, "variances must be"),
        (([[1.0, 2.0], [3.0]], [1.0, 2.0]), {}, "estimates must be an array of numbers, with as many for every table"),
        ((Q, U), {"names": ["age"]}, "names must be 2 different names, got 'age'"),
        ((Q, U), {"names": ["age", "age"]}, "names must be 2 different names"),
        ((Q, U), {"level": 1}, "level must be"),
        ((Q, U), {"df_complete": -1}, "df_complete must be"),
    ],
)
def test_wrong_input_is_refused(arguments: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        pool_estimates(*arguments, **parameters)


def test_a_negative_variance_is_refused_with_its_table() -> None:
    with pytest.raises(AnalysisError, match=r"tables\[1\]: the variance of 'estimate' is -2"):
        pool_estimates([1.0, 2.0], [1.0, -2.0])
