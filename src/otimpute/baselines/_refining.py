"""What imputers share that begin with a completed table and improve it, column after column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._stored import IfThere, Kind, Record, Scalar
from ..exceptions import StoredFileError
from ..gaussian import GaussianModel, fit_gaussian
from ._standardised import Holes, Rows, StandardisedImputer


class RefiningImputer(StandardisedImputer):
    """Base of imputers whose `_fit_rows` and `_complete_rows` find a first guess in the holes, not the mean.

    The guess comes from a Gaussian model fitted with the imputer. Where other imputers made a better one, `starts_in_holes`
    says that it stands in the holes of the values already.
    """

    starts_in_holes = False

    _stored: ClassVar[Mapping[str, Kind]] = {
        "starts_in_holes": Scalar(bool),
        "_start": IfThere(Record((GaussianModel,))),
    }

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        self._start: GaussianModel | None = None
        return super()._fit_cells(values, missing)

    def _standardise(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> tuple[Rows, Holes]:
        rows, holes = super()._standardise(values, missing)
        if self.starts_in_holes:
            return self._scaler.apply(values, self._varying), holes
        if self._start is None and len(self._varying):
            self._start = fit_gaussian(rows, holes, deadline=self.deadline)
        return (rows if self._start is None else self._start.fill(rows, holes)), holes

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        if (self._start is None) != (self.starts_in_holes or not len(self._varying)):
            raise StoredFileError("there must be a start exactly where none is given; save the imputer again")
