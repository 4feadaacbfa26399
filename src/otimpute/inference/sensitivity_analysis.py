"""How results change if missing values differ from what observed ones suggest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._checks import check_real
from .._optional import require
from .._random import seed_from
from .._text import listed, number_beside
from ..baselines.chained import Delta, check_delta
from ..exceptions import ParameterTypeError, ParameterValueError
from .multiple_imputer import MultipleImputer
from .pooled import PooledEstimates
from .pooling import pool
from .rubin import Floats

_COLUMNS = ("estimate", "std_error", "low", "high", "p", "fmi")
_EXAMPLE = '{"income": [0, 0.1, 0.2]}'


def sensitivity(
    imputer: MultipleImputer | None,
    X: Any,
    analysis: Callable[[Any], Any],
    delta: Mapping[Any, Sequence[Any]],
    *,
    level: float = 0.95,
    transform: str | Mapping[str, str] | None = None,
    df_complete: float | None = None,
) -> Sensitivity:
    """Repeat imputation and analysis under several assumptions about how missing values differ from observed ones.

    Imputers assume that values are missing at random: that a missing value is distributed as an observed one in rows that are
    alike. Data cannot show whether this is true. Here missing values of a column are shifted by several amounts ``delta``, and
    the analysis of each is pooled. If conclusions change only for shifts that nobody believes in, they do not depend on the
    assumption.

    Parameters
    ----------
    imputer : MultipleImputer or None
        It need not be fitted, and is not changed; its imputer must be the default or a `ChainedImputer`. None is
        ``MultipleImputer()``.
    X : array or frame [n_rows, n_columns]
        The table with missing values.
    analysis : callable
        Function of one completed table, as for `otimpute.pool`.
    delta : dict
        By column, a list of what `ChainedImputer` takes as ``delta``, all of the same kind: numbers (units of the column),
        ``"0.5 sd"`` (standard deviations), ``"1.1 x"`` (factors), or for categories and booleans the odds of one of them,
        ``{"yes": 2}``. The lists of several columns have the same length: the first scenario takes the first value of each,
        and so on; results are then shown against the values of the first column.
    level, transform, df_complete
        As for `otimpute.pool`.

    Returns
    -------
    Sensitivity
        Scenarios and pooled results; ``summary()``, ``tipping_point()`` and ``plot()``.

    Notes
    -----
    All scenarios use the same seed, so they differ by ``delta`` only. A shift applies to each missing value given what is
    observed in its row, and missing values of other columns follow. Values never leave the bounds of their column, so that a
    shift can be smaller than ``delta`` there.

    Examples
    --------
    Would people without an answer have to earn more than others for the mean to exceed 3?

    >>> import numpy as np
    >>> import otimpute
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> X = np.column_stack([x, 2.7 + x + rng.normal(size=200)])
    >>> X[rng.random(200) < 0.4, 1] = np.nan
    >>> def mean(table):
    ...     return {"mean": table[:, 1].mean()}, table[:, 1].var(ddof=1) / len(table)
    >>> imputer = otimpute.MultipleImputer(m=10, random_state=0)
    >>> result = otimpute.sensitivity(imputer, X, mean, delta={1: [0, 0.5, 1, 1.5]}, df_complete=199)
    >>> 0.5 < result.tipping_point("mean", null=3) < 1.5
    True
    """
    axis, scenarios = _read_scenarios(delta)
    if imputer is None:
        imputer = MultipleImputer()
    if not isinstance(imputer, MultipleImputer):
        raise ParameterTypeError("imputer", type(imputer), "a MultipleImputer or None", "pass MultipleImputer(imputer=...)")
    kept = dict(imputer.delta or {})
    if twice := [name for name in scenarios[0] if name in kept]:
        raise ValueError(f"delta of column {twice[0]!r} is given twice, to sensitivity and to its imputer; give it once")
    seed = imputer.random_state if isinstance(imputer.random_state, int | np.integer) else seed_from(imputer.random_state)
    pooled = []
    for scenario in scenarios:
        one = clone(imputer).set_params(delta=kept | scenario, random_state=seed)
        pooled.append(pool(one.fit(X), analysis, level=level, transform=transform, df_complete=df_complete))
    return Sensitivity(tuple(scenarios), tuple(pooled), axis)


@dataclass(frozen=True)
class Axis:
    """What scenarios are shown against: the amounts by which one column is shifted."""

    column: str
    unit: str  # "", "sd", "x", or "odds"
    amounts: tuple[float, ...]
    label: str = ""  # whose odds
    others: tuple[str, ...] = ()  # columns that are shifted with it

    @property
    def is_log(self) -> bool:
        """Whether 1/2 is as far from no change as 2."""
        return self.unit in ("x", "odds")

    @property
    def title(self) -> str:
        """The amounts in words."""
        words = {
            "": f"shift of missing {self.column}",
            "sd": f"shift of missing {self.column} (standard deviations)",
            "x": f"factor of missing {self.column}",
            "odds": f"odds of {self.label} where {self.column} is missing, relative to observed",
        }
        return words[self.unit] + (f", with {listed(self.others, 3)}" if self.others else "")

    @property
    def positions(self) -> Floats:
        """Where scenarios are: amounts, or their logarithms."""
        return np.log(self.amounts) if self.is_log else np.array(self.amounts)

    def amount_at(self, position: float) -> float:
        """The inverse of `positions`."""
        return math.exp(position) if self.is_log else position


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Pooled results under several assumptions about missing values; made by `otimpute.sensitivity`.

    Attributes
    ----------
    scenarios : tuple of dict
        ``delta`` of each scenario.
    pooled : tuple of PooledEstimates
        Result of each scenario.
    """

    scenarios: tuple[dict[Any, Any], ...]
    pooled: tuple[PooledEstimates, ...]
    _axis: Axis

    def summary(self) -> Any:
        """A frame with a row per scenario and parameter.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Columns ``delta`` (the number, as it was given: units, standard deviations, a factor or odds; of several columns
            that of the first), ``parameter``, ``estimate``, ``std_error``, ``low``, ``high``, ``p`` and ``fmi``. polars if the
            tables were, else pandas.
        """
        names = self.pooled[0].names
        frame = {
            "delta": np.repeat(self._axis.amounts, len(names)).tolist(),
            "parameter": list(names) * len(self.pooled),
            **{column: np.concatenate([getattr(each, column) for each in self.pooled]) for column in _COLUMNS},
        }
        if self.pooled[0]._frames == "polars":
            return require("polars", "summary() of polars tables").DataFrame(frame)
        return require("pandas", "summary()").DataFrame(frame)

    def tipping_point(self, parameter: str | None = None, *, null: float = 0.0) -> float | None:
        """The smallest change of missing values at which the interval begins or ceases to contain ``null``.

        Between neighbouring scenarios the ends of the interval are interpolated linearly in ``delta``, or in its logarithm for
        factors and odds; scenarios close to the tipping point make it more exact.

        Parameters
        ----------
        parameter : str or None, default=None
            None if there is but one.
        null : float, default=0
            The value of the parameter that means no effect: 0 for differences and slopes, 1 for ratios.

        Returns
        -------
        float or None
            A shift, factor or odds, as ``delta`` was given; of several tipping points the one closest to no change. None if
            there is none in the range of the scenarios.
        """
        k, null = self._place(parameter), check_real("null", null)
        order = np.argsort(self._axis.positions)
        at = self._axis.positions[order]
        found: list[float] = []
        for side, sign in (("low", 1), ("high", -1)):
            beyond = sign * (np.array([getattr(each, side)[k] for each in self.pooled])[order] - null)
            i = np.flatnonzero((beyond[1:] > 0) != (beyond[:-1] > 0))  # null enters or leaves the interval at this end
            found += (at[i] + (at[i + 1] - at[i]) * beyond[i] / (beyond[i] - beyond[i + 1])).tolist()
        return self._axis.amount_at(min(found, key=abs)) if found else None

    def plot(self, parameter: str | None = None, *, null: float = 0.0) -> list[Any]:
        """Draw estimates and intervals against ``delta``, with the tipping point, in a new figure of matplotlib.

        Parameters
        ----------
        parameter : str or None, default=None
            None draws all, in a panel each.
        null : float, default=0
            The value that means no effect.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels; ``panels[0].figure.savefig("sensitivity.png")`` saves the figure.
        """
        from .sensitivity_figure import draw_sensitivity

        names = self.pooled[0].names
        return draw_sensitivity(self, names if parameter is None else [names[self._place(parameter)]], check_real("null", null))

    def _place(self, parameter: str | None) -> int:
        names = self.pooled[0].names
        if parameter is None and len(names) == 1:
            return 0
        if parameter not in names:
            raise ParameterValueError("parameter", parameter, f"one of {listed(names, 20)}")
        return names.index(parameter)

    def __repr__(self) -> str:
        names = self.pooled[0].names
        rows = [("delta", *names)]
        for amount, each in zip(self._axis.amounts, self.pooled, strict=True):
            cells = []
            for k in range(len(names)):
                numbers = (float(values[k]) for values in (each.estimate, each.low, each.high))
                estimate, low, high = (number_beside(value, float(each.std_error[k])) for value in numbers)
                cells.append(f"{estimate} ({low} to {high})")
            rows.append((f"{amount:g}", *cells))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        level = f"{100 * self.pooled[0].level:g} %"
        return "\n".join([f"Estimates and {level} intervals by {self._axis.title}", *lines])


def _read_scenarios(delta: Any) -> tuple[Axis, list[dict[Any, Any]]]:
    """The axis, and ``delta`` of each scenario."""
    if not isinstance(delta, Mapping):
        raise ParameterTypeError("delta", delta, f"a dict of lists such as {_EXAMPLE}")
    if not delta:
        raise ParameterValueError("delta", dict(delta), f"a dict of lists such as {_EXAMPLE}")
    lists: dict[Any, list[Any]] = {}
    for name, values in delta.items():
        is_list = isinstance(values, list | tuple | range) or (isinstance(values, np.ndarray) and values.ndim == 1)
        if not is_list or not len(values):
            kind = ParameterValueError if is_list else ParameterTypeError
            raise kind(f"delta[{name!r}]", values, f"a list of at least one value, such as {_EXAMPLE}")
        lists[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
    lengths = {str(name): len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ParameterValueError("delta", lengths, "lists of the same length, whose values are taken together, one per column")
    scenarios = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    for scenario in scenarios:
        check_delta(scenario)
    axes = [_axis(name, values, tuple(str(other) for other in lists if other != name)) for name, values in lists.items()]
    if len(set(axes[0].amounts)) < len(scenarios):
        first = next(iter(lists))
        raise ParameterValueError(f"delta[{first!r}]", lists[first], "another value in each scenario")
    return axes[0], scenarios


def _axis(name: Any, values: list[Any], others: tuple[str, ...]) -> Axis:
    shown = f"delta[{name!r}]"
    column = name if isinstance(name, str) else f"column {name}"
    if any(isinstance(value, Mapping) for value in values):
        labels = {label for value in values if isinstance(value, Mapping) for label in value}
        if len(labels) > 1 or not all(isinstance(value, Mapping) for value in values):
            raise ParameterValueError(
                shown, values, "odds of the same one category in all scenarios", "fit a MultipleImputer for others"
            )
        (label,) = labels
        return Axis(column, "odds", tuple(float(value[label]) for value in values), str(label), others)
    read = [Delta.read(name, value) for value in values]
    units = {each.unit for each in read}
    if units == {"", "sd"} and all(each.amount == 0 for each in read if each.unit == ""):
        units = {"sd"}  # 0 is 0 in both
    if len(units) > 1:
        raise ParameterValueError(shown, values, "in the same unit in all scenarios: numbers, standard deviations or factors")
    amounts = tuple(each.amount for each in read)
    return Axis(column, units.pop(), amounts, others=others)
