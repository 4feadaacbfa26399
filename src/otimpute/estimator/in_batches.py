"""What an imputer does with tables that are read and written in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from ..fitting import CellModel
from .record_batches import impute_batches
from .scan_fit import RowSums, ScanSummary


class ReadsInBatches:
    """Imputes streams of batches, and says which sums over all rows improve on a fit to a sample."""

    _improves_in_rounds: ClassVar[bool] = False  # whether a second reading of all rows makes the model better
    _sampled: Sequence[str] = ("the model",)  # what is learned from a sample where rows are too many
    scan_summary_: ScanSummary  # of a fit to a table that was read in batches

    def transform_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Impute a stream of Arrow record batches, one at a time: tables of any length, in the memory of one batch.

        Every row is treated alone, so that the result is the same, to the bit, however rows are spread over batches (to
        rounding, for `MIWAEImputer`, `GAINImputer` and torch modules of your own). Random
        draws follow from the content of a row: equal rows get equal draws. Batches come back with the schema they came with,
        and columns that the imputer was not fitted on come back as they are.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            All of one schema, of any length. They need the columns of the fit, by name and in any order.

        Yields
        ------
        batch : pyarrow.RecordBatch
            Each of ``batches`` with its missing values imputed.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from otimpute.baselines import MeanImputer
        >>> table = pa.table({"id": [1, 2, 3], "x": [1.0, None, 3.0]})
        >>> imputer = MeanImputer().fit(table.select(["x"]))
        >>> [batch["x"].to_pylist() for batch in imputer.transform_batches(table.to_batches(max_chunksize=2))]
        [[1.0, 2.0], [3.0]]
        """
        check_is_fitted(self)
        return impute_batches(self, batches)  # type: ignore[arg-type]

    def _row_sums(self) -> RowSums | None:
        """Sums over rows, still empty, from which a better model follows than from a sample; None where there are none."""
        return None

    @property
    def _summed(self) -> Sequence[str]:
        """What follows from sums over all rows, in words."""
        return ()

    def _improved(self, sums: Any) -> CellModel:
        """The model with what follows from sums over all rows."""
        raise NotImplementedError

    def _note_scan(self, summary: ScanSummary) -> None:
        """Keep what there is to say of a fit to a table that was read in batches."""
        self.scan_summary_ = summary
