"""Where a value can exist at all: what is not applicable is not missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._text import count
from .._warn import warn_user
from ..exceptions import OtimputeWarning, ParameterTypeError, ParameterValueError
from ..table import Table
from .expressions import Expression, ExpressionError, ValueKind, Values, parse_expression
from .names import find_column, is_frame, names_of
from .values import read_columns

_ACCEPTED = 'a dict such as {"pregnancies": "sex == \'f\'"}, or a boolean table of the rows of X'


@dataclass(frozen=True)
class Applicability:
    """By position of a column, the condition under which its values exist, or for each row whether they do."""

    rules: Mapping[int, Expression | NDArray[np.bool_]]
    marker: Any  # what marks missing values, besides NaN and null

    @classmethod
    def of(cls, applicable: Any, read: Any, marker: Any) -> Applicability:
        """From what a user wrote, about a frame or array.

        >>> read = nw.from_dict({"sex": ["f", "m", None], "births": [1, None, None]}, backend="pyarrow")
        >>> rules = Applicability.of({"births": "sex == 'f'"}, read, float("nan"))
        >>> rules.ruled_out(read).tolist(), rules.open(read).tolist()
        ([[False, False], [False, True], [False, False]], [[False, False], [False, False], [False, True]])
        """
        names = names_of(read)
        if isinstance(applicable, np.ndarray) and applicable.ndim == 2 and not is_frame(applicable):
            if applicable.shape[1] != len(names):
                accepted = f"of shape {read.shape}, as X"
                raise ParameterValueError("applicable", f"an array of shape {applicable.shape}", accepted)
            applicable = dict(zip(names, applicable.T, strict=True))
        elif is_frame(applicable):
            frame = nw.from_native(applicable, eager_only=True)
            applicable = {column.name: column.to_numpy() for column in frame.iter_columns()}
        if not isinstance(applicable, Mapping):
            raise ParameterTypeError("applicable", applicable, _ACCEPTED)
        places = {name: find_column("applicable", name, names) for name in applicable}
        return cls({places[name]: _rule(name, given, read) for name, given in applicable.items()}, marker)

    def ruled_out(self, read: Any) -> NDArray[np.bool_]:
        """Where a value is known not to exist ``[n, d]``."""
        return self._marked(read, lambda found: found.known & ~found.values.astype(bool))

    def open(self, read: Any) -> NDArray[np.bool_]:
        """Where that is not known, for what a condition needs is missing."""
        return self._marked(read, lambda found: ~found.known)

    def _marked(self, read: Any, mark: Any) -> NDArray[np.bool_]:
        marked = np.zeros(read.shape, dtype=bool)
        for place, rule in self.rules.items():
            if isinstance(rule, Expression):
                found = rule.evaluate(read_columns(read, rule.columns, self.marker, str(rule)))
                found = Values(found.kind, np.broadcast_to(found.values, len(read)), np.broadcast_to(found.known, len(read)))
            else:
                found = Values(ValueKind.CONDITION, rule, np.ones(len(rule), dtype=bool))
            marked[:, place] = mark(found)
        return marked

    def narrowed(self, table: Table) -> NDArray[np.bool_]:
        """The holes of a table in which a value may exist."""
        return np.asarray(table.holes & ~self.ruled_out(table.source))

    def settled(self, table: Table, complete: Callable[[Table], Any]) -> Table:
        """The table without holes whose condition a completed row does not fulfil, or leaves open; these stay empty."""
        unsure = table.holes & self.open(table.source)
        for _ in self.rules:  # of which one may depend on what another leaves empty
            if not unsure.any():
                break
            completed = complete(table)
            left = table.holes & unsure & (self.open(completed) | self.ruled_out(completed))
            if not left.any():
                break
            table = replace(table, holes=table.holes & ~left)
        return table

    def warn_of_observed(self, table: Table) -> None:
        """Say so where a value was observed though it should not exist."""
        ruled_out, names = self.ruled_out(table.source), names_of(table.source)
        for place, rule in self.rules.items():
            n = int((ruled_out[:, place] & ~table.holes[:, place]).sum())
            if n:
                where = f" where it does not apply ({rule})" if isinstance(rule, Expression) else " where it does not apply"
                warn_user(
                    f"column {names[place]!r} has {count(n, 'observed value')}{where}; they are kept, and learned from",
                    OtimputeWarning,
                )


def is_about_rows(applicable: Any) -> bool:
    """Whether something is said about certain rows, which are no others."""
    if isinstance(applicable, Mapping):
        return any(not isinstance(rule, str) for rule in applicable.values())
    return applicable is not None


def _rule(name: Any, given: Any, read: Any) -> Expression | NDArray[np.bool_]:
    said = f"applicable for {name!r}"
    if isinstance(given, str):
        if not isinstance(read, nw.DataFrame):
            accepted = "a boolean for each row where X is an array, whose columns have no names"
            raise ParameterTypeError(said, given, accepted, "pass a frame to use expressions")
        expression = parse_expression(given)
        if name in expression.columns:
            raise ParameterValueError(said, given, "a condition on other columns")
        found = expression.evaluate(read)
        if found.kind not in (ValueKind.CONDITION, ValueKind.NOTHING):
            raise ExpressionError(given, f"is no condition but holds {found.kind}; compare it with something")
        return expression
    flags = np.asarray(given)
    if flags.dtype != bool or flags.shape != (len(read),):
        received = f"{flags.dtype} of shape {flags.shape}"
        raise ParameterValueError(said, received, f"a condition, or a boolean for each of the {len(read)} rows")
    return flags


def plain_applicable(given: Any) -> Any:
    """A boolean frame as a dictionary of arrays, which files can hold."""
    if not is_frame(given):
        return given
    frame = nw.from_native(given, eager_only=True)
    return {column.name: column.to_numpy().astype(bool) for column in frame.iter_columns()}
