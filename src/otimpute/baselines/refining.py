"""What imputers share that begin with a completed table and improve it, column after column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from ..fitting import Cells
from ..gaussian import GaussianModel, fit_gaussian
from .standardised import Holes, Rows, StandardisedImputer, StandardisedModel, VaryingColumns


@stored()
@dataclass(frozen=True)
class RefiningModel(StandardisedModel):
    """A method that finds a first guess in the holes: a Gaussian model's, or one that is given with the rows."""

    first_guess: GaussianModel | None  # None where a start is given

    def _standardise(self, values: NDArray[np.floating], missing: Holes, start: Cells | None) -> tuple[Rows, Holes]:
        if start is None and self.first_guess is None and len(self.columns.varying):
            raise ValueError("the model was fitted with a start for the missing entries; pass one for these rows too")
        return _first_rows(self.columns, self.first_guess, values, missing, start)


class RefiningImputer(StandardisedImputer):
    """Base of imputers whose `_fit_rows` finds a first guess in the holes, not the mean.

    The guess comes from a Gaussian model fitted with the imputer, unless a start is given.
    """

    refines: ClassVar[bool] = True

    def _begin(
        self,
        columns: VaryingColumns,
        values: NDArray[np.floating],
        missing: Holes,
        start: Cells | None,
        deadline: float,
        row_weight: NDArray[np.float64] | None,
    ) -> tuple[Rows, Holes, dict[str, Any]]:
        first_guess = None
        if start is None and len(columns.varying):
            first_guess = fit_gaussian(*columns.standardise(values, missing), deadline=deadline, row_weight=row_weight)
        rows, holes = _first_rows(columns, first_guess, values, missing, start)
        return rows, holes, {"first_guess": first_guess}


def _first_rows(
    columns: VaryingColumns,
    first_guess: GaussianModel | None,
    values: NDArray[np.floating],
    missing: Holes,
    start: Cells | None,
) -> tuple[Rows, Holes]:
    rows, holes = columns.standardise(values, missing, start)
    return (rows if first_guess is None else first_guess.fill(rows, holes)), holes
