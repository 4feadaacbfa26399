"""Where to download a data set, and how to read the file."""

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

MAX_BYTES = 64 << 20  # of a download or its unpacked content, so that no server can fill the memory


@dataclass(frozen=True)
class Source:
    """An address of a data set, and how to turn the file there into the columns of the card.

    Parameters
    ----------
    url : str
        An http or https address.
    member : str or None
        Name of the file inside a zip or tar.gz archive; None if the address is the file itself.
    delimiter : str
        Separator of the cells: a character, or "whitespace".
    header : int
        Number of lines before the first row.
    first : int
        Index of the first column to keep; the columns of the card are adjacent in every file.
    derive : str or None
        Name of a computation that derives the card's columns from those of the file.
    """

    url: str
    member: str | None = None
    delimiter: str = ","
    header: int = 0
    first: int = 0
    derive: str | None = None

    def read(self, payload: bytes, d: int) -> NDArray[np.float64]:
        """Return the table of ``d`` columns in the downloaded bytes; ValueError if there is none."""
        content = payload if self.member is None else _unpack(payload, self.member)
        # Only names and labels can contain bytes that are not UTF-8, and these columns are dropped.
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
    # All errors of archives that are damaged, encrypted or lack the member.
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, EOFError, zlib.error, OSError, RuntimeError) as error:
        raise ValueError(f"no archive with a readable file {member!r} ({error})") from error


def _read_at_most(file: IO[bytes] | gzip.GzipFile) -> bytes:
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")
    return content


def _per_household(blocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn StatLib's totals per block of houses into the averages that scikit-learn has and the paper used."""
    longitude, latitude, age, rooms, bedrooms, population, households, income = blocks.T
    averages = (rooms / households, bedrooms / households, population, population / households)
    return np.column_stack((income, age, *averages, latitude, longitude))


_DERIVE = {"per_household": _per_household}
