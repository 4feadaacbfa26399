"""Load a data set from a folder, the cache, scikit-learn or the web."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_flag
from .._optional import require
from .._warn import warn_user
from ..exceptions import OtimputeWarning
from .card import Card, dataset_card
from .download import Patience
from .fetch import fetch, unavailable
from .folders import cache_folder, named_folder
from .text import read_csv, write_csv


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """The values of a data set, [n, d] float64, and its card."""

    values: NDArray[np.float64]
    card: Card

    @property
    def data(self) -> Any:
        """The values as a new pandas DataFrame."""
        pandas = require("pandas", "a data set as a DataFrame", "bench")
        return pandas.DataFrame(self.values, columns=list(self.card.columns), copy=True)

    def __repr__(self) -> str:
        return f"Dataset({self.card.name!r}, {self.card.n} rows × {self.card.d} columns)"


def load_dataset(
    name: str, data_home: str | os.PathLike[str] | None = None, download: bool = True, progress: bool = False
) -> Dataset:
    """Load one of the paper's 23 data sets, complete, with the columns used in the paper; the values are always the same.

    It is searched in ``data_home`` or else in the folder given by the environment variable OTIMPUTE_DATA (as ``<name>.csv``),
    in the user's cache folder, in scikit-learn, and finally on the web; downloads are kept in the cache folder.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    data_home : path or None
        A folder of CSV files. A file there with wrong values raises an error.
    download : bool
        Whether to download; if False, DatasetUnavailableError says how to get the data set manually.
    progress : bool
        Whether to show a progress bar while downloading (needs rich).

    >>> iris = load_dataset("iris", download=False)
    >>> iris
    Dataset('iris', 150 rows × 4 columns)
    >>> iris.values[0]
    array([5.1, 3.5, 1.4, 0.2])
    """
    card = dataset_card(name)
    return find(card, Patience(), data_home, check_flag("download", download), check_flag("progress", progress))


def find(
    card: Card,
    patience: Patience,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool = False,
) -> Dataset:
    """Implement `load_dataset`, for any card."""
    folder = named_folder(data_home)
    values = None if folder is None else _read(card, folder)
    if values is None:
        values = _from_cache(card)
    if values is None:
        values = _from_scikit_learn(card)
    if values is None:
        if not download:
            raise unavailable(card, "download=False. ")
        values = fetch(card, card.downloads, patience, progress)
        _keep(card, values)
    return Dataset(values, card)


def _read(card: Card, folder: Path) -> NDArray[np.float64] | None:
    path = folder / f"{card.name}.csv"
    if not path.is_file():
        return None
    try:
        values = read_csv(path, card.columns)
        card.check(values)
    except ValueError as error:
        raise ValueError(f"{path} is not the data set {card.name!r}: {error}; remove or replace that file") from error
    return values


def _from_cache(card: Card) -> NDArray[np.float64] | None:
    try:
        return _read(card, cache_folder())
    except ValueError as error:
        warn_user(f"{error}. It is ignored and downloaded again", OtimputeWarning)
        return None


def _from_scikit_learn(card: Card) -> NDArray[np.float64] | None:
    if card.scikit_learn is None:
        return None
    from sklearn import datasets  # here, because importing it takes a second

    values = np.array(getattr(datasets, card.scikit_learn)().data, dtype=np.float64)
    try:
        card.check(values)
    except ValueError:  # another version of scikit-learn may have other values than the paper
        return None
    return values


def _keep(card: Card, values: NDArray[np.float64]) -> None:
    path = cache_folder() / f"{card.name}.csv"
    try:
        write_csv(path, card.columns, values)
    except OSError as error:
        warn_user(f"{path} cannot be written ({error}), so {card.name!r} will be downloaded each time", OtimputeWarning)
