"""Tables that do not fit into memory, as parts that can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from .._checks import check_count
from .local import dataset_source, duckdb_source, polars_source

Fold = Callable[[Iterable[Any]], bytes]  # record batches of one part -> what there is to know of it
Combine = Callable[[Iterable[bytes]], bytes]  # what is known of several parts -> of all of them

# Package that the class of a frame comes from: the module of otimpute whose function `source(frame)` makes a BatchSource of it.
_ENGINES = {
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

    def fold(self, fold: Fold, combine: Combine) -> Iterator[bytes]:
        """Apply a function to the record batches of each part, where they are, and return its results in any order.

        ``combine`` makes one result of several. A source with many parts applies it where these are, so that few results come
        back. Both are pure and can be pickled. How rows are spread over parts, in which order they come, and which results are
        combined first, changes nothing in the end. A part that has no rows may be left out.
        """
        ...


@dataclass(frozen=True)
class Scan:
    """A table to fit to that is read in batches; `scan` makes one."""

    source: Any  # a BatchSource, or LocalParts
    sample_rows: int
    min_observed: int
    rounds: int
    checkpoint: Path | None
    verbose: int


def scan(
    X: Any,
    *,
    sample_rows: int = 50_000,
    min_observed: int = 1000,
    rounds: int = 1,
    checkpoint: str | PathLike[str] | None = None,
    verbose: int = 0,
) -> Scan:
    """A table that need not fit into memory, to be passed to ``fit`` of an imputer.

    What is a sum over rows is summed over all of them, exactly: how many values there are and of what kind, ranges,
    categories, means, and the statistics of a Gaussian. Everything else is learned from a sample of rows, chosen by hashes of
    their content. Neither depends on how rows are spread over files or partitions, or in which order they come.

    Parameters
    ----------
    X : pyarrow Dataset, polars LazyFrame, DuckDB relation, BatchSource, or a frame of Ray Data, Spark or Dask
        What can be read in batches more than once. Parquet files: ``pyarrow.dataset.dataset(path)``.
    sample_rows : int, default=50_000
        How many rows the sample has, about.
    min_observed : int, default=1000
        Of how many rows with a value of a column there are at least in the sample; rows are added for sparse columns.
    rounds : int, default=1
        How often a Gaussian learned from the sample is improved by a step of EM over all rows; each reads them once more, as
        one does for the means. With 0 they are those of the sample.
    checkpoint : path or None, default=None
        A file that says how far the reading has come. A fit that was stopped goes on from there, with the same result.
    verbose : int, default=0
        Show a progress bar while rows are read.

    Examples
    --------
    >>> import polars as pl
    >>> import otimpute
    >>> rows = pl.LazyFrame({"x": [1.0, None, 3.0], "y": [1.0, 2.0, 6.0]})
    >>> imputer = otimpute.baselines.MeanImputer().fit(otimpute.scan(rows))
    >>> imputer.means_.tolist()
    [2.0, 3.0]
    """
    check_count("sample_rows", sample_rows)
    check_count("min_observed", min_observed)
    check_count("rounds", rounds, at_least=0)
    source = _source_of(X)
    if source is None:
        raise TypeError(
            f"X must be a pyarrow Dataset, a polars LazyFrame, a DuckDB relation, or a frame of Ray Data, Spark or Dask, got "
            f"{type(X).__name__}; pass pyarrow.dataset.dataset(path) for files, and tables in memory to fit"
        )
    return Scan(source, sample_rows, min_observed, rounds, None if checkpoint is None else Path(checkpoint), verbose)


def scan_of(X: Any) -> Scan | None:
    """``X`` as a scan, or None where it is a table in memory."""
    if isinstance(X, Scan):
        return X
    return None if _source_of(X) is None else scan(X)


def _source_of(X: Any) -> Any:
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(X).__mro__}
    if ("pyarrow", "Dataset") in names:
        return dataset_source(X)
    if ("polars", "LazyFrame") in names:
        return polars_source(X)
    if any(package in ("duckdb", "_duckdb") and name == "DuckDBPyRelation" for package, name in names):
        return duckdb_source(X)
    for package, _ in sorted(names):
        if package in _ENGINES:
            return import_module(f"otimpute.{_ENGINES[package]}").source(X)
    is_table = any(package == "polars" for package, _ in names)  # whose frames have a schema and fold columns
    return X if isinstance(X, BatchSource) and not is_table else None
