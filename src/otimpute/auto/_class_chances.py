"""From a combined guess at a category to the chance of every category, calibrated on hidden values.

Experts fill a category's coordinates with means, and the mean of corners says how much of each corner is in it: these shares
are chances, of experts that are too sure or not sure enough. How much to temper them, and how often every category really
occurs, is learned from hidden values. Imputed categories, chances of being wrong and random draws all come from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .._stored import Array, Real, stored
from ..table import CategoryCode, ColumnCode, ColumnKind, NumberCode, few_values
from ._columns import Columns
from ._trial import Trial

Cells = NDArray[np.float64]

_BORROWED = 50.0  # values' worth of the average column that a column's calibration leans on
_TEMPERING = tuple(product((0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0), (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0)))
_BORROWED_FOR_SHARES = 1000.0  # values' worth: all observed values tell more about shares than the hidden ones
_ROUNDS = 20  # until categories occur as often as they should
_SMALLEST = 1e-9


def class_chances(
    place: int,
    first: int,
    code: ColumnCode,
    columns: Columns,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    trial: Trial,
    *,
    fractions: bool,
) -> ClassChances | None:
    """Of the column at ``place`` of the table, whose coordinates begin at ``first``; None without any to choose from.

    How often each occurs is counted in rows of the trial, as often as missing values are like them.
    """
    if isinstance(code, CategoryCode):
        corners = code.all_corners()
    elif code.kind == ColumnKind.BOOLEAN:
        corners = np.array([[0.0], [1.0]])
    elif isinstance(code, NumberCode) and len(few := few_values(values[~missing[:, first], first])):
        corners = few[:, None]
    else:
        return None
    coordinates = np.arange(first, first + corners.shape[1])
    if not (columns.scaler.spread[coordinates] > 0).any():
        return None
    standardised = columns.scaler.apply_entries(corners.ravel(), np.tile(coordinates, len(corners))).reshape(corners.shape)
    ordered = not code.has_labels
    observed = ~missing[trial.rows, first]
    known = columns.scaler.apply(values, coordinates)[trial.rows[observed]]
    odds = trial.odds[observed, columns.group[first]]
    n_classes = len(code.categories) if isinstance(code, CategoryCode) else len(corners)
    chances = ClassChances(
        place, first, ordered, standardised, np.ones(len(corners)), n_classes, offsets=np.zeros(len(corners)),
        is_label=code.has_labels,
        is_decided=code.has_labels and not (fractions and code.kind == ColumnKind.BOOLEAN),
    )  # fmt: skip
    counts = np.bincount(chances.nearest(known), odds * (odds.sum() / (odds**2).sum()), len(corners)) + 0.5
    return replace(chances, shares=counts / counts.sum())


@stored(corners=Array("K W"), shares=Array("K", at_least=0), offsets=Array("K"), mixed_in=Real(), power=Real())
@dataclass(frozen=True)
class ClassChances:
    """Chances of the K categories of one column."""

    place: int  # column of the table
    first: int  # of its coordinates
    ordered: bool
    corners: Cells  # [K, width], standardised
    shares: Cells  # [K]: of the observed values, where values are missing
    n_classes: int  # that can be imputed; one more may stand for the rare ones
    mixed_in: float = 0.1  # of these, beside what the guess says
    power: float = 1.0
    offsets: Cells = field(default_factory=lambda: np.zeros(0))  # [K]: by which chances are multiplied, as logarithms
    was_tried: bool = False  # on hidden values
    is_label: bool = True  # rather right or wrong than near or far
    is_decided: bool = True  # one class is written, not a number between two

    def __post_init__(self) -> None:
        if (
            not len(self.corners) == len(self.shares) == len(self.offsets) >= max(self.n_classes, 2)
            or self.first < 0
            or not self.power > 0
        ):
            raise ValueError("every category needs a corner, a share and an offset")

    @property
    def columns(self) -> slice:
        """Its coordinates."""
        return slice(self.first, self.first + self.corners.shape[1])

    def nearest(self, points: Cells) -> NDArray[np.int64]:
        """The category of observed coordinates ``[N, width]``."""
        return np.asarray(((points[:, None] - self.corners) ** 2).sum(axis=2).argmin(axis=1))

    def likeliest(self, points: Cells, std: Cells) -> NDArray[np.int64]:
        """The class to impute."""
        return np.asarray(self.of(points, std)[:, : self.n_classes].argmax(axis=1))

    def of(self, points: Cells, std: Cells) -> Cells:
        """Chances ``[N, K]`` from guesses ``[N, width]`` and their error bars."""
        return self._tempered(self._said(points, std))

    def calibrated(self, said: Cells, truth: NDArray[np.int64], counts: Cells, tempering: tuple[float, float]) -> ClassChances:
        """With categories as frequent among hidden values as they are there."""
        mixed_in, power = tempering
        chances = replace(self, mixed_in=mixed_in, power=power, offsets=np.zeros(len(self.shares)), was_tried=len(truth) > 0)
        if len(truth):
            # Shares among few hidden values are uncertain: lean on those of all observed ones that are like missing ones.
            n = counts.sum()
            trust = n / (n + _BORROWED_FOR_SHARES)
            wanted = trust * np.bincount(truth, counts, len(self.shares)) + ((1 - trust) * n + 1) * self.shares
            for _ in range(_ROUNDS):
                expected = counts @ chances._tempered(said) + self.shares
                chances = replace(chances, offsets=chances.offsets + np.log(wanted / expected))
        return chances

    def _tempered(self, said: Cells) -> Cells:
        mixed = (said + self.mixed_in * self.shares) / (1 + self.mixed_in)
        log = self.power * np.log(np.maximum(mixed, _SMALLEST)) + self.offsets
        chances = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def _said(self, points: Cells, std: Cells) -> Cells:
        """What a guess says as it stands."""
        if self.ordered:  # a normal distribution along the line, cut in the middle between categories
            cuts = (self.corners[1:, 0] + self.corners[:-1, 0]) / 2
            below = ndtr((cuts - points) / np.maximum(std, _SMALLEST)[:, None])
            said = np.diff(below, prepend=0.0, append=1.0, axis=1)
        else:  # how much of each corner is in it
            width = self.corners.shape[1]
            system = np.vstack([self.corners.T, np.ones(width + 1)])
            said = np.column_stack([points, np.ones(len(points))]) @ np.linalg.pinv(system).T
        said = np.maximum(said, 0.0)
        return np.asarray(said / said.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class HiddenLabels:
    """Guesses at hidden values of one column, and the truth."""

    points: Cells  # [N, width]
    std: Cells  # [N]
    truth: Cells  # [N, width]
    stands_for: Cells  # [N]
    fold: NDArray[np.int64]  # [N]: what is said about a value of one is learned from the others

    def take(self, which: NDArray[np.bool_]) -> HiddenLabels:
        """Some of them."""
        return HiddenLabels(self.points[which], self.std[which], self.truth[which], self.stands_for[which], self.fold[which])


def calibrate(columns: Sequence[ClassChances], hidden: Sequence[HiddenLabels]) -> list[ClassChances]:
    """Choose for every column the tempering under which the truth was likeliest, leaning on what suits all columns."""
    said = [column._said(each.points, each.std) for column, each in zip(columns, hidden, strict=True)]
    truth = [column.nearest(each.truth) for column, each in zip(columns, hidden, strict=True)]
    likelihood = np.zeros((len(columns), len(_TEMPERING)))
    for place, (column, each) in enumerate(zip(columns, hidden, strict=True)):
        for k, (mixed_in, power) in enumerate(_TEMPERING):
            chances = replace(column, mixed_in=mixed_in, power=power)._tempered(said[place])
            likelihood[place, k] = each.stands_for @ np.log(
                np.maximum(chances[np.arange(len(chances)), truth[place]], _SMALLEST)
            )
    n_values = sum(float(each.stands_for.sum()) for each in hidden)
    average = likelihood.sum(axis=0) * (_BORROWED / max(n_values, 1.0))
    best = (likelihood + average).argmax(axis=1)
    return [
        column.calibrated(said[place], truth[place], hidden[place].stands_for, _TEMPERING[best[place]])
        for place, column in enumerate(columns)
    ]
