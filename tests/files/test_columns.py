"""What columns hold is decided from their fields, or declared."""

from __future__ import annotations

import io
from datetime import date, datetime
from typing import Any

import pytest

from otimpute.files.csv_file import CsvSource

pa = pytest.importorskip("pyarrow")


def read(fields: list[str], **overrides: Any) -> tuple[str, list[Any]]:
    """Kind and values of a column; a second one keeps rows from being empty lines."""
    text = "x\ty\n" + "".join(f"{field}\t1\n" for field in fields)
    source = CsvSource(io.BytesIO(text.encode()), **{"delimiter": "\t"} | overrides)
    return source.columns[0].kind, next(source.chunks()).frame.column(0).to_pylist()


@pytest.mark.parametrize(
    ("fields", "kind", "values"),
    [
        (["1", "", "-3"], "integer", [1, None, -3]),
        (["+1", "-2", "0"], "integer", [1, -2, 0]),
        (["9223372036854775807", "-9223372036854775808"], "integer", [2**63 - 1, -(2**63)]),
        (["9223372036854775808", "1"], "string", ["9223372036854775808", "1"]),
        (["007", "012"], "string", ["007", "012"]),
        (["0", "10", "-5"], "integer", [0, 10, -5]),
        (["1", "2.5", " .5 ", "1."], "number", [1.0, 2.5, 0.5, 1.0]),
        (["1e5", "-2.5E-3"], "number", [1e5, -2.5e-3]),
        (["123456789012345678901234567890", "0.5"], "number", [123456789012345678901234567890.0, 0.5]),
        (["1.5", "inf", "-Infinity"], "number", [1.5, float("inf"), float("-inf")]),
        (["00.5", "1.5"], "string", ["00.5", "1.5"]),
        (["1 234", "2 345"], "string", ["1 234", "2 345"]),
        (["0x10", "1_000"], "string", ["0x10", "1_000"]),
        (["1", "one"], "string", ["1", "one"]),
        ([".", "e5", "1"], "string", [".", "e5", "1"]),
        (["true", "false", ""], "boolean", [True, False, None]),
        (["TRUE", "TRUE"], "boolean", [True, True]),
        (["Yes", "No"], "boolean", [True, False]),
        (["y", "n", "y"], "boolean", [True, False, True]),
        (["0", "1", "NA"], "boolean", [False, True, None]),
        (["1", "1"], "integer", [1, 1]),
        (["F", "F", ""], "string", ["F", "F", None]),
        (["No", "No"], "string", ["No", "No"]),
        (["True", "true", "False"], "string", ["True", "true", "False"]),
        (["yes", "no", "maybe"], "string", ["yes", "no", "maybe"]),
        (["2020-02-29", "", "9999-12-31"], "date", [date(2020, 2, 29), None, date(9999, 12, 31)]),
        (["2021-02-29", "2020-01-01"], "string", ["2021-02-29", "2020-01-01"]),
        (["31.12.2020", "1.2.2020"], "date", [date(2020, 12, 31), date(2020, 2, 1)]),
        (["13/01/2020", "02/03/2020"], "date", [date(2020, 1, 13), date(2020, 3, 2)]),
        (["01/13/2020", "02/03/2020"], "date", [date(2020, 1, 13), date(2020, 2, 3)]),
        (["01/02/2020", "02/03/2020"], "string", ["01/02/2020", "02/03/2020"]),
        (["13/01/2020", "01/13/2020"], "string", ["13/01/2020", "01/13/2020"]),
        (["2020-01-01 08:30", "2020-01-01 23:59"], "timestamp", [datetime(2020, 1, 1, 8, 30), datetime(2020, 1, 1, 23, 59)]),
        (["2020-01-01T08:30:00.5Z", ""], "timestamp", [datetime(2020, 1, 1, 8, 30, 0, 500_000), None]),
        (["2020-01-01 08:30:00", "2020-01-01 08:30:00.12"], "timestamp",
         [datetime(2020, 1, 1, 8, 30), datetime(2020, 1, 1, 8, 30, 0, 120_000)]),
        (["1.2.2020 8:05", "2.2.2020 10:05"], "timestamp", [datetime(2020, 2, 1, 8, 5), datetime(2020, 2, 2, 10, 5)]),
        (["2020-01-01", "2020-01-01 08:30:00"], "string", ["2020-01-01", "2020-01-01 08:30:00"]),
        (["2020-01-01T08:00:00+01:00", "2020-07-01T08:00:00+02:00"], "string", None),
        (["2020-01-01 25:00", "2020-01-01 08:30"], "string", None),
        (["12:30", "13:30"], "string", ["12:30", "13:30"]),
        (["", "NA", "null"], "empty", [None] * 3),
    ],
)  # fmt: skip
def test_kinds_are_the_most_special_that_fit(fields: list[str], kind: str, values: list[Any] | None) -> None:
    assert read(fields) == (kind, fields if values is None else values)


@pytest.mark.parametrize(
    "spelling", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A", "  ", '""', '"NA"', " NA "]
)
def test_spellings_of_missing_values_count_everywhere(spelling: str) -> None:
    assert read(["1", spelling]) == ("integer", [1, None])
    assert read(["word", spelling]) == ("string", ["word", None])


@pytest.mark.parametrize("spelling", ["-", ".", "?", "--"])
def test_signs_are_missing_values_among_numbers_and_dates_only(spelling: str) -> None:
    assert read(["1", spelling, "2.5"]) == ("number", [1.0, None, 2.5])
    assert read(["0", spelling, "1"]) == ("boolean", [False, None, True])
    assert read(["2020-01-01", spelling]) == ("date", [date(2020, 1, 1), None])
    assert read(["word", spelling]) == ("string", ["word", spelling])
    assert read(["yes", spelling, "no"]) == ("string", ["yes", spelling, "no"])
    assert read([spelling, "", spelling]) == ("string", [spelling, None, spelling])


def test_declared_spellings_replace_the_usual_ones_but_empty_is_always_missing() -> None:
    assert read(["1", "-999", ""], na_values=["-999"]) == ("integer", [1, None, None])
    assert read(["NA", "DE", ""], na_values=[]) == ("string", ["NA", "DE", None])
    assert read(["a", "?"], na_values=["?"]) == ("string", ["a", None])


def test_who_knows_whether_days_come_first_can_say_so() -> None:
    assert read(["01/02/2020"], day_first=True) == ("date", [date(2020, 2, 1)])
    assert read(["01/02/2020"], day_first=False) == ("date", [date(2020, 1, 2)])
    assert read(["01.02.2020"], day_first=False) == ("date", [date(2020, 2, 1)])


def test_what_one_field_far_behind_says_counts() -> None:
    assert read(["1"] * 70_000 + ["007"])[0] == "string"
    assert read(["01/02/2020"] * 70_000 + ["13/02/2020"])[0] == "date"


def test_spaces_are_part_of_text_but_not_of_numbers() -> None:
    assert read([" a", "b "]) == ("string", [" a", "b "])
    assert read([" 1", "2 "]) == ("integer", [1, 2])


def test_quotes_are_not_part_of_the_value() -> None:
    assert read(['"1"', '"2"']) == ("integer", [1, 2])
    assert read(['"a ""b"""', '"c\n"']) == ("string", ['a "b"', "c\n"])


def read_as(fields: list[str], data_type: Any, **overrides: Any) -> list[Any]:
    text = "y;x\n" + "".join(f"1;{field}\n" for field in fields)
    source = CsvSource(io.BytesIO(text.encode()), schema=pa.schema([("x", data_type)]), **{"delimiter": ";"} | overrides)
    frame = next(source.chunks()).frame
    assert frame.schema.field("x").type == data_type
    return frame.column("x").to_pylist()


@pytest.mark.parametrize(
    ("fields", "data_type", "values"),
    [
        (["1", "0", ""], pa.int64(), [1, 0, None]),
        (["1", "2", "?"], pa.float64(), [1.0, 2.0, None]),
        (["1,5", "2"], pa.float32(), [1.5, 2.0]),
        (["1.234,5", "2"], pa.float64(), [1234.5, 2.0]),
        (["1.234.567", "2"], pa.int64(), [1234567, 2]),
        (["1", "2"], pa.string(), ["1", "2"]),
        (["1", "1"], pa.bool_(), [True, True]),
        (["n", "-"], pa.bool_(), [False, None]),
        (["", ""], pa.bool_(), [None, None]),
        (["b", "", "a"], pa.dictionary(pa.int8(), pa.string()), ["b", None, "a"]),
        (["31.12.2020", ""], pa.date32(), [date(2020, 12, 31), None]),
        (["2020-12-31", ""], pa.timestamp("ns"), [datetime(2020, 12, 31), None]),
        (["", "NA"], pa.null(), [None, None]),
    ],
)
def test_declared_types_are_kept(fields: list[str], data_type: Any, values: list[Any]) -> None:
    assert read_as(fields, data_type) == values


@pytest.mark.parametrize(
    ("fields", "data_type", "said"),
    [
        (["1", "2", "2.5"], pa.int64(), "line 4, column 'x': '2.5' is not a whole number"),
        (["1", "007"], pa.int64(), "line 3, column 'x': '007' is not a whole number"),
        (["1", "300"], pa.int8(), "line 3, column 'x': '300' is not a whole number"),
        (["1", "", "many"], pa.float64(), "line 4, column 'x': 'many' is not a number"),
        (["1,5", "2.5"], pa.float64(), "line 2, column 'x': '1,5' is not a number .with the decimal mark '.'"),
        (["yes", "no", "maybe"], pa.bool_(), "line 2, column 'x': 'yes' is not 'false' or 'true'"),
        (["2020-01-01", "2020-13-01"], pa.date32(), "line 3, column 'x': '2020-13-01' is not a date like 2020-12-31"),
        (["1,234", "12"], pa.float64(), "line 2, column 'x': '1,234' is not a number .with the decimal mark '.'"),
        (["a", ""], pa.null(), "line 2, column 'x': 'a' is not empty"),
        (["01/02/2020"], pa.date32(), "does not show whether days or months come first"),
        (["a"], pa.list_(pa.string()), "which text files cannot hold"),
    ],
)
def test_fields_that_do_not_fit_the_declared_type_are_named(fields: list[str], data_type: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_as(fields, data_type)


def test_columns_without_names_are_numbered() -> None:
    source = CsvSource(io.BytesIO(b"1,a\n2,b\n"), header=False)
    assert next(source.chunks()).frame.to_pydict() == {"column_1": [1, 2], "column_2": ["a", "b"]}


def test_repeated_names_are_refused() -> None:
    with pytest.raises(ValueError, match="column names must differ, got 'a' more than once"):
        CsvSource(io.BytesIO(b"a,b,a\n1,2,3\n"))
