"""Pooled numbers are those of R's mice, computed by docs/studies/pooling_cases.R."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otimpute import pool, pool_estimates

CASES = json.loads((Path(__file__).parent / "mice_cases.json").read_text(encoding="utf-8"))
SCALARS, MODELS = ({case["name"]: case for case in CASES[kind]} for kind in ("scalars", "models"))
WITHOUT_D1 = "three tables, one parameter"  # mice's degrees of freedom are NaN there


def assert_same(ours: Any, mice: Any) -> None:
    np.testing.assert_allclose(ours, mice, rtol=1e-8)


@pytest.mark.parametrize("case", SCALARS.values(), ids=SCALARS)
def test_one_parameter_is_pooled_as_by_pool_scalar(case: dict[str, Any]) -> None:
    df_complete = np.inf if case["df_complete"] is None else case["df_complete"]
    pooled = pool_estimates(case["estimates"], case["variances"], df_complete=df_complete)
    for name in ("estimate", "within", "between", "total", "df", "riv", "fmi", "low", "high", "p"):
        assert_same(getattr(pooled, name), case[name])


@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_linear_models_are_pooled_as_by_pool(case: dict[str, Any]) -> None:
    fits = list(zip(case["estimates"], case["covariances"], strict=True))
    pooled = pool(fits, lambda fit: (dict(zip(case["names"], fit[0], strict=True)), fit[1]), df_complete=case["df_complete"])
    for name in ("estimate", "std_error", "within", "between", "total", "df", "riv", "fmi", "low", "high", "p"):
        assert_same(getattr(pooled, name), case[name])
    assert_same(pooled.lambda_, case["lambda"])


@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_nested_models_are_compared_as_by_d1(case: dict[str, Any]) -> None:
    mice = case["D1"]
    pooled = pool_estimates(case["estimates"], case["covariances"], names=case["names"], df_complete=case["df_complete"])
    ours = pooled.test(mice["names"])
    assert_same([ours.statistic, ours.df1], [mice["statistic"], mice["df1"]])
    if case["name"] == WITHOUT_D1:
        at = case["names"].index(mice["names"])
        assert ours.df2 == pytest.approx(pooled.df[at]) and ours.p == pytest.approx(pooled.p[at])
    else:
        assert_same([ours.df2, ours.p], [mice["df2"], mice["p"]])
    without_limit = pool_estimates(case["estimates"], case["covariances"], names=case["names"]).test(mice["names"])
    assert_same([without_limit.df2, without_limit.p], [mice["df2_unlimited"], mice["p_unlimited"]])


def test_there_are_cases_at_both_ends_of_missing_information() -> None:
    fmi = [case["fmi"] for case in SCALARS.values()]
    assert len(SCALARS) + len(MODELS) >= 20 and min(fmi) < 1e-5 and max(fmi) > 0.99
