"""Any analysis of a table can be pooled, whatever it returns; what cannot be pooled is refused with the table's number."""

from __future__ import annotations

from dataclasses import astuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import BayesianRidge, LinearRegression

from otimpute import pool, pool_estimates
from otimpute.exceptions import AnalysisError, ParameterTypeError, ParameterValueError

RNG = np.random.default_rng(0)
TABLES = [RNG.normal(size=(40, 3)) for _ in range(4)]
FRAMES = [pd.DataFrame(table, columns=["y", "a", "b"]) for table in TABLES]


def least_squares(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and their covariance."""
    y, X = table[:, 0], np.column_stack([np.ones(len(table)), table[:, 1:]])
    coefficients, residual, *_ = np.linalg.lstsq(X, y, rcond=None)
    covariance = np.linalg.inv(X.T @ X) * residual / (len(X) - 3)
    return coefficients[1:], covariance[1:, 1:]


EXPECTED = pool_estimates(*zip(*map(least_squares, TABLES), strict=True), names=["a", "b"])


def shapes(estimates: np.ndarray, covariance: np.ndarray) -> dict[str, Any]:
    """The same result in every form in which an analysis may return it."""
    series, frame = pd.Series(estimates, ["a", "b"]), pd.DataFrame(covariance, ["a", "b"], ["a", "b"])
    return {
        "dict and matrix": ({"a": estimates[0], "b": estimates[1]}, covariance),
        "dict and frame": ({"a": estimates[0], "b": estimates[1]}, frame),
        "series and frame": (series, frame),
        "frame in other order": (series, frame.loc[["b", "a"], ["a", "b"]]),
        "names of the covariance": (estimates, frame),
        "statsmodels": SimpleNamespace(params=series, cov_params=lambda: frame, df_resid=np.float64(37)),
        "statsmodels of arrays": SimpleNamespace(
            params=estimates, cov_params=lambda: covariance, df_resid=37, model=SimpleNamespace(exog_names=["a", "b"])
        ),
        "statsmodels without df": SimpleNamespace(params=series, cov_params=lambda: frame, df_resid=None),
        "lifelines": SimpleNamespace(params_=series, variance_matrix_=frame),
        "scikit-learn": SimpleNamespace(
            coef_=estimates[None], sigma_=covariance, feature_names_in_=np.array(["a", "b"], object)
        ),
    }


@pytest.mark.parametrize("kind", shapes(*least_squares(TABLES[0])))
def test_every_kind_of_result_is_pooled_alike(kind: str) -> None:
    pooled = pool(TABLES, lambda table: shapes(*least_squares(table))[kind], df_complete=np.inf)
    assert pooled.names == ("a", "b")
    for name in ("estimate", "std_error", "df", "low", "high", "p", "fmi"):
        np.testing.assert_allclose(getattr(pooled, name), getattr(EXPECTED, name))
    assert astuple(pooled.test()) == pytest.approx(astuple(EXPECTED.test()))


@pytest.mark.parametrize("variances", [[0.5, 0.25], {"b": 0.25, "a": 0.5}, pd.Series([0.25, 0.5], ["b", "a"])])
def test_variances_are_matched_by_name_and_suffice_but_for_joint_tests(variances: Any) -> None:
    pooled = pool([1.0, 2.0], lambda x: ({"a": x, "b": 2 * x}, variances))
    np.testing.assert_allclose(pooled.within, [0.5, 0.25])
    assert pooled.test("a").df1 == 1
    with pytest.raises(ValueError, match="needs their covariance, but only variances"):
        pooled.test()


def test_a_single_number_needs_no_name() -> None:
    pooled = pool([np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 5.0])], lambda x: (x.mean(), x.var(ddof=1) / 3))
    assert pooled.names == ("estimate",)
    np.testing.assert_allclose(pooled.estimate, [(3 + 8 / 3) / 2])


def test_labels_of_several_levels_are_joined() -> None:
    index = pd.MultiIndex.from_tuples([("lambda_", "x"), ("rho_", "Intercept")])
    params, matrix = pd.Series([1.0, 2.0], index), pd.DataFrame(np.eye(2), index, index)
    pooled = pool([0, 0.1], lambda x: SimpleNamespace(params_=params + x, variance_matrix_=matrix))
    assert pooled.names == ("lambda_: x", "rho_: Intercept")


def test_bayesian_ridge_is_pooled_and_other_linear_models_say_what_to_return() -> None:
    models = [BayesianRidge().fit(frame[["a", "b"]], frame["y"]) for frame in FRAMES]
    pooled = pool(FRAMES, lambda frame: BayesianRidge().fit(frame[["a", "b"]], frame["y"]))
    assert pooled.names == ("a", "b")
    np.testing.assert_allclose(pooled.within, np.mean([np.diag(model.sigma_) for model in models], axis=0))
    with pytest.raises(AnalysisError, match=r"LinearRegression, which has no covariance .*return a pair"):
        pool(FRAMES, lambda frame: LinearRegression().fit(frame[["a", "b"]], frame["y"]))


def test_statsmodels_results_are_pooled() -> None:
    ols = pytest.importorskip("statsmodels.formula.api").ols
    pooled = pool(FRAMES, lambda frame: ols("y ~ a + b", frame).fit())
    assert pooled.names == ("Intercept", "a", "b") and pooled.df_complete == 37
    expected = pool_estimates(*zip(*map(least_squares, TABLES), strict=True), df_complete=37)
    for name in ("estimate", "std_error", "df", "p"):
        np.testing.assert_allclose(getattr(pooled, name)[1:], getattr(expected, name))
    assert astuple(pooled.test(["a", "b"])) == pytest.approx(astuple(expected.test()))


def test_degrees_of_freedom_are_the_smallest_of_the_results_unless_given() -> None:
    def analysis(df: float) -> SimpleNamespace:
        return SimpleNamespace(params=[df / 100], cov_params=lambda: [[1.0]], df_resid=df)

    assert pool([30, 20, 25], analysis).df_complete == 20
    assert pool([30, 20, 25], analysis, df_complete=50).df_complete == 50
    assert pool([1.0, 2.0], lambda x: (x, 1)).df_complete == np.inf


def test_parameters_may_come_in_another_order() -> None:
    def analysis(names: str) -> tuple[dict[str, float], dict[str, float]]:
        return {name: ord(name) for name in names}, {name: ord(name) / 100 for name in names}

    pooled = pool(["ab", "ba"], analysis)
    np.testing.assert_allclose(pooled.estimate, [97, 98])
    np.testing.assert_allclose(pooled.within, [0.97, 0.98])


class Lazy:
    """Tables that are made when they are asked for, as of an imputer."""

    def __getitem__(self, number: int) -> float:
        if number >= 5:
            raise IndexError
        return 1.0 + number


def test_tables_may_be_of_an_imputer_a_generator_or_an_array() -> None:
    def analysis(x: Any) -> tuple[float, float]:
        return float(np.mean(x)), 1.0

    expected = pool([1.0, 2.0, 3.0, 4.0, 5.0], analysis).std_error
    for tables in (SimpleNamespace(tables_=Lazy()), Lazy(), (x + 1.0 for x in range(5)), np.arange(1.0, 6.0).reshape(5, 1, 1)):
        np.testing.assert_array_equal(pool(tables, analysis).std_error, expected)


@pytest.mark.parametrize(
    "tables", [FRAMES[0], pl.DataFrame(FRAMES[0].to_dict("list")), TABLES[0], FRAMES[0]["a"], "abc", {"a": 1, "b": 2}, 3, None]
)
def test_one_table_is_not_taken_for_several(tables: Any) -> None:
    with pytest.raises(ParameterTypeError, match="tables must be a fitted MultipleImputer, or a list of completed tables"):
        pool(tables, lambda table: (1.0, 1.0))


@pytest.mark.parametrize("tables", [[], [1.0]])
def test_fewer_than_two_tables_are_refused(tables: list[float]) -> None:
    with pytest.raises(ParameterValueError, match=f"at least two completed tables, got {len(tables)}"):
        pool(tables, lambda x: (x, 1.0))


def test_a_failing_analysis_names_its_table_and_keeps_the_cause() -> None:
    with pytest.raises(AnalysisError, match=r"tables\[2\]: the analysis failed: ZeroDivisionError: ") as caught:
        pool([1, 2, 0, 3], lambda x: (1 / x, 1))
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.table == 2


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "the analysis returned None; return a pair"),
        ("p < 0.05", "the analysis returned 'p < 0.05'; return a pair"),
        (1.5, "the analysis returned 1.5; return a pair"),
        (pd.DataFrame({"x": [1]}), "DataFrame; return a pair"),
        ([1.0, 2.0], r"returned \[1.0, 2.0\]; return a pair"),
        ((1.0, 2.0, 3.0), "return a pair"),
        (("a", 1.0), "the estimates must be numbers, got 'a'"),
        (([True], 1.0), "the estimates must be numbers"),
        ((1.0, None), "the variance of 'estimate' is nan"),
        ((1.0, "small"), "the covariance must be numbers, got 'small'"),
        (([], []), r"the estimates must be a number or a vector, got an array of shape \(0,\)"),
        ((np.eye(2), np.eye(2)), r"must be a number or a vector, got an array of shape \(2, 2\)"),
        ((pd.DataFrame(np.eye(2)), np.eye(4)), "must be a number or a vector, got a frame"),
        ((np.nan, 1.0), "the estimate of 'estimate' is nan; it must be finite"),
        (({"a": 1.0, "b": np.inf}, [1, 1]), "the estimate of 'b' is inf"),
        (({"a": 1.0, "b": 2.0}, [1, -1]), "the variance of 'b' is -1; it must be finite and not negative"),
        (({"a": 1.0, "b": 2.0}, [[1, np.nan], [np.nan, 1]]), "entries that are not finite"),
        (({"a": 1.0, "b": 2.0}, [[1, 0.5], [0.4, 1]]), "not symmetric"),
        (({"a": 1.0, "b": 2.0}, [[1, 0.5]]), r"must be 2 variances or a 2 × 2 matrix, got shape \(1, 2\)"),
        (({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 1.0}), "the covariance is of a, c, but the estimates are of a, b"),
        (({1: 1.0, "1": 2.0}, [1, 1]), "different names, got 1, 1"),
        (([1.0, 2.0], pd.DataFrame(np.eye(2), ["a", "b"], ["a", "c"])), "same labels in rows and columns"),
        (({"a": 1.0, "c": 2.0}, [1, 1]), r"returned 2 parameters \(a, c\), but 2 parameters \(a, b\) in tables\[0\]"),
        (({"a": 1.0}, 1), r"returned 1 parameter \(a\), but 2 parameters \(a, b\) in tables\[0\]"),
        (SimpleNamespace(params=[1.0, 2.0], cov_params=lambda: np.eye(2), df_resid=0), "has 0 degrees of freedom"),
    ],
)
def test_what_cannot_be_pooled_is_refused(returned: Any, message: str) -> None:
    good = {"a": 1.0, "b": 2.0}, [1.0, 1.0]
    with pytest.raises(AnalysisError, match=message) as caught:
        pool([good, good, returned], lambda result: result)
    assert str(caught.value).startswith("tables[2]: ")


def test_a_parameter_without_variance_is_refused() -> None:
    with pytest.raises(ValueError, match="the variance of a is 0 in every table"):
        pool([1.0, 2.0], lambda x: ({"a": x, "b": x}, [0, 1]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"level": 95}, r"level must be a finite number > 0 and < 1, got 95; pass 0.95 for intervals of 95 %"),
        ({"df_complete": 0}, "df_complete must be a number > 0, or infinity, got 0"),
        ({"df_complete": np.nan}, "df_complete must be a number > 0"),
        ({"df_complete": "many"}, "df_complete must be a number > 0"),
        ({"transform": "fisherz"}, "transform must be one of 'fisher_z', 'log', 'logit', got 'fisherz'; did you mean"),
        ({"transform": {"r": "log"}}, "transform must be of parameters among estimate, got 'r'"),
        ({"transform": {"estimate": "cube"}}, r"transform\['estimate'\] must be one of"),
        ({"transform": 2}, "transform must be one of"),
    ],
)
def test_wrong_parameters_are_refused_before_a_second_table_is_analysed(parameters: dict[str, Any], message: str) -> None:
    seen = []
    with pytest.raises((ParameterValueError, ParameterTypeError), match=message):
        pool([1.0, 2.0, 3.0], lambda x: seen.append(x) or (x, 1.0), **parameters)
    assert len(seen) <= 1


def test_an_analysis_must_be_a_function() -> None:
    with pytest.raises(ParameterTypeError, match="analysis must be a function of one table, got 'ols'"):
        pool(TABLES, "ols")
