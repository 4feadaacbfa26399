"""Missing with a probability that follows a logistic model of the values.

Every column with logistic holes has a linear predictor, a random combination of its inputs, brought to unit variance over the
rows; an intercept of its own makes the probabilities of its entries average to the rate.
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
    """Some columns stay observed, and values of the others are hidden by a logistic model of these: missing at random.

    Parameters
    ----------
    rate : float
        Expected share of hidden values in each of the other columns, in [0, 1).
    observed_fraction : float
        Share of the columns that stay observed: rounded down, but at least one. They are drawn at random.

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
    """Values are hidden by a logistic model of columns that have holes themselves: missing not at random.

    Parameters
    ----------
    rate : float
        Expected share of hidden values in each column, in [0, 1).
    input_fraction : float
        Share of the columns that are inputs of the model: rounded down, but at least one. They are drawn at random, and
        their own values hidden completely at random.
    all_inputs : bool
        Let every column be an input of the model of every column, itself included; ``input_fraction`` then counts for
        nothing.

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
    """A value is hidden by a logistic model of itself: in some columns rather the large ones, in others the small ones.

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
            f"the logistic model needs a column besides its inputs, got {d} of which {inputs.size} are inputs; "
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
    # Were all predictors equal to the largest, or to the smallest, logit(rate) − that would be it: the root lies between.
    # The margin of 1 keeps the signs at both ends apart when all are equal.
    low, high = logit(rate) - predictor.max() - 1, logit(rate) - predictor.min() + 1
    return float(brentq(lambda intercept: expit(predictor + intercept).mean() - rate, low, high))


def _standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns at mean 0 and variance 1, outliers left as they are; constant columns at 0."""
    return Standardiser.fit(X, np.zeros(X.shape, dtype=bool), robust=False).apply(X)
