"""What an analysis of one table returned, as named estimates and their covariance.

Results of other packages are told by their attributes, so none of them is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._text import count, listed
from .rubin import Floats

_ACCEPTED = (
    "a pair (estimates, covariance), a statsmodels result, a lifelines fitter or a linear model with coef_ and sigma_, "
    "their covariance"
)
_LARGEST_ASYMMETRY = 1e-6  # relative to the standard errors


@dataclass(frozen=True, eq=False)
class AnalysisResult:
    """Estimates of named parameters from one table.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters; their positions if they have none.
    estimates : array of shape [K]
        Estimates.
    covariance : array of shape [K, K]
        Their covariance.
    knows_covariances : bool
        False if only variances were given: other entries of ``covariance`` are 0.
    df : float
        Degrees of freedom of the analysis; infinite if it does not say.
    """

    names: tuple[str, ...]
    estimates: Floats
    covariance: Floats
    knows_covariances: bool = True
    df: float = math.inf

    def in_order_of(self, names: tuple[str, ...]) -> AnalysisResult:
        """The same result with parameters in the order of ``names``.

        Raises
        ------
        ValueError
            If there are others.
        """
        if names == self.names:
            return self
        if set(names) != set(self.names):
            raise ValueError(
                f"the analysis returned {count(len(self.names), 'parameter')} ({listed(self.names)}), but "
                f"{count(len(names), 'parameter')} ({listed(names)}) in tables[0]; every table must give the same parameters: "
                "fix the categories of columns, or select what to return"
            )
        order = [self.names.index(name) for name in names]
        covariance = self.covariance[np.ix_(order, order)]
        return AnalysisResult(names, self.estimates[order], covariance, self.knows_covariances, self.df)


def read_result(returned: Any) -> AnalysisResult:
    """Read what an analysis returned.

    Raises
    ------
    ValueError
        If it cannot be pooled; the message says why.

    Examples
    --------
    >>> read_result(({"age": 0.5, "dose": 1.5}, [0.01, 0.04])).names
    ('age', 'dose')
    >>> read_result("p < 0.05")
    Traceback (most recent call last):
    ValueError: the analysis returned 'p < 0.05'; return a pair (estimates, covariance), ...
    """
    if isinstance(returned, tuple) and len(returned) == 2:
        return _named_result(*returned)
    if hasattr(returned, "params") and callable(getattr(returned, "cov_params", None)):  # statsmodels
        names = getattr(getattr(returned, "model", None), "exog_names", None)
        return _named_result(returned.params, returned.cov_params(), names, df=getattr(returned, "df_resid", None))
    if hasattr(returned, "params_") and hasattr(returned, "variance_matrix_"):  # lifelines
        return _named_result(returned.params_, returned.variance_matrix_)
    if hasattr(returned, "coef_"):  # scikit-learn
        if not hasattr(returned, "sigma_"):
            raise ValueError(
                f"the analysis returned {_described(returned)}, which has no covariance of its coefficients (sigma_); "
                "return a pair (estimates, covariance)"
            )
        names = getattr(returned, "feature_names_in_", None)
        return _named_result(np.squeeze(returned.coef_), returned.sigma_, names)
    raise ValueError(f"the analysis returned {_described(returned)}; return {_ACCEPTED}")


def _named_result(estimates: Any, covariance: Any, names: Sequence[Any] | None = None, df: Any = None) -> AnalysisResult:
    """``names`` are for what has none itself; they are ignored unless there are as many."""
    labels, values = _labelled("estimates", estimates)
    array = _floats("estimates", values)
    if array.ndim > 1 or not array.size:
        raise ValueError(f"the estimates must be a number or a vector, got an array of shape {array.shape}")
    array = np.atleast_1d(array)
    k = len(array)
    own, values = _labelled("covariance", covariance)
    matrix = _in_order_of(labels, own, _covariance(values, k))
    given = tuple(map(_name, names)) if names is not None and len(names) == k else ()
    called = labels or own or given or position_names(k)
    if len(set(called)) < k:
        raise ValueError(f"parameters must have different names, got {listed(called)}")
    check_numbers(called, array, matrix)
    has_df = isinstance(df, Real) and not math.isnan(df)
    only_variances = k > 1 and np.ndim(values) < 2
    return AnalysisResult(called, array, matrix, not only_variances, float(df) if has_df else math.inf)


def position_names(k: int) -> tuple[str, ...]:
    """Names of parameters that have none.

    >>> position_names(1), position_names(3)
    (('estimate',), ('0', '1', '2'))
    """
    return ("estimate",) if k == 1 else tuple(map(str, range(k)))


def check_numbers(names: Sequence[str], estimates: Floats, covariance: Floats) -> None:
    """Refuse estimates that are not finite, and what cannot be their covariance.

    Raises
    ------
    ValueError
        The message names the parameter.
    """
    variances = covariance.diagonal()
    for name, estimate, variance in zip(names, estimates, variances, strict=True):
        if not math.isfinite(estimate):
            raise ValueError(f"the estimate of {name!r} is {estimate:g}; it must be finite")
        if not 0 <= variance < math.inf:
            raise ValueError(f"the variance of {name!r} is {variance:g}; it must be finite and not negative")
    if not np.isfinite(covariance).all():
        raise ValueError("the covariance has entries that are not finite")
    errors = np.sqrt(variances)
    if (np.abs(covariance - covariance.T) > _LARGEST_ASYMMETRY * np.outer(errors, errors)).any():
        raise ValueError("the covariance is not symmetric")


def _covariance(values: Any, k: int) -> Floats:
    """A covariance [K, K]; of variances a diagonal one."""
    array = np.atleast_1d(_floats("covariance", values))
    if array.shape not in ((k,), (k, k)):
        raise ValueError(
            f"the covariance of {count(k, 'estimate')} must be {count(k, 'variance')} or a {k} × {k} matrix, "
            f"got shape {array.shape}"
        )
    return np.diag(array) if array.ndim == 1 else array


def _in_order_of(labels: tuple[str, ...], own: tuple[str, ...], covariance: Floats) -> Floats:
    """A covariance in the order of the estimates' labels; without labels it is in that order already."""
    if not own or not labels or own == labels:
        return covariance
    if set(own) != set(labels):
        raise ValueError(f"the covariance is of {listed(own)}, but the estimates are of {listed(labels)}")
    order = [own.index(label) for label in labels]
    return covariance[np.ix_(order, order)]


def _labelled(what: str, values: Any) -> tuple[tuple[str, ...], Any]:
    """The labels of a dictionary or of the rows of a pandas object, none for others; and its values."""
    if isinstance(values, Mapping):
        return tuple(map(_name, values)), list(values.values())
    if not (hasattr(values, "index") and hasattr(values, "to_numpy")):
        return (), values
    if hasattr(values, "columns"):
        if what == "estimates":
            raise ValueError("the estimates must be a number or a vector, got a frame; return a pair (estimates, covariance)")
        if set(values.columns) != set(values.index):
            raise ValueError("a frame of covariances must have the same labels in rows and columns")
        values = values[list(values.index)]
    return tuple(map(_name, values.index)), values.to_numpy()


def _name(label: Any) -> str:
    """Labels of several levels are joined, as of lifelines' parametric models."""
    return ": ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _floats(what: str, values: Any) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiuO":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"the {what} must be numbers, got {_described(values)}") from None


def _described(value: Any) -> str:
    """What a message says of a value: short ones are shown, of others their type."""
    shown = repr(value) if value is None or isinstance(value, str | Real | list | tuple | Mapping) else ""
    return shown if 0 < len(shown) <= 60 else f"an object of type {type(value).__module__}.{type(value).__qualname__}"
