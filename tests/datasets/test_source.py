"""Every recipe reads the raw form it describes, exactly."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from otimpute.datasets import dataset_card, list_datasets, load_dataset
from otimpute.datasets import source as source_module
from otimpute.datasets.card import checksum
from otimpute.datasets.source import Source

RECIPES = [(name, i) for name in list_datasets() for i in range(len(dataset_card(name).downloads))]


def in_zip(member: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Index", "other things")
        archive.writestr(member, content)
    return packed.getvalue()


def in_tar(member: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def totals_of_blocks(houses: np.ndarray) -> np.ndarray:
    """StatLib's California table from the derived one; its totals are whole numbers."""
    income, age, rooms, bedrooms, population, occupation, latitude, longitude = houses.T
    households = np.round(population / occupation)
    totals = np.round(rooms * households), np.round(bedrooms * households), population, households
    return np.column_stack((longitude, latitude, age, *totals, income))


def raw_form(source: Source, values: np.ndarray) -> bytes:
    """A file as the recipe describes it, with cells to drop, in a format of numbers other than ours."""
    table = totals_of_blocks(values) if source.derive else values
    gap = " \t " if source.delimiter == "whitespace" else source.delimiter
    lines = [f"about line {i}" for i in range(source.header)]
    for row in table:
        cells = [f"n\xe4me{i}" for i in range(source.first)] + [f"{x:.17e}" for x in row] + ["label", "9.9"]
        lines.append(gap.join(cells) + " ")
    content = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if source.member is None:
        return content
    return (in_zip if source.url.endswith(".zip") else in_tar)(source.member, content)


@pytest.mark.parametrize(("name", "which"), RECIPES)
def test_a_recipe_gives_the_paper_s_table_from_its_raw_form(name: str, which: int, request: pytest.FixtureRequest) -> None:
    card = dataset_card(name)
    folder: Path | None = None if card.scikit_learn else request.getfixturevalue("uci")
    values = load_dataset(name, data_home=folder, download=False).values
    source = card.downloads[which]
    read = source.read(raw_form(source, values), card.d)
    card.check(read)
    np.testing.assert_array_equal(read, values)


def test_california_s_averages_are_per_household() -> None:
    raw = b"-122.23,37.88,41,880,129,322,126,8.3252,452600\n"
    house = Source("https://example.org", derive="per_household").read(raw, 8)
    np.testing.assert_array_equal(house, [[8.3252, 41, 880 / 126, 129 / 126, 322, 322 / 126, 37.88, -122.23]])


def test_minus_zero_is_zero() -> None:
    columns = ("a", "b")
    source = Source("https://example.org")
    minus, plus = source.read(b"-0.000,1\n", 2), source.read(b"0,1\n", 2)
    assert checksum(columns, minus) == checksum(columns, plus)


def test_a_byte_order_mark_is_no_part_of_the_first_number() -> None:
    assert Source("https://example.org").read(b"\xef\xbb\xbf1,2\n", 2).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"<html>not here</html>",
        in_zip("other.data", b"1,2"),
        in_zip("table.data", b"1,2\n" * 50)[:-60],
        in_tar("other.data", b"1,2"),
        in_tar("table.data", b"1,2\n" * 50)[:-30],
        gzip.compress(b"not a tar archive", mtime=0),
        in_zip("../table.data", b"1,2"),
    ],
    ids=["empty", "page", "zip-without", "zip-cut", "tar-without", "tar-cut", "no-tar", "zip-path"],
)
def test_what_is_not_the_archive_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"no archive with a readable file 'table\.data'"):
        Source("https://example.org/x.zip", member="table.data").read(payload, 2)


@pytest.mark.parametrize("pack", [in_zip, in_tar])
def test_an_archive_may_not_unpack_to_more_than_the_limit(pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "MAX_BYTES", 100_000)
    bomb = pack("table.data", b"1,2\n" * 100_000)
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match="unpacks to more than"):
        Source("https://example.org", member="table.data").read(bomb, 2)


@pytest.mark.parametrize(("raw", "message"), [(b"1,2\n3\n", "1 values instead of 2"), (b"1,2\n3,x\n", "could not convert")])
def test_rows_without_the_numbers_they_must_have_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Source("https://example.org").read(raw, 2)
