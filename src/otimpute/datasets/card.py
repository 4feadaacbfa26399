"""Metadata of the data sets: description, source, and the checksum of the values.

The checksum is the SHA-256 of the column names (a line each), of the line ``n d``, and of the values as little-endian
float64, row after row. As it depends on the values and not on the bytes of a file, it accepts every copy with the right
numbers, whatever its line endings and number format.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice
from .source import Source


@dataclass(frozen=True, repr=False)
class Card:
    """Description of a data set."""

    name: str
    title: str
    n: int
    columns: tuple[str, ...]
    source: str
    checksum: str
    quirks: str
    licence: str | None = None
    scikit_learn: str | None = None  # the function of sklearn.datasets that returns it
    downloads: tuple[Source, ...] = ()

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def check(self, values: NDArray[np.float64]) -> None:
        """Raise ValueError unless these are the values of this data set."""
        if values.shape != (self.n, self.d):
            raise ValueError(f"it must have {self.n} rows and {self.d} columns, got {values.shape[0]} and {values.shape[1]}")
        if not np.isfinite(values).all():
            raise ValueError("it must have finite values only, but some are missing or infinite")
        got = checksum(self.columns, values)
        if got != self.checksum:
            raise ValueError(f"the checksum of its values must be {self.checksum}, got {got}: some values differ")

    def __repr__(self) -> str:
        shown = self.columns if self.d <= 8 else (*self.columns[:6], "…", self.columns[-1])
        facts = {
            "columns": ", ".join(shown),
            "quirks": self.quirks,
            "source": self.source,
            "licence": self.licence or "not stated",
            "checksum": self.checksum,
        }
        head = f"{self.name}: {self.title}, {self.n} rows × {self.d} columns"
        return "\n".join([head, *(f"  {label:<9} {fact}" for label, fact in facts.items())])


def checksum(columns: tuple[str, ...], values: NDArray[np.float64]) -> str:
    """Return the checksum described at the top of this module."""
    n, d = values.shape
    digest = hashlib.sha256("".join(f"{line}\n" for line in (*columns, f"{n} {d}")).encode())
    digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return digest.hexdigest()


@cache
def _cards() -> dict[str, Card]:
    text = resources.files(__package__).joinpath("cards.toml").read_text(encoding="utf-8")
    cards = {}
    for name, facts in tomllib.loads(text).items():
        downloads = tuple(Source(**source) for source in facts.pop("downloads"))
        cards[name] = Card(name=name, columns=tuple(facts.pop("columns")), downloads=downloads, **facts)
    return cards


def list_datasets() -> list[str]:
    """Return the names of the paper's data sets.

    >>> len(list_datasets()), list_datasets()[:2]
    (23, ['airfoil_self_noise', 'blood_transfusion'])
    """
    return sorted(_cards())


def dataset_card(name: str) -> Card:
    """Return the description of a data set, without loading it.

    >>> dataset_card("glass")
    glass: Glass Identification, 214 rows × 9 columns
      columns   RI, Na, Mg, Al, Si, K, …, Fe
      quirks    The row number (first column) and the type of glass (last) are dropped. 1 row repeats an earlier one.
      source    https://archive.ics.uci.edu/dataset/42/glass+identification
      licence   CC BY 4.0
      checksum  f81729ec3bbf967b95e7eb26fca0a57613bc462c7f2276d30500f74fc7c52f22
    """
    return _cards()[check_choice("name", name, _cards())]
