"""Where a data set can be downloaded, and how to read what comes."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import IO

import numpy as np
from numpy.typing import NDArray

from .text import parse_rows

MAX_BYTES = 64 << 20  # of a download or of what is unpacked from it: a wrong server cannot fill the memory


@dataclass(frozen=True)
class Source:
    """One address of a data set, with the recipe that turns the file there into the columns of the card.

    Parameters
    ----------
    url : str
        An http or https address.
    member : str or None
        Name of the file inside the zip or tar.gz archive that is there; None if the address is the file itself.
    delimiter : str
        What stands between cells: a character, or "whitespace".
    header : int
        Number of lines before the first row.
    first : int
        Place of the first column that is kept; those of the card follow each other in every file.
    derive : str or None
        Name of a computation that makes the card's columns from those of the file.
    """

    url: str
    member: str | None = None
    delimiter: str = ","
    header: int = 0
    first: int = 0
    derive: str | None = None

    def read(self, payload: bytes, d: int) -> NDArray[np.float64]:
        """The table of ``d`` columns in the downloaded bytes; ValueError if there is none."""
        content = payload if self.member is None else _unpack(payload, self.member)
        # What is not UTF-8 can only stand in columns that are dropped: names and labels.
        lines = content.decode("utf-8-sig", errors="replace").splitlines()[self.header :]
        values = parse_rows(lines, None if self.delimiter == "whitespace" else self.delimiter, self.first, d)
        return values if self.derive is None else _DERIVE[self.derive](values)


def _unpack(payload: bytes, member: str) -> bytes:
    try:
        if zipfile.is_zipfile(BytesIO(payload)):
            with zipfile.ZipFile(BytesIO(payload)) as folder, folder.open(member) as file:
                return _read_at_most(file)
        with gzip.open(BytesIO(payload)) as stream:
            tar = BytesIO(_read_at_most(stream))
        with tarfile.open(fileobj=tar, mode="r:") as archive:
            inside = archive.extractfile(member)
            return b"" if inside is None else _read_at_most(inside)
    # Every way an archive can be broken, encrypted or without the member.
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, EOFError, zlib.error, OSError, RuntimeError) as error:
        raise ValueError(f"no archive with a readable file {member!r} ({error})") from error


def _read_at_most(file: IO[bytes] | gzip.GzipFile) -> bytes:
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")
    return content


def _per_household(blocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """StatLib's totals of a block of houses as the averages that scikit-learn serves and the paper used."""
    longitude, latitude, age, rooms, bedrooms, population, households, income = blocks.T
    averages = (rooms / households, bedrooms / households, population, population / households)
    return np.column_stack((income, age, *averages, latitude, longitude))


_DERIVE = {"per_household": _per_household}
