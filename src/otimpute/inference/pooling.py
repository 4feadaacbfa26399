"""Run an analysis on every completed table and pool the results; or pool results from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .._checks import check_real
from .._text import listed
from ..exceptions import AnalysisError, ParameterTypeError, ParameterValueError
from .analysis_results import AnalysisResult, check_numbers, position_names, read_result
from .pooled import PooledEstimates, pooled_estimates
from .rubin import Floats, rubin_moments
from .scales import Scales

_FEWEST_TABLES = 2


def pool(
    tables: Any,
    analysis: Callable[[Any], Any],
    *,
    level: float = 0.95,
    transform: str | Mapping[str, str] | None = None,
    df_complete: float | None = None,
) -> PooledEstimates:
    """Run an analysis on every completed table and pool the results by Rubin's rules.

    Parameters
    ----------
    tables : fitted MultipleImputer, or iterable of tables
        At least two completed tables of any kind that ``analysis`` understands; from a fitted imputer its ``tables_``. They are
        taken one after the other.
    analysis : callable
        Function of one table. It returns one of

        - a pair (estimates, covariance): a number, a sequence, a dict of names and numbers or a pandas Series; and a number,
          variances or a covariance matrix, also as dict, Series or DataFrame, matched by name;
        - a statsmodels result (``params``, ``cov_params()``, ``df_resid``);
        - a fitted lifelines model (``params_``, ``variance_matrix_``);
        - a fitted scikit-learn linear model with the covariance of ``coef_`` in ``sigma_``: ``BayesianRidge``, and
          ``ARDRegression`` if it keeps all columns. The intercept is not pooled.
    level : float, default=0.95
        Level of the intervals.
    transform : {"fisher_z", "log", "logit"}, dict or None, default=None
        Scale on which estimates are closer to normal, for all parameters or by name: Fisher's z for correlations, logarithms
        for variances and ratios, logits for probabilities. Covariances follow by the delta method. Results are given in the
        units of the parameters; see :class:`~otimpute.inference.PooledEstimates`.
    df_complete : float or None, default=None
        Degrees of freedom of the analysis if nothing were missing, such as rows less parameters. None takes the smallest
        ``df_resid`` of the results, and infinity if they have none.

    Returns
    -------
    PooledEstimates
        Estimates, standard errors, intervals, p values, fractions of missing information and more.

    Raises
    ------
    AnalysisError
        If the analysis fails in a table, or returns what cannot be pooled. It says in which table.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute import pool
    >>> rng = np.random.default_rng(0)
    >>> observed = rng.normal(10, 2, size=30)
    >>> tables = [np.concatenate([observed, rng.normal(10, 2, size=10)]) for _ in range(5)]
    >>> def mean(table):
    ...     return {"mean": table.mean()}, table.var(ddof=1) / len(table)
    >>> pool(tables, mean, df_complete=39)
    Pooled over 5 tables, intervals of 95 %
          estimate  std_error    df    low    high      p    fmi
    mean     9.950      0.357  12.5  9.176  10.725  <.001  0.461
    """
    if not callable(analysis):
        raise ParameterTypeError("analysis", analysis, "a function of one table")
    _check_level_and_df(level, df_complete)
    results: list[AnalysisResult] = []
    frames = ""
    for k, table in enumerate(_each_table(tables)):
        results.append(_analysed(k, table, analysis, results[0].names if results else None))
        if k == 0:
            frames = type(table).__module__.partition(".")[0]
            Scales(transform, results[0].names)  # a wrong name is refused before the other tables are analysed
    return _pooled(results, transform, level, df_complete, frames)


def pool_estimates(
    estimates: Any,
    variances: Any,
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    transform: str | Mapping[str, str] | None = None,
    df_complete: float = math.inf,
) -> PooledEstimates:
    """Pool estimates that were computed elsewhere by Rubin's rules, as ``pool.scalar`` of mice.

    Parameters
    ----------
    estimates : array-like of shape [m] or [m, K]
        Estimates from m completed tables, at least two, of one parameter or of K.
    variances : array-like of shape [m], [m, K] or [m, K, K]
        Squares of their standard errors, or covariances.
    names : sequence of str or None, default=None
        Names of the parameters; None takes the columns of a frame, else positions.
    level, transform
        As for :func:`~otimpute.pool`.
    df_complete : float, default=inf
        Degrees of freedom of the analysis if nothing were missing, such as rows less parameters.

    Returns
    -------
    PooledEstimates
        Estimates, standard errors, intervals, p values, fractions of missing information and more.

    Examples
    --------
    Correlations are pooled as Fisher's z, whose variance is 1 / (n - 3) in 50 rows; that of r follows by the delta method.

    >>> import numpy as np
    >>> from otimpute import pool_estimates
    >>> r = np.array([0.52, 0.61, 0.47, 0.55])
    >>> pool_estimates(r, (1 - r**2) ** 2 / 47, names=["r"], transform="fisher_z")
    Pooled over 4 tables, intervals of 95 %
       estimate  std_error    df    low   high      p    fmi
    r     0.539      0.123  35.8  0.247  0.742  0.001  0.326
    """
    _check_level_and_df(level, df_complete)
    if names is None and hasattr(estimates, "columns"):
        names = [str(column) for column in estimates.columns]
    Q, U = _array("estimates", estimates), _array("variances", variances)
    if Q.ndim not in (1, 2) or not Q.size:
        raise ParameterValueError("estimates", Q.shape, "an array of shape [m] or [m, K]")
    if U.shape != Q.shape and (Q.ndim == 1 or U.shape != (*Q.shape, Q.shape[1])):
        raise ParameterValueError("variances", U.shape, f"an array of shape {Q.shape}, as the estimates, or of covariances")
    Q = Q.reshape(len(Q), -1)
    k = Q.shape[1]
    covariances = U if U.ndim == 3 else U.reshape(len(Q), k, 1) * np.eye(k)
    called = position_names(k) if names is None else tuple(map(str, names))
    if len(called) != k or len(set(called)) < k:
        raise ParameterValueError("names", listed(called), f"{k} different names")
    results = []
    for position, (q, u) in enumerate(zip(Q, covariances, strict=True)):
        try:
            check_numbers(called, q, u)
        except ValueError as error:
            raise AnalysisError(position, str(error)) from None
        results.append(AnalysisResult(called, q, u, knows_covariances=U.ndim == 3 or k == 1))
    return _pooled(results, transform, level, df_complete)


def _pooled(
    results: list[AnalysisResult], transform: Any, level: float, df_complete: float | None, frames: str = ""
) -> PooledEstimates:
    if len(results) < _FEWEST_TABLES:
        raise ParameterValueError(
            "tables", len(results), "at least two completed tables", "one says nothing of what is missing"
        )
    names = results[0].names
    scales = Scales(transform, names)
    transformed = []
    for k, result in enumerate(results):
        try:
            transformed.append(scales.to(result.estimates, result.covariance))
        except ValueError as error:
            raise AnalysisError(k, str(error)) from None
    moments = rubin_moments(np.array([q for q, _ in transformed]), np.array([u for _, u in transformed]))
    constant = [name for name, variance in zip(names, moments.within.diagonal(), strict=True) if variance == 0]
    if constant:
        raise ValueError(
            f"the variance of {listed(constant)} is 0 in every table; the rules need the uncertainty within a table"
        )
    return pooled_estimates(
        moments,
        scales,
        names,
        df_complete=min(result.df for result in results) if df_complete is None else float(df_complete),
        level=level,
        knows_covariances=all(result.knows_covariances for result in results),
        frames=frames,
    )


def _each_table(tables: Any) -> Iterator[Any]:
    """The tables one after the other; one table is refused, whose rows or columns would be taken for tables."""
    many = getattr(tables, "tables_", tables)
    is_one = hasattr(many, "columns") or isinstance(many, str | bytes | Mapping) or getattr(many, "ndim", 3) < 3
    if is_one or not (isinstance(many, Iterable) or hasattr(many, "__getitem__")):
        raise ParameterTypeError("tables", type(many), "a fitted MultipleImputer, or a list of completed tables")
    return iter(many)


def _analysed(k: int, table: Any, analysis: Callable[[Any], Any], names: tuple[str, ...] | None) -> AnalysisResult:
    try:
        returned = analysis(table)
    except Exception as error:  # whatever the user's function may raise; it is raised again, with the table's number
        raise AnalysisError(k, f"the analysis failed: {type(error).__name__}: {error}") from error
    try:
        result = read_result(returned)
        if result.df <= 0:
            raise ValueError(f"the analysis has {result.df:g} degrees of freedom; it needs more rows than parameters")
        return result if names is None else result.in_order_of(names)
    except ValueError as error:
        raise AnalysisError(k, str(error)) from None


def _check_level_and_df(level: Any, df_complete: Any) -> None:
    check_real("level", level, above=0, below=1, advice="pass 0.95 for intervals of 95 %")
    is_number = isinstance(df_complete, Real) and not isinstance(df_complete, bool)
    if df_complete is not None and not (is_number and df_complete > 0):
        accepted = "a number > 0, or infinity"
        raise (ParameterValueError if is_number else ParameterTypeError)("df_complete", df_complete, accepted)


def _array(name: str, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(name, type(values), "an array of numbers, with as many for every table") from None
