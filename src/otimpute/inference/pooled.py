"""The result of pooling: a row per parameter, and a test of several at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._checks import check_real
from .._markup import element, to_html
from .._optional import require
from .._text import count, listed, number_beside
from ..exceptions import ParameterValueError
from .rubin import (
    COEFFICIENT_OF_VARIATION,
    Floats,
    RubinMoments,
    degrees_of_freedom,
    fraction_missing,
    joint_statistic,
    tables_needed,
)
from .scales import Scales

_COLUMNS = ("estimate", "std_error", "df", "low", "high", "p", "fmi")


@dataclass(frozen=True)
class JointTest:
    """Test that several parameters are 0.

    Attributes
    ----------
    statistic : float
        D1 of Li, Raghunathan and Rubin (1991).
    df1, df2 : float
        Degrees of freedom of its F distribution.
    p : float
        Probability of a statistic at least as large if all of them are 0.
    """

    statistic: float
    df1: float
    df2: float
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class PooledEstimates:
    """Estimates pooled over several completed tables by Rubin's rules.

    All arrays have an entry per parameter. If a parameter was transformed, ``estimate``, ``low`` and ``high`` are transformed
    back; the interval is then not symmetric. ``std_error`` and ``monte_carlo_error`` are converted to the parameter's own units
    by the delta method. ``p`` tests that the transformed parameter is 0: a correlation of 0, a ratio of 1, a probability of
    1/2. All other arrays are on the scale on which it was pooled.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters.
    n_tables : int
        Number of tables, m.
    level : float
        Level of the intervals.
    df_complete : float
        Degrees of freedom the analysis would have if nothing were missing.
    estimate : array
        Mean over tables.
    std_error : array
        Standard error, the square root of ``total``.
    df : array
        Degrees of freedom of Barnard and Rubin (1999), or Rubin's (1987) if ``df_complete`` is infinite. As in mice,
        ``lambda_`` counts as at least 0.0001 there.
    low, high : array
        Ends of the interval.
    p : array
        Two-sided p value of the t test that the parameter is 0.
    fmi : array
        Fraction of missing information as in mice: ``(riv + 2 / (df + 3)) / (riv + 1)``.
    lambda_ : array
        Share of ``total`` that is due to missing values.
    riv : array
        Relative increase in variance due to missing values.
    relative_efficiency : array
        Variance with infinitely many tables divided by that with m: ``1 / (1 + fmi / m)``.
    within, between, total : array
        Mean of the variances within tables, variance of the estimates between tables, and
        ``within + (1 + 1 / m) * between``.
    monte_carlo_error : array
        Standard deviation of ``estimate`` over repetitions of the imputation with as many tables: ``sqrt(between / m)``.

    Examples
    --------
    >>> from otimpute import pool_estimates
    >>> pooled = pool_estimates([1.9, 2.3, 2.1], [0.5, 0.4, 0.6], df_complete=20)
    >>> pooled
    Pooled over 3 tables, intervals of 95 %
              estimate  std_error    df    low   high      p    fmi
    estimate     2.100      0.744  15.3  0.517  3.683  0.013  0.195
    """

    names: tuple[str, ...]
    n_tables: int
    level: float
    df_complete: float
    estimate: Floats
    std_error: Floats
    df: Floats
    low: Floats
    high: Floats
    p: Floats
    fmi: Floats
    lambda_: Floats
    riv: Floats
    relative_efficiency: Floats
    within: Floats
    between: Floats
    total: Floats
    monte_carlo_error: Floats
    _moments: RubinMoments
    _knows_covariances: bool
    _frames: str

    def summary(self) -> Any:
        """A frame with a row per parameter.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Columns ``estimate``, ``std_error``, ``df``, ``low``, ``high``, ``p`` and ``fmi``. polars if the tables were, with a
            first column ``parameter``; else pandas, with the names as index.
        """
        columns = {column: getattr(self, column) for column in _COLUMNS}
        if self._frames == "polars":
            return require("polars", "summary() of polars tables").DataFrame({"parameter": list(self.names), **columns})
        pandas = require("pandas", "summary()")
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="parameter"))

    def tables_needed(self, cv: float = COEFFICIENT_OF_VARIATION) -> NDArray[np.int64]:
        """How many tables would do for each parameter, by the quadratic rule of von Hippel (2020).

        With ``1 + (fmi / cv)² / 2`` tables, standard errors hardly change if everything is imputed again. The rule is meant for
        two stages: impute some tables, look how many are needed, and impute as many. With few tables ``fmi`` is uncertain, so
        look again.

        Parameters
        ----------
        cv : float, default=0.05
            Accepted coefficient of variation of a standard error over repetitions of the imputation.

        Returns
        -------
        array of int
            A number per parameter, at least 2.
        """
        return tables_needed(self.fmi, check_real("cv", cv, above=0))

    def test(self, names: str | Sequence[str] | None = None) -> JointTest:
        """Test that several parameters are all 0, with D1 of Li, Raghunathan and Rubin (1991).

        This compares nested models, as ``D1`` of mice: pool the larger one and test the parameters that the smaller one lacks.
        The second degrees of freedom are those of Reiter (2007) if ``df_complete`` is finite, so for one parameter ``p`` is not
        exactly that of the t test. If a parameter was transformed, it is 0 on that scale.

        Parameters
        ----------
        names : str, sequence of str or None
            Parameters to test; None for all of them, an intercept included.

        Returns
        -------
        JointTest
            ``statistic``, ``df1``, ``df2`` and ``p``.

        Examples
        --------
        >>> from otimpute import pool_estimates
        >>> covariance = [[0.5, 0.1], [0.1, 0.5]]
        >>> pooled = pool_estimates([[1.9, 0.4], [2.3, 0.2], [2.1, 0.5]], [covariance] * 3, names=["age", "dose"])
        >>> pooled.test(["age", "dose"])
        JointTest(statistic=4.015..., df1=2.0, df2=369.19..., p=0.0188...)
        """
        chosen = self._positions(names)
        if len(chosen) > 1 and not self._knows_covariances:
            raise ValueError("a test of several parameters needs their covariance, but only variances were given")
        k, block = len(chosen), np.ix_(chosen, chosen)
        all_of_them = self._moments
        moments = RubinMoments(
            all_of_them.m, all_of_them.estimate[chosen], all_of_them.within[block], all_of_them.between[block]
        )
        try:
            statistic, df2 = joint_statistic(moments, self.df_complete)
        except np.linalg.LinAlgError:
            named = listed([self.names[each] for each in chosen])
            raise ValueError(f"the covariance of {named} is singular: some of them follow from others; test fewer") from None
        tail = stats.chi2.sf(k * statistic, k) if math.isinf(df2) else stats.f.sf(statistic, k, df2)
        return JointTest(statistic, float(k), df2, float(tail))

    def _positions(self, names: str | Sequence[str] | None) -> list[int]:
        chosen = self.names if names is None else (names,) if isinstance(names, str) else tuple(names)
        unknown = [str(name) for name in chosen if name not in self.names]
        if unknown or not chosen or len(set(chosen)) < len(chosen):
            raise ParameterValueError("names", names, f"different names among {listed(self.names)}")
        return [self.names.index(name) for name in chosen]

    def _title(self) -> str:
        return f"Pooled over {count(self.n_tables, 'table')}, intervals of {100 * self.level:g} %"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for k, name in enumerate(self.names):
            error = float(self.std_error[k])
            estimate, low, high = (number_beside(float(each[k]), error) for each in (self.estimate, self.low, self.high))
            df, p = float(self.df[k]), float(self.p[k])
            shown_df = f"{df:.1f}" if df < 1e4 else f"{df:.0e}"
            yield (
                name,
                estimate,
                number_beside(error, error),
                shown_df,
                low,
                high,
                f"{p:.3f}" if p >= 5e-4 else "<.001",
                f"{self.fmi[k]:.3f}",
            )

    def __repr__(self) -> str:
        rows = [("", *_COLUMNS), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        )
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        head = element("tr", *(element("th", name) for name in ("", *_COLUMNS)))
        body = [element("tr", element("th", name), *(element("td", cell) for cell in cells)) for name, *cells in self._rows()]
        return to_html(element("table", element("caption", self._title()), element("thead", head), element("tbody", *body)))


def pooled_estimates(
    moments: RubinMoments,
    scales: Scales,
    names: tuple[str, ...],
    *,
    df_complete: float,
    level: float,
    knows_covariances: bool,
    frames: str,
) -> PooledEstimates:
    """Everything that follows from the moments, in the units of the parameters."""
    riv, lambda_, total = moments.riv, moments.lambda_, moments.total
    df = degrees_of_freedom(lambda_, moments.m, df_complete)
    fmi = fraction_missing(riv, df)
    error = np.sqrt(total)
    half = stats.t.ppf((1 + level) / 2, df) * error
    estimate, between = scales.back(moments.estimate), moments.between.diagonal()
    slopes = scales.slopes(estimate)
    return PooledEstimates(
        names=names,
        n_tables=moments.m,
        level=level,
        df_complete=df_complete,
        estimate=estimate,
        std_error=error / slopes,
        df=df,
        low=scales.back(moments.estimate - half),
        high=scales.back(moments.estimate + half),
        p=2 * stats.t.sf(np.abs(moments.estimate) / error, df),
        fmi=fmi,
        lambda_=lambda_,
        riv=riv,
        relative_efficiency=1 / (1 + fmi / moments.m),
        within=moments.within.diagonal(),
        between=between,
        total=total,
        monte_carlo_error=np.sqrt(between / moments.m) / slopes,
        _moments=moments,
        _knows_covariances=knows_covariances,
        _frames=frames,
    )
