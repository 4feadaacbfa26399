"""The only place where truth meets imputation."""

from __future__ import annotations

import math
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..baselines import MeanImputer
from ..datasets import load_dataset
from ..estimator import BaseImputer
from ..metrics import (
    MOST_ROWS,
    energy_distance,
    mae,
    marginal_wasserstein1,
    rmse,
    sliced_wasserstein2,
    wasserstein2,
)
from ..registry import make_imputer, make_mechanism
from .record import Record
from .task import Task

_PACKAGES = ("otimpute", "numpy", "scipy", "scikit-learn", "numba", "POT", "torch")
_LONGEST_ERROR = 4000
_MOST_WARNINGS = 5
_SAME = 1e-6  # in standard deviations


METRICS: dict[str, Callable[[Any, Any, Any], float]] = {  # those named in record.SCORES
    "mae": mae,
    "rmse": rmse,
    "energy_distance": energy_distance,
    "sliced_wasserstein2": sliced_wasserstein2,
    "marginal_wasserstein1": lambda *tables: float(np.nanmean(marginal_wasserstein1(*tables))),
    "wasserstein2": wasserstein2,
}


def run_task(task: Task, data_home: str | Path | None = None) -> Record:
    """Hide values, let the method fill them in, score it. A failure is a record too."""
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = impute_and_score(task, load_dataset(task.dataset, data_home=data_home).values)
    except (Exception, SystemExit):  # a benchmark outlives any method: what went wrong is the result
        result = {"status": "failed", "error": traceback.format_exc()[-_LONGEST_ERROR:]}
    else:
        messages = dict.fromkeys(f"{each.category.__name__}: {each.message}" for each in caught)
        result["warnings"] = tuple(message[:300] for message in list(messages)[:_MOST_WARNINGS])
    result["seconds"] = {**result.get("seconds", {}), "task": time.perf_counter() - begun}
    return Record(task, versions=versions(), **result)


def impute_and_score(task: Task, X: NDArray[np.float64]) -> dict[str, Any]:
    """The fields of a record that come from imputing a complete table."""
    X_complete = whiten(X)
    missing = make_mechanism(task.mechanism, task.rate, task.options).sample(X_complete, task.generator_of_holes())
    X_incomplete = np.where(missing, np.nan, X_complete)
    train, test = split(task, len(X))
    imputer = make_imputer(task.imputer, task.parameters, random_state=task.seed)

    before = _peak_mib()
    started = time.perf_counter()
    imputed = {"train": _call(imputer.fit_transform, X_incomplete[train])}
    seconds = {"fit": time.perf_counter() - started}
    if len(test):
        started = time.perf_counter()
        imputed["test"] = _call(imputer.transform, X_incomplete[test])
        seconds["transform"] = time.perf_counter() - started
    peak = _peak_mib()

    rows = {"train": train, "test": test}
    means = MeanImputer().fit(X_incomplete[train]).means_
    flags, scores, lost = [], {}, []
    for part, X_imputed in imputed.items():
        useless = unusable(part, X_incomplete[rows[part]], X_imputed)
        if not useless:
            flags += suspicious(part, imputer, X_incomplete[rows[part]], X_imputed, means)
            scores[part] = _score(X_complete[rows[part]], X_imputed, missing[rows[part]])
            useless = [f"{part}: {name} is {value}" for name, value in scores[part].items() if not math.isfinite(value)]
        lost += useless
    return {
        "status": "failed" if lost else "ok",
        "error": "; ".join(lost),
        "scores": {} if lost else scores,
        "seconds": seconds,
        "peak_mib": peak,
        "added_mib": peak - before,
        "flags": tuple(flags),
        "n": X.shape[0],
        "d": X.shape[1],
        "n_missing": int(missing.sum()),
    }


def _call(method: Callable[[Any], Any], X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(method(X.copy()), dtype=np.float64)  # a copy: a method that writes into its input must not see the truth


def whiten(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre columns and bring them to unit variance; columns with one value become 0.

    >>> whiten(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    varying = X.max(axis=0) > X.min(axis=0)
    spread = np.where(varying, X.std(axis=0), 1.0)
    return np.where(varying, (X - X.mean(axis=0)) / spread, 0.0)


def split(task: Task, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to fit on and rows to keep for the test, each in their order."""
    order = task.generator_of_split().permutation(n)
    n_test = round(task.test_fraction * n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def unusable(part: str, X_incomplete: NDArray[np.float64], X_imputed: NDArray[np.float64]) -> list[str]:
    """Why a result cannot be scored: it has another shape, or holes still."""
    if X_imputed.shape != X_incomplete.shape:
        return [f"{part}: shape {X_imputed.shape} instead of {X_incomplete.shape}"]
    left = int((~np.isfinite(X_imputed)).sum())
    return [f"{part}: leaves {left} NaN or infinite values"] if left else []


def suspicious(
    part: str,
    imputer: BaseImputer,
    X_incomplete: NDArray[np.float64],
    X_imputed: NDArray[np.float64],
    means: NDArray[np.float64],
) -> list[str]:
    """What is wrong with a result, however good its scores: observed values changed, or nothing but column means."""
    missing = np.isnan(X_incomplete)
    flags = []
    changed = int((X_imputed != X_incomplete)[~missing].sum())
    if changed:
        flags.append(f"{part}: changes {changed} observed values")
    holes = missing & (np.ptp(X_imputed, axis=0) > 0)  # a constant column has nothing but its mean
    if holes.any() and not isinstance(imputer, MeanImputer) and (np.abs(X_imputed - means)[holes] < _SAME).all():
        flags.append(f"{part}: equals the column mean")
    return flags


def _score(X_true: NDArray[np.float64], X_imputed: NDArray[np.float64], missing: NDArray[np.bool_]) -> dict[str, float]:
    if not missing.any():
        return {}
    too_many = missing.any(axis=1).sum() > MOST_ROWS
    return {
        name: metric(X_true, X_imputed, missing)
        for name, metric in METRICS.items()
        if not (name == "wasserstein2" and too_many)
    }


def _peak_mib() -> float:
    """Largest memory this process has held so far, in MiB."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return 0.0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@cache
def versions() -> dict[str, str]:
    """What the result may depend on."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
