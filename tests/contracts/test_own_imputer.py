"""An imputer that somebody wrote outside of the package does all that otimpute's do, except be saved."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from inspect import getsource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otimpute
from every_imputer import grouped_table
from otimpute.benchmark import load_suite, run_suite
from otimpute.estimator import BaseImputer
from otimpute.fitting import CellFit, ColumnLayout, FitSummary


@dataclass(frozen=True)
class Quantiles:
    at: np.ndarray

    def impute_cells(self, values: np.ndarray, missing: np.ndarray, start: Any = None) -> np.ndarray:
        return self.at[np.nonzero(missing)[1]]


class QuantileImputer(BaseImputer):
    """Fill every missing value with a quantile of its column."""

    def __init__(self, *, share: float = 0.5, **table: Any):
        super().__init__(**table)
        self.share = share

    def check_parameters(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be from 0 to 1, got {self.share}")

    def fit_cells(
        self,
        values: np.ndarray,
        missing: np.ndarray,
        layout: ColumnLayout,
        *,
        seed: int,
        start: Any = None,
        deadline: float = math.inf,
    ) -> CellFit:
        assert values.shape[1] == len(layout)
        model = Quantiles(np.nanquantile(np.where(missing, np.nan, values), self.share, axis=0))
        return CellFit(model.impute_cells(values, missing), model, FitSummary(n_steps=1, converged=True))


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(grouped_table()[1])


def test_it_fills_tables_of_all_kinds(frame: pd.DataFrame) -> None:
    imputer = QuantileImputer(integers="float")
    filled = imputer.fit_transform(frame)
    assert not filled.isna().any(axis=None)
    np.testing.assert_allclose(filled["size"][frame["size"].isna()], frame["size"].median())
    pd.testing.assert_frame_equal(imputer.transform(frame), filled)
    assert imputer.get_params()["share"] == 0.5
    assert "constraints" in imputer.get_params()
    assert "settled after 1 round" in imputer._repr_html_()


def test_it_is_an_expert(frame: pd.DataFrame) -> None:
    imputer = otimpute.AutoImputer(["gaussian_em", QuantileImputer(share=0.4)], n_splits=1, random_state=0)
    filled = imputer.fit_transform(frame)
    assert not filled.isna().any(axis=None)
    assert "QuantileImputer" in imputer.scores_["size"]
    pd.testing.assert_frame_equal(imputer.transform(frame)[["size"]].isna(), filled[["size"]].isna())


def test_it_is_reported_on(frame: pd.DataFrame) -> None:
    report = otimpute.report(QuantileImputer().fit(frame), frame)
    assert "QuantileImputer" in {each["method"] for each in report.as_dict()["check"]["methods"]}


def test_it_cannot_be_saved(frame: pd.DataFrame, tmp_path: Any) -> None:
    with pytest.raises(TypeError, match="QuantileImputer is a class of your own, and model files hold"):
        QuantileImputer().fit(frame).save(tmp_path / "model.otimpute")
    with pytest.raises(TypeError, match="QuantileImputer is a class of your own"):
        otimpute.AutoImputer([QuantileImputer()], n_splits=1).fit(frame).save(tmp_path / "model.otimpute")


def test_its_parameters_are_checked_wherever_it_is_used(frame: pd.DataFrame) -> None:
    for imputer in (QuantileImputer(share=2), otimpute.AutoImputer([QuantileImputer(share=2)])):
        with pytest.raises(ValueError, match="share must be from 0 to 1, got 2"):
            imputer.fit(frame)


def test_it_takes_part_in_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are processes of their own, which import the module that a suite names."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    imports = Path(__file__).read_text().partition("import pytest\n")[0].partition('"""\n')[2]
    ours = "\nfrom otimpute.estimator import BaseImputer\nfrom otimpute.fitting import CellFit, ColumnLayout, FitSummary\n\n"
    (tmp_path / "my_imputers.py").write_text(imports + ours + getsource(Quantiles) + "\n\n" + getsource(QuantileImputer))
    (tmp_path / "suite.yaml").write_text(
        "description: mine\ndatasets: [iris]\nsettings: [{mechanism: mcar, rate: 0.3}]\nseeds: 1\n"
        "methods:\n  mean:\n  mine: {imputer: 'my_imputers:QuantileImputer', share: 0.4}\n"
    )
    report = run_suite(load_suite(tmp_path / "suite.yaml"), tmp_path / "records")
    scores = {record.task.method: record.scores["train"]["rmse"] for record in report.done}
    assert scores.keys() == {"mean", "mine"}
    assert scores["mean"] < scores["mine"] < 2


class WeighingImputer(QuantileImputer):
    """Fills in weighted means."""

    weighs_rows = True

    def fit_cells(
        self, values: np.ndarray, missing: np.ndarray, *args: Any, sample_weight: Any = None, **options: Any
    ) -> CellFit:
        if sample_weight is None:
            return super().fit_cells(values, missing, *args, **options)
        means = [np.average(x[~holes], weights=sample_weight[~holes]) for x, holes in zip(values.T, missing.T, strict=True)]
        model = Quantiles(np.array(means))
        return CellFit(model.impute_cells(values, missing), model)


def test_it_gets_weights_of_rows_if_it_asks_for_them(frame: pd.DataFrame) -> None:
    X = np.column_stack([np.arange(20.0), np.r_[np.nan, np.arange(19.0)]])
    weight = np.r_[1.0, 3.0, np.ones(18)]
    filled = WeighingImputer().fit_transform(X, sample_weight=weight)
    assert filled[0, 1] == pytest.approx(np.average(np.arange(19.0), weights=weight[1:]))
    assert WeighingImputer().fit_transform(X)[0, 1] == 9.0  # the median: no weights, no keyword
    weight = np.random.default_rng(0).random(len(frame))
    experts = ["gaussian_em", WeighingImputer()]
    assert otimpute.AutoImputer(experts, n_splits=1, random_state=0).fit(frame, sample_weight=weight).left_out_ == {}
    with pytest.raises(ValueError, match="sample_weight cannot be used by QuantileImputer"):
        QuantileImputer().fit(frame, sample_weight=weight)


def test_scikit_learn_routes_weights_to_it() -> None:
    from sklearn import config_context
    from sklearn.pipeline import make_pipeline

    X, weight = np.column_stack([np.arange(9.0), np.r_[np.nan, np.arange(8.0)]]), np.r_[1.0, 5.0, np.ones(7)]
    expected = WeighingImputer().fit(X, sample_weight=weight).transform(X)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(WeighingImputer().set_fit_request(sample_weight=True)).fit(X, sample_weight=weight)
        np.testing.assert_array_equal(routed.transform(X), expected)
