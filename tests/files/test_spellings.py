"""What means a missing value is decided column by column, with the whole file as witness."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from otimpute.files import AmbiguousSpelling, find_reading_hints, open_table, read_file
from otimpute.files.csv_file import CsvSource

pa = pytest.importorskip("pyarrow")


def source(columns: dict[str, list[str]], **options: Any) -> CsvSource:
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return CsvSource(io.BytesIO("".join(";".join(row) + "\n" for row in rows).encode()), delimiter=";", **options)


def gaps(seen: CsvSource, name: str = "c") -> dict[str, int]:
    """How missing values are written; checked against the values that are read."""
    frame = next(seen.chunks()).frame
    assert [column.n_missing for column in seen.columns] == [column.null_count for column in frame.columns]
    assert all(sum(column.missing_as.values()) == column.n_missing for column in seen.columns)
    return dict(next(column.missing_as for column in seen.columns if column.name == name))


def many(**counts: int) -> list[str]:
    return [text for text, n in counts.items() for _ in range(n)]


NONE = many(None_=66, Some=98, Freq=115, NA=45)
ANSWERS = [text.rstrip("_") for text in NONE]


def test_a_spelling_as_frequent_as_a_category_is_one_while_another_marks_the_gaps() -> None:
    seen = source({"c": ANSWERS, "x": ["1"] * len(ANSWERS)})
    assert gaps(seen) == {"NA": 45}
    assert next(seen.chunks()).frame.column("c").to_pylist().count("None") == 66
    because = "NA marks the missing values of this column, and it is as frequent as other values"
    assert seen.hints == [AmbiguousSpelling("c", "None", 66, False, because, ("NA",))]


@pytest.mark.parametrize("spelling", ["None", "none", "NA", "N/A", "null", "NaN", "?", "-", ".", "unknown", "n.a."])
@pytest.mark.parametrize("value", ["1.5", "7", "2020-01-31", "true"])
def test_among_numbers_dates_and_truth_values_every_spelling_is_a_gap(spelling: str, value: str) -> None:
    values = [value] * 20 + [spelling] * 20 + [""] * 5
    seen = source({"c": values, "x": ["1"] * 45})
    assert gaps(seen) == {spelling: 20, "": 5}
    assert seen.columns[0].kind != "string"
    assert seen.hints == []


@pytest.mark.parametrize(
    ("values", "others", "missing"),
    [
        # An empty field is the gap, and the word is as frequent as other values, or not.
        ([*["None"] * 30, *["a"] * 30, *["b"] * 40, *[""] * 9], ["1"], {"": 9}),
        ([*["None"] * 2, *["a"] * 30, *["b"] * 40, *[""] * 9], ["1"], {"": 9}),
        ([*["NA"] * 30, *["a"] * 30, *["b"] * 40, *[""] * 9], ["1"], {"": 9}),
        ([*["NA"] * 30, *["a"] * 30, *["b"] * 40, ""], ["1"], {"NA": 30, "": 1}),
        # Nothing else marks missing values.
        ([*["None"] * 30, *["a"] * 30, *["b"] * 40], ["1"], {}),
        ([*["None"] * 2, *["a"] * 30, *["b"] * 40], ["1"], {"None": 2}),
        ([*["NA"] * 30, *["a"] * 30, *["b"] * 40], ["1"], {"NA": 30}),
        # The same word marks missing numbers; or another one does.
        ([*["NA"] * 30, *["a"] * 30, *["b"] * 40, *[""] * 9], ["1", "NA"], {"NA": 30, "": 9}),
        ([*["None"] * 30, *["a"] * 30, *["b"] * 40], ["1", "None"], {"None": 30}),
        ([*["NA"] * 30, *["a"] * 30, *["b"] * 40], ["1", ""], {}),
        ([*["None"] * 30, *["a"] * 30, *["b"] * 40], ["1", "NA"], {}),
        # Namibia; the blood group; a sign that marks missing numbers.
        ([*["NA"] * 3, *["DE"] * 4, *["FR"] * 2, *["US"] * 4], ["1"], {}),
        ([*["-"] * 15, *["+"] * 85], ["1", "-"], {}),
        ([*["?"] * 30, *["a"] * 30, *["b"] * 40], ["1", "?"], {"?": 30}),
        ([*["?"] * 30, *["a"] * 30, *["b"] * 40], ["1"], {}),
        # Answers keep yes and no from being all there is.
        ([*["None"] * 30, *["yes"] * 30, *["no"] * 40, *[""] * 9], ["1"], {"": 9}),
        ([*["NaN"] * 30, *["yes"] * 30, *["no"] * 40, *["nan"] * 9], ["1"], {"NaN": 30, "nan": 9}),
        ([*["unknown"] * 30, *["a"] * 30, *["b"] * 40], ["1"], {}),
    ],
)  # fmt: skip
def test_among_texts_the_file_is_the_witness(values: list[str], others: list[str], missing: dict[str, int]) -> None:
    numbers = [others[k % len(others)] for k in range(len(values))]
    assert gaps(source({"c": values, "x": numbers})) == missing


@pytest.mark.parametrize(
    ("values", "others", "ambiguous"),
    [
        ([*["None"] * 2, *["a"] * 30, *[""] * 9], ["1"], [("None", False)]),
        ([*["None"] * 30, *["a"] * 30], ["1"], [("None", False)]),
        ([*["NA"] * 30, *["a"] * 30], ["1"], []),
        ([*["NA"] * 30, *["a"] * 30], ["1", ""], [("NA", False)]),
        ([*["NA"] * 3, *["DE"] * 4, *["FR"] * 2, *["US"] * 4], ["1", "NA"], [("NA", True)]),
        ([*["N/A"] * 30, *["a"] * 30], ["1"], [("N/A", True)]),
        ([*["?"] * 30, *["a"] * 30], ["1", "?"], []),
        ([*["?"] * 30, *["a"] * 30], ["1"], [("?", False)]),
        ([*["unknown"] * 30, *["a"] * 30], ["1", "unknown"], [("unknown", False)]),
        ([*["unknown"] * 30, *["a"] * 30], ["1"], []),
    ],
)
def test_ambiguous_decisions_are_reported(values: list[str], others: list[str], ambiguous: list[tuple[str, bool]]) -> None:
    seen = source({"c": values, "x": [others[k % len(others)] for k in range(len(values))]})
    assert [(hint.spelling, hint.is_missing) for hint in seen.hints] == ambiguous


def test_what_is_declared_is_not_weighed() -> None:
    columns = {"c": ANSWERS, "d": ANSWERS}
    assert gaps(source(columns, na_values=["None"])) == {"None": 66}
    by_column = source(columns, na_values={"c": ["None", "NA"]})
    assert (gaps(by_column), gaps(by_column, "d")) == ({"None": 66, "NA": 45}, {"NA": 45})
    assert [hint.name for hint in by_column.hints] == ["d"]
    others = source(columns, na_values={"c": ["None"], None: ["Freq"]})
    assert (gaps(others), gaps(others, "d")) == ({"None": 66}, {"Freq": 115})
    kept = source(columns, keep_values=["None"])
    assert (gaps(kept), kept.hints) == ({"NA": 45}, [])
    kept = source(columns, keep_values={"c": ["NA", "None"]})
    assert (gaps(kept), gaps(kept, "d")) == ({}, {"NA": 45})


def test_what_was_decided_for_one_file_holds_for_another() -> None:
    known = {"c": next(column.na_values for column in source({"c": ANSWERS, "x": ["1"] * len(ANSWERS)}).columns)}
    few = {"c": ["None", "NA", "Some"], "x": ["1", "NA", "2"]}
    assert gaps(source(few, known_gaps=known)) == {"NA": 1}
    assert source(few, known_gaps=known).hints == []
    assert gaps(source(few, known_gaps=known, na_values=["None"])) == {"None": 1}
    assert gaps(source(few, known_gaps=known | {"absent": ["x"]})) == {"NA": 1}


def test_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="na_values names a column 'd'; there are 'c', 'x'"):
        source({"c": ["a"], "x": ["1"]}, na_values={"d": ["NA"]})
    with pytest.raises(TypeError, match=r"keep_values of column 'c' must be a list of spellings, got 'NA'; pass \['NA'\]"):
        source({"c": ["a"], "x": ["1"]}, keep_values={"c": "NA"})


@pytest.mark.parametrize(
    ("values", "declared", "missing"),
    [
        (["-999", "-999.0", "-999,0", "12,5"], "-999", {"-999": 1, "-999.0": 1, "-999,0": 1}),
        (["-9.99E2", "1.5"], "-999", {"-9.99E2": 1}),
        (["99", "99.0", "7"], "99.00", {"99": 1, "99.0": 1}),
        (["-9990", "-99", "999"], "-999", {}),
        (["099", "99", "a"], "99", {"99": 1}),
        (["99.0", "a"], "99", {}),
        (["2020-01-31", "-999.0"], "-999", {"-999.0": 1}),
        (["-999.0", "-999"], "-999", {"-999.0": 1, "-999": 1}),
    ],
)
def test_numbers_that_mean_missing_values_may_be_written_in_several_ways(
    values: list[str], declared: str, missing: dict[str, int]
) -> None:
    assert gaps(source({"c": values, "x": ["1"] * len(values)}, na_values=[declared])) == missing


def test_a_whole_number_that_means_missing_values_does_not_need_the_decimals_of_others() -> None:
    seen = source({"c": ["-999.0", "4", "5"], "x": ["1"] * 3}, na_values=["-999"])
    assert seen.columns[0].kind == "integer"


def test_excel_sheets_are_read_in_the_same_way(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["c", "x"], *([text, -999 if text == "NA" else 1.5] for text in ANSWERS), [None, 2]]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "table.xlsx")
    table = read_file(tmp_path / "table.xlsx", na_values={"x": ["-999"]})
    assert [dict(column.missing_as) for column in table.columns] == [{"NA": 45, "": 1}, {"-999": 45}]
    assert table.frame.column("c").to_pylist() == [None if text in ("NA", None) else text for text, _ in rows[1:]]
    assert [hint.spelling for hint in find_reading_hints(table) if isinstance(hint, AmbiguousSpelling)] == ["None"]
    with open_table(tmp_path / "table.xlsx", known_gaps={"c": ["None"]}) as again:
        assert dict(again.columns[0].missing_as) == {"None": 66, "": 1}
