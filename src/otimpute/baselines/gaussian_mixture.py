"""Mixtures of Gaussians fitted by expectation–maximisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_real
from .._deadline import OutOfTime, check_deadline
from .._random import generator
from .._row_noise import normal, uniform
from .._stored import IfThere, Kind, ListOf, Record, Whole
from ..gaussian import MixtureModel, fit_gaussian, fit_mixture
from ._standardised import Holes, Rows, StandardisedImputer

_ROWS_PER_COMPONENT = 5


class GaussianMixtureImputer(StandardisedImputer):
    """Fill a row's holes with their expectation given its other values, under mixtures of Gaussians.

    Each component of a mixture is a straight relation in one region of the table, so that a mixture follows clusters and
    curves. Small mixtures are too plain and large ones too wild in different places: the mean over several sizes is better
    than any of them.

    Parameters
    ----------
    n_components : int or tuple of int, default=(8, 16, 32)
        Sizes of the mixtures that are averaged; never more than one component per five rows.
    prior_rows : float or None, default=None
        As if so many rows of every component had the pooled covariance; None is the number of columns + 2.
    max_iter : int, default=15
        Most rounds of expectation and maximisation.
    tol : float, default=2e-3
        Stop when the imputed values move by less than this (root mean square, in standard deviations).
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Rounds made, by the mixture that took most.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(GaussianMixtureImputer(random_state=0).fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    _stored: ClassVar[Mapping[str, Kind]] = {
        "n_iter_": IfThere(Whole()),
        "_mixtures": IfThere(ListOf(Record((MixtureModel,)))),
    }

    def __init__(
        self,
        *,
        n_components: int | tuple[int, ...] = (8, 16, 32),
        prior_rows: float | None = None,
        max_iter: int = 15,
        tol: float = 2e-3,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_components = n_components
        self.prior_rows = prior_rows
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check_parameters(self) -> None:
        sizes = self._sizes()
        if len(sizes) == 0:
            raise ValueError("n_components must be a size, or several such as (8, 16, 32), got none")
        for size in sizes:
            check_count("a size in n_components", size)
        if self.prior_rows is not None:
            check_real("prior_rows", self.prior_rows, above=0)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)

    def _sizes(self) -> Sequence[int]:
        return self.n_components if isinstance(self.n_components, (tuple, list)) else (self.n_components,)

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:
        start = fit_gaussian(rows, holes, deadline=self.deadline).fill(rows, holes)
        check_deadline(self.deadline)
        most = max(1, len(rows) // _ROWS_PER_COMPONENT)
        self._mixtures: list[MixtureModel] = []
        for place, size in enumerate(self._sizes()):
            try:
                mixture = fit_mixture(
                    rows,
                    holes,
                    min(int(size), most),
                    start=start,
                    rng=generator(seed, f"mixture {place}"),
                    prior_rows=self.prior_rows,
                    tolerance=self.tol,
                    max_iterations=self.max_iter,
                    deadline=self.deadline,
                )
            except OutOfTime:
                if not self._mixtures:
                    raise
                break  # those that are done must do
            self._mixtures.append(mixture)
        self.n_iter_ = max(mixture.n_iterations for mixture in self._mixtures)
        return self._complete_rows(rows, holes)

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        return np.asarray(np.mean([mixture.fill(rows, holes) for mixture in self._mixtures], axis=0))

    def draw_residuals(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """How far draws of the missing entries lie from their expectation, row by row, in the columns' units.

        A row's draw follows from its key and its observed values, whatever rows it comes with; each row uses one mixture.
        """
        rows, holes = self._standardise(values, missing)
        residuals = np.zeros(missing.shape)
        if len(self._varying):
            chosen = (uniform(keys, 0) * len(self._mixtures)).astype(np.int64)
            for place, mixture in enumerate(self._mixtures):
                mine = np.flatnonzero(chosen == place)
                chance, noise = uniform(keys[mine], 1), normal(keys[mine], holes.shape[1], first=2)
                residuals[np.ix_(mine, self._varying)] = mixture.draw_residuals(rows[mine], holes[mine], chance, noise)
        return (residuals * self._scaler.unit)[missing]
