"""scikit-learn's own checks, on every imputer, and again on tables that really have holes."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from otimpute import AutoImputer, MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from otimpute.baselines import (
    ExtraTreesImputer,
    GAINImputer,
    GaussianEMImputer,
    GaussianMixtureImputer,
    ICEImputer,
    KernelRidgeImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
    MIWAEImputer,
    SoftImputer,
    VAEACImputer,
)
from otimpute.estimator import BaseImputer


class LosesEntries:
    """An imputer that loses every seventh entry of what it is given, except in tables too small to spare one.

    scikit-learn's checks feed almost no missing value: without this a mean imputer would pass them. Entries are lost
    by their value, so that a row loses the same ones wherever it stands (checks compare batches with single rows).
    Training values are optimised jointly and new rows alone, so fit_transform differs from fit and transform on purpose;
    scikit-learn compares the two, hence here the first is made of the second.
    """

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X, y).transform(X)  # type: ignore[attr-defined]

    def _as_table(self, read: Any, encoding: Any) -> Any:
        table = super()._as_table(read, encoding)  # type: ignore[misc]
        in_training = not self.__sklearn_is_fitted__()  # type: ignore[attr-defined]
        if isinstance(table.source, nw.DataFrame) or (in_training and min(table.missing.shape) < 3):
            return table
        bits = np.ascontiguousarray(table.values, dtype=np.float64).view(np.uint64)
        lost = (bits * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)) % np.uint64(7) == 0
        if in_training:
            lost[:, lost.all(axis=0)] = False
        table.missing[:] |= lost
        return table


QUICK: dict[type[BaseImputer], dict[str, Any]] = {
    AutoImputer: {"experts": ["gaussian_em", "gaussian_mixture", "kernel_ridge"], "n_splits": 1},
    SinkhornImputer: {"max_steps": 20},
    RoundRobinImputer: {"max_cycles": 1, "n_updates": 2, "n_pairs": 2},
    MeanImputer: {},
    KNNImputer: {},
    ICEImputer: {"max_iter": 2},
    MissForestImputer: {"n_estimators": 3, "max_iter": 2},
    GaussianEMImputer: {},
    GaussianMixtureImputer: {"n_components": (2, 3)},
    ExtraTreesImputer: {"n_estimators": 2, "n_rounds": 2},
    KernelRidgeImputer: {},
    SoftImputer: {"n_penalties": 5},
}
if find_spec("torch"):
    QUICK[MetaSinkhornImputer] = {"max_steps": 5}
    QUICK[MIWAEImputer] = {"max_steps": 5, "n_imputation_samples": 20}
    QUICK[GAINImputer] = {"max_steps": 5}
    QUICK[VAEACImputer] = {"max_steps": 5, "depth": 1, "width": 16}


def _punched(kind: type[BaseImputer]) -> Any:
    name = f"Punched{kind.__name__}"
    if name not in globals():  # pickle looks classes up by their name
        globals()[name] = type(name, (LosesEntries, kind), {"__init__": kind.__init__, "__module__": __name__})
    return globals()[name](**QUICK[kind])


def _not_repeated_rows(estimator: BaseImputer) -> dict[str, str]:
    """Checks that fail on purpose."""
    name = "check_sample_weight_equivalence_on_dense_data"
    if not estimator.weighs_rows:
        return dict.fromkeys([name, "check_sample_weights_not_overwritten"], "cannot weigh rows, and says so")
    if isinstance(estimator, LosesEntries) and not isinstance(estimator, MeanImputer):
        return {name: "only ratios of weights matter, beside a prior and random numbers (tests/baselines/test_row_weights.py)"}
    return {}


@parametrize_with_checks(
    [make for kind, quick in QUICK.items() for make in (kind(**quick), _punched(kind))],
    expected_failed_checks=_not_repeated_rows,
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        # Some checks pass single rows and empty columns on purpose; that we warn of them is tested elsewhere.
        warnings.simplefilter("ignore")
        check(estimator)


def test_the_punched_imputer_does_lose_entries() -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    changed = _punched(SinkhornImputer).fit_transform(X) != X
    assert 0.05 < changed.mean() < 0.3
