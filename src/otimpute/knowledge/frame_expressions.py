"""Expressions of narwhals in place of text: they compute, and cannot be solved for what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from .tree import Columns, Expression
from .values import ExpressionError, ValueKind, Values, read_column

_DTYPES: dict[ValueKind, Any] = {
    ValueKind.NUMBER: nw.Float64(),
    ValueKind.NOTHING: nw.Float64(),
    ValueKind.CONDITION: nw.Boolean(),
    ValueKind.TEXT: nw.String(),
}


@dataclass(frozen=True)
class FrameExpression(Expression):
    """An expression of narwhals over columns of numbers, conditions and text."""

    native: Any
    names: tuple[str, ...]  # of the columns it needs
    backend: Any  # whose frames it is computed on
    binding: ClassVar[int] = 9

    @classmethod
    def of(cls, native: nw.Expr, frame: nw.DataFrame[Any], target: str) -> FrameExpression:
        """With the columns that it needs: those without which it fails."""
        empty = frame.head(0)
        needed = tuple(name for name in frame.columns if not _works(native, empty.drop(name)))
        if not needed or not _works(native, empty.select(*needed)):
            advice = "name the columns it needs with nw.col, or write it as text"
            raise ExpressionError(f"derive[{target!r}]", f"this expression fails for the columns there are; {advice}")
        return cls(native, needed, frame.implementation)

    @cached_property
    def columns(self) -> frozenset[str]:  # noqa: D102
        return frozenset(self.names)

    def _text(self) -> str:
        return f"an expression of {', '.join(self.names)}"

    def _values(self, table: Columns) -> Values:
        series, known = [], np.array(True)
        for name in self.names:
            kind, values, is_known = table[name]
            if kind not in _DTYPES:
                self._fail(f"{name!r} holds {kind}, which expressions of narwhals do not get here; write it as text")
            cells = [value if seen else None for value, seen in zip(values.tolist(), is_known, strict=True)]
            series.append(nw.new_series(name, cells, _DTYPES[kind], backend=self.backend))
            known = known & is_known
        frame = series[0].to_frame().with_columns(*series[1:])
        kind, values, is_known = read_column(frame.select(self.native.alias("_")).get_column("_"))
        if len(values) != len(known):
            self._fail(f"gives {len(values)} values for {len(known)} rows; it must give one for each")
        return Values(kind, values, is_known & known & (np.isfinite(values) if kind == ValueKind.NUMBER else True))


def _works(native: nw.Expr, frame: nw.DataFrame[Any]) -> bool:
    try:
        frame.select(native)
    except Exception:  # every library has its own
        return False
    return True
