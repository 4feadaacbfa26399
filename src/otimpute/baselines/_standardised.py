"""What the classical methods share: they see columns of mean 0 and spread 1 that vary, and return completed rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._deadline import check_deadline
from .._random import seed_from
from .._stored import Array, Kind, Record
from .._threads import single_blas_thread
from ..estimator import BaseImputer
from ..exceptions import DivergedError, StoredFileError
from ..table import Standardiser

Rows = NDArray[np.float64]
Holes = NDArray[np.bool_]

# Learned by the base class; everything else that ends in "_" belongs to one fit of a subclass.
_KEPT = {"n_features_in_", "feature_names_in_", "indicator_columns_"}
# New rows handled at a time, so that a long table needs little memory beyond itself.
_CHUNK = 65_536


class StandardisedImputer(BaseImputer):
    """Base of the classical imputers, with plain standardisation: outliers count, as they do in the methods' definitions.

    A subclass learns in `_fit_rows` and completes other rows in `_complete_rows`; both get standardised rows with 0, the
    mean, in their holes, and return them completed. Columns with one distinct value never get there.
    """

    random_state: Any

    # Of `time.perf_counter()`. A fit that cannot be done by then raises OutOfTime, or ends early with what it has reached.
    deadline = math.inf
    _ends_early: ClassVar[bool] = False

    _stored: ClassVar[Mapping[str, Kind]] = {"_scaler": Record((Standardiser,)), "_varying": Array("varying", np.int64)}

    @abstractmethod
    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows: ...

    @abstractmethod
    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows: ...

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        seed = seed_from(self.random_state)
        if not self._ends_early:
            check_deadline(self.deadline)
        for name in [each for each in vars(self) if each.endswith("_") and each not in _KEPT]:
            delattr(self, name)  # a fit that learns nothing, all columns being constant, must not keep what another learned
        self._scaler = Standardiser.fit(values, missing, robust=False, scaled=self._scaled)
        self._varying = np.flatnonzero(self._scaler.spread > 0)
        rows, holes = self._standardise(values, missing)
        if len(self._varying) == 0:
            return self._restore(rows, missing)
        with single_blas_thread():
            completed = self._fit_rows(rows, holes, seed)
        return self._restore(completed, missing)

    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        parts = [np.empty(0)]
        for begin in range(0, len(values), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            rows, holes = self._standardise(values[chunk], missing[chunk])
            if len(self._varying):
                with single_blas_thread():
                    rows = self._complete_rows(rows, holes)
            parts.append(self._restore(rows, missing[chunk]))
        return np.concatenate(parts)

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        learned = type(self)._stored.keys() if len(self._varying) else set()
        if not np.array_equal(self._varying, np.flatnonzero(self._scaler.spread > 0)) or not learned <= vars(self).keys():
            raise StoredFileError("columns that vary must have a spread, and a method that fills them; save the imputer again")

    def _standardise(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> tuple[Rows, Holes]:
        holes = missing[:, self._varying]
        rows = self._scaler.apply(values, self._varying)
        rows[holes] = 0
        return rows, holes

    def _restore(self, completed: Rows, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The missing entries in original units, row by row; columns that do not vary get their one value."""
        if not np.isfinite(completed).all():
            raise DivergedError(
                f"{type(self).__name__} diverged: an imputed value is not finite; remove columns that repeat others"
            )
        z = np.zeros(missing.shape)
        z[:, self._varying] = completed
        return self._scaler.restore(z[missing], np.nonzero(missing)[1])

    def _targets(self, holes: Holes) -> list[NDArray[np.int64]]:
        """The columns predicted together, those of one category, from the fewest holes to the most; none without inputs."""
        groups = self._groups[self._varying]
        targets = [np.flatnonzero(groups == group) for group in dict.fromkeys(groups.tolist())]
        by_holes = np.argsort([holes[:, columns[0]].sum() for columns in targets], kind="stable")
        return [targets[place] for place in by_holes] if len(targets) > 1 else []
