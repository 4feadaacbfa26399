"""Read and write tables of numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._files import appears_whole


def parse_rows(lines: Iterable[str], delimiter: str | None, first: int, d: int) -> NDArray[np.float64]:
    """Parse ``d`` numbers from each line that is not blank, starting at cell ``first``; the default delimiter is white space.

    >>> parse_rows(["a,1,2.50,x", "", "b,3,-0.0,y"], ",", 1, 2)
    array([[1. , 2.5],
           [3. , 0. ]])
    """
    rows = []
    for line in lines:
        if not line.strip():
            continue
        cells = line.split(delimiter)[first : first + d]
        if len(cells) < d:
            raise ValueError(f"a row has {len(cells)} values instead of {d}: {line[:60]!r}")
        # Python's float gives the nearest double; faster parsers may be off in the last bit, which changes the checksum.
        rows.append([float(cell) for cell in cells])
    # Adding 0 turns −0 into 0: some copies of a set write "-0.000" where others write "0".
    return np.array(rows, dtype=np.float64).reshape(-1, d) + 0.0


def read_csv(path: Path, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """Read the values of a CSV file whose header is ``columns``."""
    header, *lines = path.read_text(encoding="utf-8-sig").splitlines() or [""]
    names = [cell.strip().strip('"') for cell in header.split(",")]
    for number, (expected, got) in enumerate(zip_longest(columns, names), start=1):
        if got != expected:
            raise ValueError(f"column {number} must be {expected!r}, got {got!r}; its header must be {','.join(columns)}")
    return parse_rows(lines, ",", 0, len(columns))


def write_csv(path: Path, columns: tuple[str, ...], values: NDArray[np.float64]) -> None:
    """Write the file atomically."""
    with appears_whole(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(columns) + "\n")
        file.writelines(",".join(map(repr, row)) + "\n" for row in values.tolist())
