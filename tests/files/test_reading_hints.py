"""Suspicious columns of a table are reported, and usual ones are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otimpute.files import AmbiguousSeparator, RowNumbers, Sentinel, UnparsedValues, find_reading_hints, read_file

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def hints(tmp_path: Path) -> Any:
    """Hints about a column of these fields."""

    def find(fields: list[Any], name: str = "c", **options: Any) -> list[Any]:
        (tmp_path / "t.csv").write_text(f"{name};x\n" + "".join(f"{field};{k % 7}\n" for k, field in enumerate(fields)))
        return find_reading_hints(read_file(tmp_path / "t.csv", **{"delimiter": ";"} | options))

    return find


RNG = np.random.default_rng(0)
NUMBERS = [f"{number:.2f}" for number in RNG.normal(50, 9, 140)]


def test_a_frequent_text_among_numbers_is_named(hints: Any) -> None:
    (found,) = hints(["refused"] * 60 + ["NA"] * 5 + NUMBERS)
    assert found == UnparsedValues("c", "numbers", 140, 200, ("refused",), 2, ("NA",))
    assert hints(["refused"] * 60 + NUMBERS, na_values={"c": ["refused"]}) == []


def test_a_word_for_nothing_among_numbers_is_a_missing_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,x\n" + "".join(f"{each},1\n" for each in ["unknown"] * 60 + NUMBERS))
    (column, _) = read_file(tmp_path / "t.csv").columns
    assert (column.kind, dict(column.missing_as)) == ("number", {"unknown": 60})


def test_numbers_among_categories_are_categories(hints: Any) -> None:
    assert hints(["1", "2", "3", "4+"] * 20) == []
    assert hints([*NUMBERS[:5], *(f"text {k}" for k in range(100))]) == []


def test_thousands_that_may_be_decimals_are_named(hints: Any) -> None:
    assert hints(["1,234", "5,678", "12"]) == [AmbiguousSeparator("c", "1,234")]
    assert hints(["1,234", "5,678", "12"], decimal=",") == []
    assert hints(["1,234", "5,678", "12"], decimal=".") == []


@pytest.mark.parametrize("value", ["-999", "9999", "99.0", "-999.0", "1000000", "-99"])
def test_equal_numbers_far_from_all_others_are_named(hints: Any, value: str) -> None:
    found = hints([value] * 30 + [""] * 3 + ["NA"] + [number for number in NUMBERS if float(number) < 75])
    assert [(each.spelling, each.n_cells, each.na_values) for each in found] == [(value.removesuffix(".0"), 30, ("NA",))]
    assert isinstance(found[0], Sentinel)
    assert hints([value] * 30 + NUMBERS, na_values=[value]) == []


@pytest.mark.parametrize(
    "fields",
    [
        ["0"] * 100 + NUMBERS[:50],  # nothing is a number
        ["-999", "-998", *NUMBERS],  # two outliers
        ["0", "1"] * 50,
        [str(k % 100) for k in range(1000)],  # 99 is the last of many
        ["10"] * 30 + ["1", "2", "3"] * 30,  # no code that people use
        ["99"] * 30 + ["98"] * 30 + ["97"] * 30,
        ["inf"] * 30 + NUMBERS,
    ],
)
def test_other_numbers_are_not(hints: Any, fields: list[str]) -> None:
    assert hints(fields) == []


@pytest.mark.parametrize("code", ["99", "999", "-9", "-99"])
def test_usual_codes_stand_out_among_few_numbers_too(hints: Any, code: str) -> None:
    (found,) = hints([code] * 30 + ["0", "1", "2", "3"] * 30)
    assert (found.spelling, found.n_cells, found.low, found.high) == (code, 30, 0, 3)


def test_numbers_of_rows_are_named(hints: Any) -> None:
    assert hints(list(range(1, 41))) == [RowNumbers("c", 1, 40)]
    assert hints(list(range(40))) == [RowNumbers("c", 0, 39)]
    shuffled = [int(number) for number in RNG.permutation(np.arange(1000, 9000, 17))]
    assert hints(shuffled, name="PassengerId") == [RowNumbers("PassengerId", min(shuffled), max(shuffled))]
    assert hints(shuffled, name="price") == []
    assert hints(list(range(1980, 2020)), name="year") == []
    assert hints([*range(1, 40), 3], name="row_id") == []
    assert hints(list(range(1, 10))) == []


def test_typed_files_have_sentinels_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [-999.0] * 30 + [float(number) for number in NUMBERS]}), tmp_path / "t.parquet")
    (found,) = find_reading_hints(read_file(tmp_path / "t.parquet"))
    assert (found.name, found.spelling, found.n_cells, found.is_text) == ("x", "-999", 30, False)
