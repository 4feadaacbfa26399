"""Run a task: hide values, impute them, and score the result against the true values."""

from __future__ import annotations

import math
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..baselines import MeanImputer
from ..catalogue import METRICS, draws_at_random, make_imputer, make_mechanism
from ..datasets import load_dataset
from ..estimator import BaseImputer
from ..imputers import FitInParts, descend_together
from ..metrics import MOST_ROWS
from .record import Record, Status
from .task import Task

_PACKAGES = ("otimpute", "numpy", "scipy", "scikit-learn", "numba", "POT", "torch")
_LONGEST_ERROR = 4000
_MOST_WARNINGS = 5
_SAME = 1e-6  # in standard deviations


def run_task(task: Task, data_home: str | Path | None = None) -> Record:
    """Hide values, impute them and score the result. A failure gives a record too."""
    return run_tasks([task], data_home)[0]


def run_tasks(tasks: Sequence[Task], data_home: str | Path | None = None) -> list[Record]:
    """Run several tasks; fits that run together on a GPU get equal shares of the time."""
    begun = time.perf_counter()
    trials = [_Trial(task) for task in tasks]
    for trial in trials:
        trial.attempt(partial(trial.load, data_home))
    started = time.perf_counter()
    for trial in trials:
        trial.attempt(trial.begin_fit)
    descend_together([trial.fit for trial in trials if not trial.failed])
    for trial in trials:
        trial.attempt(trial.end_fit)
    fit_seconds = time.perf_counter() - started
    for trial in trials:
        trial.attempt(trial.score)
    shares = {"fit": fit_seconds / len(tasks), "task": (time.perf_counter() - begun) / len(tasks)}
    return [trial.record(shares, len(tasks)) for trial in trials]


def impute_and_score(task: Task, X: NDArray[np.float64]) -> None:
    """Run a task on the given complete table, and let exceptions through."""
    trial = _Trial(task)
    trial.hide(X)
    trial.begin_fit()
    descend_together([trial.fit])
    trial.end_fit()
    trial.score()


class _Trial:
    """A task while it runs."""

    def __init__(self, task: Task):
        self._task = task
        self._seconds: dict[str, float] = {}
        self._warnings: dict[str, None] = {}  # an ordered set
        self._error = ""
        self._scored: dict[str, Any] = {}

    def attempt(self, part: Callable[[], None]) -> None:
        """Run a part unless an earlier one failed; an exception becomes the result instead of ending the benchmark."""
        if self._error:
            return
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                part()
        except (Exception, SystemExit):
            self._error = traceback.format_exc()[-_LONGEST_ERROR:]
        self._warnings |= dict.fromkeys(f"{each.category.__name__}: {each.message}" for each in caught)

    def load(self, data_home: str | Path | None) -> None:
        """Load the task's data set and hide values."""
        self.hide(load_dataset(self._task.dataset, data_home=data_home).values)

    def hide(self, X: NDArray[np.float64]) -> None:
        """Hide values of a complete table."""
        task = self._task
        self._X_complete = whiten(X)
        mechanism = make_mechanism(task.mechanism, task.rate, task.options)
        self._missing = mechanism.sample(self._X_complete, task.generator_of_holes())
        self._X_incomplete = np.where(self._missing, np.nan, self._X_complete)
        self._train, self._test = split(task, len(X))
        self._imputer = make_imputer(task.imputer, task.parameters, random_state=task.seed)
        self._peak_before = _peak_mib()

    def begin_fit(self) -> None:
        """Start to fit; the caller measures the time, as several tasks may be fitted together."""
        X = self._X_incomplete[self._train].copy()  # in case a method writes into its input
        self.fit = FitInParts(self._imputer, X)
        self.fit.prepare()

    def end_fit(self) -> None:
        """Finish the fit, and impute the training rows."""
        self.fit.finish()
        self._imputed = {"train": np.asarray(self.fit.completed, dtype=np.float64)}

    @property
    def failed(self) -> bool:
        """Whether a part has failed."""
        return bool(self._error)

    def score(self) -> None:
        """Impute the test rows and score everything."""
        if len(self._test):
            started = time.perf_counter()
            completed = self._imputer.transform(self._X_incomplete[self._test].copy())
            self._imputed["test"] = np.asarray(completed, dtype=np.float64)
            self._seconds["transform"] = time.perf_counter() - started
        peak = _peak_mib()
        draws = self._draw()

        task, rows = self._task, {"train": self._train, "test": self._test}
        means = MeanImputer().fit(self._X_incomplete[self._train]).means_
        flags, scores, lost = [], {}, []
        for part, X_imputed in self._imputed.items():
            X_incomplete = self._X_incomplete[rows[part]]
            useless = unusable(part, X_incomplete, X_imputed)
            if not useless:
                flags += suspicious(part, self._imputer, X_incomplete, X_imputed, means)
                scores[part] = _score(self._X_complete[rows[part]], draws[part], self._missing[rows[part]], task.n_draws > 1)
                useless = [f"{part}: {name} is {value}" for name, value in scores[part].items() if not math.isfinite(value)]
            lost += useless
        n, d = self._X_complete.shape
        self._scored = {
            "status": Status.FAILED if lost else Status.OK,
            "error": "; ".join(lost),
            "scores": {} if lost else scores,
            "peak_mib": peak,
            "added_mib": peak - self._peak_before,
            "flags": tuple(flags),
            "n": n,
            "d": d,
            "n_missing": int(self._missing.sum()),
        }

    def _draw(self) -> dict[str, list[NDArray[np.float64]]]:
        """Return the imputed parts and, if the method draws and draws are scored, those of fits with other seeds."""
        task, draws = self._task, {part: [X_imputed] for part, X_imputed in self._imputed.items()}
        if task.n_draws > 1 and draws_at_random(task.imputer, task.parameters):
            started = time.perf_counter()
            for seed in task.seeds_of_draws():
                imputer = make_imputer(task.imputer, task.parameters, random_state=seed)
                draws["train"].append(np.asarray(imputer.fit_transform(self._X_incomplete[self._train].copy())))
                if "test" in draws:
                    draws["test"].append(np.asarray(imputer.transform(self._X_incomplete[self._test].copy())))
            self._seconds["draws"] = time.perf_counter() - started
        return draws

    def record(self, shares: Mapping[str, float], n_together: int) -> Record:
        """Return the record; ``shares`` are this task's shares of the times that tasks spent together."""
        if self._error:
            seconds = {"task": shares["task"]}
            return Record(self._task, Status.FAILED, self._error, seconds=seconds, n_together=n_together, versions=versions())
        messages = tuple(message[:300] for message in list(self._warnings)[:_MOST_WARNINGS])
        return Record(
            self._task,
            seconds={**self._seconds, **shares},
            n_together=n_together,
            warnings=messages,
            versions=versions(),
            **self._scored,
        )


def whiten(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale columns to mean 0 and unit variance; constant columns become 0.

    >>> whiten(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    varying = X.max(axis=0) > X.min(axis=0)
    spread = np.where(varying, X.std(axis=0), 1.0)
    return np.where(varying, (X - X.mean(axis=0)) / spread, 0.0)


def split(task: Task, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training rows and the test rows, each sorted."""
    order = task.generator_of_split().permutation(n)
    n_test = round(task.test_fraction * n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def unusable(part: str, X_incomplete: NDArray[np.float64], X_imputed: NDArray[np.float64]) -> list[str]:
    """Return why a result cannot be scored: a wrong shape, or values still missing."""
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
    """Return what is suspicious about a result: changed observed values, or only column means."""
    missing = np.isnan(X_incomplete)
    flags = []
    changed = int((X_imputed != X_incomplete)[~missing].sum())
    if changed:
        flags.append(f"{part}: changes {changed} observed values")
    holes = missing & (np.ptp(X_imputed, axis=0) > 0)  # in a constant column every imputation is the mean
    if holes.any() and not isinstance(imputer, MeanImputer) and (np.abs(X_imputed - means)[holes] < _SAME).all():
        flags.append(f"{part}: equals the column mean")
    return flags


def _score(
    X_true: NDArray[np.float64], draws: Sequence[NDArray[np.float64]], missing: NDArray[np.bool_], score_draws: bool
) -> dict[str, float]:
    """Score the first of the draws and, if asked to, all of them; a single one stands for a method without randomness."""
    if not missing.any():
        return {}
    too_many = missing.any(axis=1).sum() > MOST_ROWS
    scores = {
        name: metric.load()(X_true, draws[0], missing)
        for name, metric in METRICS.items()
        if not (metric.of_draws or (metric.few_rows and too_many))
    }
    if score_draws:
        of_draws = {name: metric.load() for name, metric in METRICS.items() if metric.of_draws}
        scores |= {name: metric(X_true, draws, missing, fair=len(draws) > 1) for name, metric in of_draws.items()}
    return {name: float(np.nanmean(score)) if np.ndim(score) else score for name, score in scores.items()}


def _peak_mib() -> float:
    """Return the peak memory of this process so far, in MiB."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return 0.0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that may affect the result."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
