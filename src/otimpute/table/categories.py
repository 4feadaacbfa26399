"""Categories as coordinates.

Ordered ones are their position. Others are the corners of a regular simplex: k of them in k − 1 coordinates, all equally far
apart. An imputed point becomes the category of the nearest corner, which for a mean of corners is the most frequent one. Of
very many categories the rare ones share a corner: learned from as "something rare", and never imputed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from .kinds import ColumnKind, Family
from .native import assign, declared_labels, is_number, nulls_of, numpy_type, series_like, write_labels

Values = NDArray[np.floating]
Missing = NDArray[np.bool_]
Read = tuple[Values, Missing, Missing]

# How far apart two categories are, in standard deviations of a number. Measured: docs/studies/mixed.md.
DISAGREEMENT = 2.0
RARE = "(rarer ones)"  # what people read where categories were pooled


@stored()
@dataclass(frozen=True)
class CategoryCode:
    """One of some categories, without order (corners of a simplex) or with it (positions in a row)."""

    categories: tuple[Any, ...]  # what JSON can hold; the text of anything else
    ordered: bool
    pools_rest: bool = False  # whether labels that are not among the categories share a corner of their own
    family: ClassVar[Family] = Family.LABEL

    def __post_init__(self) -> None:
        plain = all(isinstance(label, (str, bool, int, float)) for label in self.categories)
        if not plain or not 0 < len(set(self.categories)) == len(self.categories):
            raise ValueError("categories must be texts, numbers or truth values, at least one, and each once")
        if self.ordered and self.pools_rest:
            raise ValueError("categories with an order have no place for the rest")

    @property
    def kind(self) -> ColumnKind:  # noqa: D102
        return ColumnKind.ORDERED if self.ordered else ColumnKind.CATEGORY

    @property
    def width(self) -> int:  # noqa: D102
        return min(len(self.categories) - 1, 1) if self.ordered else len(self.categories) - 1 + self.pools_rest

    @property
    def is_scaled(self) -> bool:  # noqa: D102
        return not self.ordered

    @property
    def has_labels(self) -> bool:  # noqa: D102
        return not self.ordered

    @property
    def labels(self) -> tuple[Any, ...]:
        """The categories and, where there is one, the name of the pooled rest."""
        return (*self.categories, RARE) if self.pools_rest else self.categories

    def corners(self) -> NDArray[np.float64]:
        """The coordinates of each category ``[k, width]``."""
        return self.all_corners()[: len(self.categories)]

    def all_corners(self) -> NDArray[np.float64]:
        """Those of each of the `labels`."""
        if self.ordered:
            return np.arange(len(self.categories), dtype=np.float64)[:, None][:, : self.width]
        return simplex(len(self.labels))

    def read(self, column: nw.Series[Any], marker: Any) -> Read:  # noqa: D102
        places = {label: place for place, label in enumerate(self.categories)}
        holes = label_holes(column, marker)
        # A category never seen in training is rare, or says nothing: then it is imputed like a missing value, and kept.
        other = len(self.categories) if self.pools_rest else -1
        found = [
            -1 if hole else places.get(plain_label(label), other) for label, hole in zip(column.to_list(), holes, strict=True)
        ]
        codes = np.array(found, dtype=np.int64)
        return self.all_corners()[codes], codes < 0, holes

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        declared = declared_labels(column)
        own = {label: label for label in self.categories}
        if declared is not None:
            own = {plain_label(label): label for label in declared}
        possible = [place for place, label in enumerate(self.categories) if label in own]
        if not possible:
            raise ValueError(
                f"column {column.name!r} is declared to hold {list(own)[:10]}, none of the categories seen in training, "
                f"{list(self.categories[:10])}; convert it to those"
            )
        nearest = np.array(possible)[nearest_rows(points, self.corners()[possible])]
        labels = [own[self.categories[place]] for place in nearest]
        if is_number(column.dtype):
            return column.scatter(rows, series_like(column, column.name, np.array(labels, numpy_type(column)), column.dtype))
        return assign(column, rows, labels) if column.dtype == nw.Object else write_labels(column, rows, labels)

    def python_values(self, points: Values) -> list[Any]:  # noqa: D102
        return [self.categories[place] for place in nearest_rows(points, self.corners())]


def label_holes(column: nw.Series[Any], marker: Any) -> Missing:
    """Where a column of labels is null, NaN, or the number that marks missing ones."""
    holes = nulls_of(column)
    if marker != marker or column.dtype in (nw.String, nw.Boolean):
        return holes
    marked = [not isinstance(one, (str, bool)) and bool(one == marker) for one in column.to_list()]
    return np.asarray(holes | np.array(marked, dtype=bool))


def count_labels(column: nw.Series[Any], marker: Any) -> Counter[Any]:
    """How often each label of a column occurs, the labels as JSON can hold them."""
    pairs = zip(column.to_list(), label_holes(column, marker), strict=True)
    return Counter(plain_label(label) for label, hole in pairs if not hole)


def simplex(n_corners: int) -> NDArray[np.float64]:
    """Points ``[k, k − 1]`` around 0, each as far from each other as two categories are.

    >>> corners = simplex(3)
    >>> [round(float(np.linalg.norm(corners[a] - corners[b])) / DISAGREEMENT, 6) for a, b in ((0, 1), (0, 2), (1, 2))]
    [1.0, 1.0, 1.0]
    """
    corners = np.zeros((n_corners, n_corners - 1))
    for k in range(1, n_corners):
        # Helmert's contrasts: the k-th sets corner k against those before it.
        corners[:k, k - 1] = 1.0
        corners[k, k - 1] = -float(k)
        corners[:, k - 1] /= math.sqrt(k * (k + 1))
    return corners * (DISAGREEMENT / math.sqrt(2))


def nearest_rows(points: Values, corners: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which corner each point is nearest to; the first of equally near ones."""
    distance = (corners**2).sum(axis=1) - 2 * points @ corners.T
    return np.asarray(np.argmin(distance, axis=1))


def plain_label(label: Any) -> Any:
    """A label as JSON can hold it: the text of anything that is no string, number or boolean."""
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, (str, bool, int, float)) else str(label)
