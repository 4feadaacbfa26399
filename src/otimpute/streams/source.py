"""Tables that do not fit into memory, as parts that can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

Fold = Callable[[Iterable[Any]], bytes]  # record batches of one part -> what there is to know of it

# Package that the class of a frame comes from: the module of otimpute whose function `source(frame)` makes a BatchSource of it.
_SOURCES = {
    "ray": "distributed.ray",
    "pyspark": "distributed.spark",
    "dask": "distributed.dask",
    "dask_expr": "distributed.dask",
}


@runtime_checkable
class BatchSource(Protocol):
    """Rows in parts, somewhere; every part can be read more than once, and always holds the same rows."""

    @property
    def schema(self) -> Any:
        """The pyarrow Schema of all batches."""
        ...

    def fold(self, fold: Fold) -> Iterator[bytes]:
        """Apply a function to the record batches of each part, where they are, and return its results in any order.

        ``fold`` is pure and can be pickled. How rows are spread over parts, and in which order they come, changes nothing in
        what is made of the results. A part that has no rows may be left out.
        """
        ...


def source_of(X: Any) -> BatchSource | None:
    """``X`` as a source of batches, or None where it is a table in memory."""
    if isinstance(X, BatchSource):
        return X
    for cls in type(X).__mro__:
        module = _SOURCES.get(cls.__module__.partition(".")[0])
        if module is not None:
            source: BatchSource = import_module(f"otimpute.{module}").source(X)
            return source
    return None
