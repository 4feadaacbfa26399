"""How results change with assumptions about missing values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import MultipleImputer, pool, pool_estimates, sensitivity
from otimpute.baselines import ChainedImputer, GaussianEMImputer
from otimpute.inference import Sensitivity
from otimpute.inference.sensitivity_analysis import Axis

IMPUTER = MultipleImputer(ChainedImputer(n_rounds=2), m=3, random_state=0)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    frame = pd.DataFrame(
        {"x": x, "income": 1 + x + rng.normal(size=150), "smoker": np.where(x + rng.normal(size=150) > 0, "yes", "no")}
    )
    frame.loc[rng.random(150) < 0.4, "income"] = None
    frame.loc[rng.random(150) < 0.4, "smoker"] = None
    return frame


def mean(table: pd.DataFrame) -> Any:
    return {"mean": table["income"].mean()}, table["income"].var() / len(table)


def two_means(table: pd.DataFrame) -> Any:
    smokes = (table["smoker"] == "yes").astype(float)
    return {"income": table["income"].mean(), "smoke": smokes.mean()}, [table["income"].var() / 150, smokes.var() / 150]


def made_up(amounts: list[float], estimates: list[float], unit: str = "", error: float = 0.5) -> Sensitivity:
    """Intervals of exactly 1 on both sides of the estimate, if ``error`` is 0.5."""
    pooled = [pool_estimates([each] * 2, [error**2] * 2, names=["b"], level=0.9544997361036416) for each in estimates]
    return Sensitivity(tuple({"income": each} for each in amounts), tuple(pooled), Axis("income", unit, tuple(amounts)))


def test_each_scenario_is_what_one_would_fit_by_hand(table: pd.DataFrame) -> None:
    result = sensitivity(IMPUTER, table, two_means, {"income": [0, 1.5], "smoker": [{"yes": 1}, {"yes": 3}]}, df_complete=149)
    assert result.scenarios == ({"income": 0, "smoker": {"yes": 1}}, {"income": 1.5, "smoker": {"yes": 3}})
    for scenario, pooled in zip(result.scenarios, result.pooled, strict=True):
        by_hand = pool(otimpute.inference.MultipleImputer(**IMPUTER.get_params(deep=False) | {"delta": scenario}).fit(table),
                       two_means, df_complete=149)  # fmt: skip
        pd.testing.assert_frame_equal(pooled.summary(), by_hand.summary(), check_exact=True)
    assert not hasattr(IMPUTER, "imputers_") and IMPUTER.delta is None


def test_scenarios_differ_by_delta_only_even_without_a_seed(table: pd.DataFrame) -> None:
    for random_state in (None, np.random.default_rng(0)):
        imputer = MultipleImputer(m=3, random_state=random_state)
        result = sensitivity(imputer, table, mean, {"income": [0, 0.5]})
        expected = 0.5 * table["income"].isna().mean()
        assert result.pooled[1].estimate[0] - result.pooled[0].estimate[0] == pytest.approx(expected, rel=1e-9)


def test_the_summary_has_a_row_per_scenario_and_parameter(table: pd.DataFrame) -> None:
    result = sensitivity(IMPUTER, table, two_means, {"income": [0, "0.5 sd", "1 sd"]}, level=0.9)
    frame = result.summary()
    assert list(frame.columns) == ["delta", "parameter", "estimate", "std_error", "low", "high", "p", "fmi"]
    assert frame["delta"].tolist() == [0, 0, 0.5, 0.5, 1, 1]
    assert frame["parameter"].tolist() == ["income", "smoke"] * 3
    assert frame["estimate"].tolist() == [value for each in result.pooled for value in each.estimate]
    assert "Estimates and 90 % intervals by shift of missing income (standard deviations)" in repr(result)


def test_the_summary_of_polars_tables_is_polars(table: pd.DataFrame) -> None:
    polars = pytest.importorskip("polars", reason="an optional package")
    result = sensitivity(IMPUTER, polars.from_pandas(table), lambda t: (t["income"].mean(), t["income"].var() / len(t)),
                         {"income": [0, 1]})  # fmt: skip
    assert isinstance(result.summary(), polars.DataFrame)


def test_a_delta_of_the_imputer_stays(table: pd.DataFrame) -> None:
    imputer = MultipleImputer(m=2, random_state=0, delta={"smoker": {"yes": 3}})
    result = sensitivity(imputer, table, two_means, {"income": [0, 1]})
    plain = sensitivity(MultipleImputer(m=2, random_state=0), table, two_means, {"income": [0, 1]})
    assert result.pooled[0].estimate[1] > plain.pooled[0].estimate[1]
    with pytest.raises(ValueError, match="given twice"):
        sensitivity(imputer, table, two_means, {"smoker": [{"yes": 1}]})


@pytest.mark.parametrize(
    ("amounts", "estimates", "unit", "tipping"),
    [
        ([0, 1, 2], [2.5, 1.5, 0.5], "", 1.5),  # the lower end is 1.5, 0.5, -0.5
        ([2, 0, 1], [0.5, 2.5, 1.5], "", 1.5),  # in any order
        ([0, 1, 2], [-2.5, -1.5, -0.5], "", 1.5),  # from below
        ([0, 1, 2], [0.0, 0.5, 1.5], "sd", 1.5),  # it ceases to contain 0
        ([-2, 0, 4], [2, 0, 2], "", -1.0),  # -1 and 2: the smaller one
        ([0, 4], [3, -3], "", 4 / 3),  # it begins at 4 / 3 and ceases at 8 / 3
        ([0, 1, 2], [2, 3, 4], "", None),
        ([0, 1], [0.1, 0.2], "", None),
        ([1], [2], "", None),
        ([1, 4], [2, 0], "odds", 2.0),  # half of the way in logarithms
        ([0.25, 1], [0, 2], "x", 0.5),
    ],
)
def test_the_tipping_point_is_where_the_interval_meets_null(
    amounts: list[float], estimates: list[float], unit: str, tipping: float | None
) -> None:
    result = made_up(amounts, estimates, unit)
    found = result.tipping_point()
    assert found == (None if tipping is None else pytest.approx(tipping, rel=1e-3))
    assert made_up(amounts, [each + 7 for each in estimates], unit).tipping_point("b", null=7) == (
        None if found is None else pytest.approx(found)
    )


@pytest.mark.parametrize("unit", ["", "sd", "x", "odds"])
def test_the_picture_shows_estimates_intervals_null_and_tipping_point(unit: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="an optional package")
    plt.switch_backend("Agg")
    result = made_up([1, 2, 4], [2.5, 1.5, 0.5], unit)
    (panel,) = result.plot("b")
    panel.figure.canvas.draw()
    assert any(list(line.get_ydata()) == [2.5, 1.5, 0.5] for line in panel.lines)
    assert any(list(line.get_ydata()) == [0, 0] for line in panel.lines)
    assert any(list(line.get_xdata()) == [result.tipping_point()] * 2 for line in panel.lines)
    assert [text.get_text() for text in panel.texts] == ["0", f"tipping point {result.tipping_point():.3g}"]
    assert list(panel.get_xticks()) == [1, 2, 4]
    assert panel.get_xscale() == ("log" if unit in ("x", "odds") else "linear")
    plt.close(panel.figure)


def test_the_picture_has_a_panel_per_parameter(table: pd.DataFrame) -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="an optional package")
    plt.switch_backend("Agg")
    panels = sensitivity(IMPUTER, table, two_means, {"smoker": [{"yes": 1}, {"yes": 2}]}).plot()
    assert [panel.get_ylabel() for panel in panels] == ["income, 95 % interval", "smoke, 95 % interval"]
    assert panels[0].get_title() == "no tipping point"
    plt.close(panels[0].figure)


def test_without_matplotlib_a_plot_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ModuleNotFoundError, match=r"plot\(\) needs the package 'matplotlib': pip install matplotlib"):
        made_up([0, 1], [0, 1]).plot()


@pytest.mark.parametrize(
    ("delta", "problem"),
    [
        ({}, "delta must be a dict of lists such as"),
        ([0, 1], "delta must be a dict of lists such as"),
        ({"income": []}, r"delta\['income'\] must be a list of at least one value"),
        ({"income": 0.5}, r"delta\['income'\] must be a list of at least one value"),
        ({"income": "0.5 sd"}, r"delta\['income'\] must be a list of at least one value"),
        ({"income": {"yes": 2}}, r"delta\['income'\] must be a list of at least one value"),
        ({"income": [0, float("nan")]}, "delta of column 'income' must be a number"),
        ({"income": [0, "a lot"]}, "delta of column 'income' must be a number"),
        ({"income": [0, 1, 1.0]}, r"delta\['income'\] must be another value in each scenario"),
        ({"income": [1, "0.5 sd"]}, "must be in the same unit in all scenarios"),
        ({"income": [0, "1.5 x"]}, "must be in the same unit in all scenarios"),
        ({"income": [0, 1], "smoker": [{"yes": 2}]}, "lists of the same length"),
        ({"smoker": [{"yes": 2}, {"no": 2}]}, "odds of the same one category"),
        ({"smoker": [1, {"no": 2}]}, "odds of the same one category"),
        ({"income": [{"yes": 2}]}, "column 'income' holds numbers"),
        ({"smoker": [0, 1]}, "column 'smoker' holds labels"),
        ({"incom": [0, 1]}, "a column in delta must be one of 'income', 'smoker', 'x', got 'incom'; did you mean 'income'"),
        ({"x": [0, 1]}, "column 'x', which has no missing values, so nothing would be shifted"),
    ],
)
def test_what_no_scenarios_can_be_is_refused(table: pd.DataFrame, delta: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        sensitivity(IMPUTER, table, mean, delta)


def test_other_imputers_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(TypeError, match=r"imputer must be a MultipleImputer or None.*pass MultipleImputer\(imputer=\.\.\.\)"):
        sensitivity(ChainedImputer(), table, mean, {"income": [0]})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta needs the default imputer or a ChainedImputer, got GaussianEMImputer"):
        sensitivity(MultipleImputer(GaussianEMImputer()), table, mean, {"income": [0]})


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="parameter must be one of b, got 'a'"):
        made_up([0, 1], [0, 1]).tipping_point("a")
    with pytest.raises(ValueError, match="parameter must be one of b, got 'a'"):
        made_up([0, 1], [0, 1]).plot("a")
