"""Missingness with probabilities given by a logistic model of the values.

Each such column has a linear predictor: a random combination of the inputs, scaled to unit variance over the rows. Its
intercept is chosen so that the probabilities average to the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from .._checks import check_flag, check_real
from ..table import Standardiser
from .mechanism import Mechanism, draw_columns


@dataclass(frozen=True)
class LogisticMAR(Mechanism):
    """Hide values by a logistic model of some columns, which stay complete: missing at random.

    Parameters
    ----------
    rate : float
        Expected fraction of hidden values in each of the other columns, in [0, 1).
    observed_fraction : float
        Fraction of the columns that stay complete: rounded down, but at least one. They are drawn at random.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> LogisticMAR(0.3).sample(X, 0).mean(axis=0).round(1).tolist()
    [0.0, 0.3, 0.3, 0.3]
    """

    observed_fraction: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("observed_fraction", self.observed_fraction, above=0, below=1)

    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return _given_some_columns(X, self.observed_fraction, self.rate, 0.0, rng)


@dataclass(frozen=True)
class LogisticMNAR(Mechanism):
    """Hide values by a logistic model of columns that have missing values themselves: missing not at random.

    Parameters
    ----------
    rate : float
        Expected fraction of hidden values in each column, in [0, 1).
    input_fraction : float
        Fraction of the columns that are inputs of the model: rounded down, but at least one. They are drawn at random, and
        their own values are hidden completely at random.
    all_inputs : bool
        Whether every column is an input of the model of every column, itself included; ``input_fraction`` is then ignored.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> LogisticMNAR(0.3).sample(X, 0).mean(axis=0).round(1).tolist()
    [0.3, 0.3, 0.3, 0.3]
    """

    input_fraction: float = 0.3
    all_inputs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("input_fraction", self.input_fraction, above=0, below=1)
        check_flag("all_inputs", self.all_inputs)

    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        if self.all_inputs:
            return _given_inputs(X, X.shape[1], self.rate, rng)
        return _given_some_columns(X, self.input_fraction, self.rate, self.rate, rng)


@dataclass(frozen=True)
class LogisticSelfMNAR(Mechanism):
    """Hide values by a logistic model of the value itself (self-masking): large values in some columns, small in others.

    >>> X = np.random.default_rng(0).normal(size=(1000, 1))
    >>> missing = LogisticSelfMNAR(0.3).sample(X, 0)
    >>> bool(abs(X[missing].mean() - X[~missing].mean()) > 0.5)
    True
    """

    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return _averaging_to(self.rate, _standardised(X) * rng.choice([-1.0, 1.0], size=X.shape[1]))


def _given_some_columns(
    X: NDArray[np.float64], fraction: float, rate: float, input_rate: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    d = X.shape[1]
    inputs = draw_columns(d, fraction, rng)
    others = np.setdiff1d(np.arange(d), inputs)
    if not others.size:
        raise ValueError(
            f"the logistic model needs a column besides its inputs, got {d} columns of which {inputs.size} are inputs; "
            "pass more columns, or use MCAR or LogisticSelfMNAR, which need no inputs"
        )
    probabilities = np.full(X.shape, input_rate)
    probabilities[:, others] = _given_inputs(X[:, inputs], others.size, rate, rng)
    return probabilities


def _given_inputs(inputs: NDArray[np.float64], n_columns: int, rate: float, rng: np.random.Generator) -> NDArray[np.float64]:
    weights = rng.normal(size=(inputs.shape[1], n_columns))
    return _averaging_to(rate, _standardised(_standardised(inputs) @ weights))


def _averaging_to(rate: float, predictors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logistic probabilities of ``predictors``, each column shifted so that they average to ``rate``."""
    if rate == 0:
        return np.zeros(predictors.shape)
    return np.column_stack([expit(column + _intercept(column, rate)) for column in predictors.T])


def _intercept(predictor: NDArray[np.float64], rate: float) -> float:
    # If all predictors were equal to p, the root would be logit(rate) − p; so it lies between those of the extremes.
    # The margin of 1 gives the two ends different signs even if all predictors are equal.
    low, high = logit(rate) - predictor.max() - 1, logit(rate) - predictor.min() + 1
    return float(brentq(lambda intercept: expit(predictor + intercept).mean() - rate, low, high))


def _standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale columns to mean 0 and variance 1; constant columns become 0."""
    return Standardiser.fit(X, np.zeros(X.shape, dtype=bool), robust=False).apply(X)
