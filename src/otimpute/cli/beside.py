"""Additional output tables: which cells were imputed, and their error bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .._optional import require
from .options import Writing, about, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..estimator import BaseImputer

Write = Callable[[Any, Any, Any], None]


@dataclass(frozen=True)
class Beside:
    """Paths of the additional tables."""

    mask: Annotated[Path | None, option("Output", "Table of true and false: which cells were imputed.", metavar="TABLE")] = None
    std: Annotated[
        Path | None,
        option("Output", "Table of error bars of imputed values, for methods that have them (auto).", metavar="TABLE"),
    ] = None

    @property
    def paths(self) -> dict[str, Path | None]:
        """Paths by option."""
        return {"--mask": self.mask, "--std": self.std}

    def check(self, writing: Writing, imputer: BaseImputer, whose: str) -> None:
        """Raise before a long fit if the tables could not be written; the imputer need not be fitted."""
        from ..estimator import has_error_bars

        for name, path in self.paths.items():
            if path is not None and str(path) == "-":
                raise ValueError(f"{name} must be written to a file, not to standard output: pass a name like {name[2:]}.csv")
            if path is not None:
                writing.check_new(path)
        if self.std is not None and not has_error_bars(imputer):
            raise ValueError(
                f"--std needs error bars, which {whose} does not have; use --method auto, the default, or leave out --std"
            )

    @contextmanager
    def open(self, names: list[str], writing: Writing) -> Iterator[Write]:
        """A function that takes rows before and after, and the error bars of some columns by name (None: there are none)."""
        from ..files import open_new_table

        pa = require("pyarrow", "writing tables", "cli")
        types = {self.mask: pa.bool_(), self.std: pa.float64()}
        with ExitStack() as stack:

            def opened(path: Path | None) -> Any:
                if path is None:
                    return None
                stack.enter_context(about(str(path)))
                schema = pa.schema([(name, types[path]) for name in names])
                return stack.enter_context(open_new_table(path, schema, force=writing.force))

            write_mask, write_std = opened(self.mask), opened(self.std)

            def write(before: Any, after: Any, bars: dict[str, NDArray[Any]] | None) -> None:
                if write_mask is not None:
                    write_mask(_filled(before, after))
                if write_std is not None:
                    write_std(_bars(before, after, bars or {}))

            yield write


def _filled(before: Any, after: Any) -> Any:
    """Return which missing cells were imputed."""
    pa, pc = require("pyarrow", "writing tables", "cli"), require("pyarrow.compute", "writing tables", "cli")
    columns = zip(before.columns, after.columns, strict=True)
    filled = [pc.and_not(old.is_null(nan_is_null=True), new.is_null(nan_is_null=True)) for old, new in columns]
    return pa.table(filled, names=before.column_names)


def _bars(before: Any, after: Any, bars: dict[str, NDArray[Any]]) -> Any:
    """Return error bars of imputed values, 0 for observed values, null where unknown or still missing."""
    import numpy as np

    pa = require("pyarrow", "writing tables", "cli")
    arrays = []
    for name, old, new in zip(before.column_names, before.columns, after.columns, strict=True):
        was_hole, is_hole = (column.is_null(nan_is_null=True).to_numpy() for column in (old, new))
        known = bars.get(name, np.full(len(old), np.nan))
        cells = np.where(was_hole, np.where(is_hole, np.nan, known), 0.0)
        arrays.append(pa.array(cells, from_pandas=True))
    return pa.table(arrays, names=before.column_names)
