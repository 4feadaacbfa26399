"""Files come out as they went in, but for their holes."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otimpute.files import csv_text
from otimpute.files.csv_file import CsvSource, CsvWriter

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")


def rewrite(data: bytes, complete: Any = lambda frame: frame, rows: int | None = None, **overrides: Any) -> bytes:
    source, sink = CsvSource(io.BytesIO(data), **overrides), io.BytesIO()
    writer = CsvWriter(sink, source.dialect, source.columns, source.header, source.dialect.delimiter)
    for chunk in source.chunks(rows):
        writer.write(chunk, complete(chunk.frame))
    return sink.getvalue()


@given(
    st.text(alphabet='ab01.,;\t"\n\r -é', max_size=60),
    st.sampled_from([{}, {"header": False}, {"delimiter": ","}, {"quote": ""}, {"decimal": ","}]),
    st.integers(1, 3),
)
@settings(max_examples=300, deadline=None)
def test_any_file_that_can_be_read_comes_out_as_it_went_in(text: str, overrides: dict[str, Any], rows: int) -> None:
    data = text.encode()
    try:
        written = rewrite(data, rows=rows, **overrides)
    except ValueError as error:
        assert str(error)
        return
    assert written == data


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_are_refused_with_a_clear_error_or_come_out_as_they_went_in(data: bytes) -> None:
    try:
        written = rewrite(data, header=False)
    except ValueError as error:
        assert str(error)
        return
    assert written == data


# How values of each kind may be written; all of a column in one way.
words = st.sampled_from(["red", "green, dark", 'so-called "blue"', "two\nlines", "5; 6", "été", " spaced "])
KINDS = {
    "integer": st.integers(-(2**63), 2**63 - 1).map(str),
    "number": st.tuples(st.integers(-999, 999), st.integers(0, 99)).map(lambda pair: f"{pair[0]}.{pair[1]:02d}"),
    "id": st.integers(0, 999).map(lambda number: f"{number:05d}"),
    "boolean": st.sampled_from(["yes", "no"]),
    "date": st.dates(min_value=date(1000, 1, 1)).map(str),
    "moment": st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda moment: moment.isoformat(" ", "minutes")),
    "word": words,
}


@dataclass
class Written:
    data: bytes
    fields: list[list[str]]  # raw, row by row
    holes: list[list[bool]]
    delimiter: str
    encoding: str


@st.composite
def files(draw: st.DrawFn) -> Written:
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    encoding, mark = draw(
        st.sampled_from([("utf-8", b""), ("utf-8", codecs.BOM_UTF8), ("utf-16-le", codecs.BOM_UTF16_LE), ("cp1252", b"")])
    )
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=4))
    hole = draw(st.sampled_from(["", "NA", "NaN", " ", '""', "null", " NA "]))
    n_rows = draw(st.integers(1, 6))
    always = [draw(st.booleans()) for _ in kinds]
    fields, holes = [], []
    for _ in range(n_rows):
        values = [draw(st.none() | KINDS[kind]) for kind in kinds]
        fields.append(
            [hole if value is None else _field(value, delimiter, all_) for value, all_ in zip(values, always, strict=True)]
        )
        holes.append([value is None for value in values])
    names = [f"{kind} {k}" for k, kind in enumerate(kinds)]
    lines = [delimiter.join(row) for row in [names, *fields]]
    text = line_end.join(lines) + draw(st.sampled_from(["", line_end, line_end * 3]))
    return Written(mark + text.encode(encoding), fields, holes, delimiter, encoding)


def _field(value: str, delimiter: str, always: bool) -> str:
    written = io.StringIO()
    quoting = csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL
    csv.writer(written, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerow([value])
    return written.getvalue()[:-1]


def _fill_with_something_seen(frame: Any) -> Any:
    for k, name in enumerate(frame.column_names):
        column = frame.column(k)
        if 0 < column.null_count < len(column):
            frame = frame.set_column(k, name, column.fill_null(column.drop_null()[0]))
    return frame


@given(files())
@settings(max_examples=50, deadline=None)
def test_a_table_comes_out_byte_by_byte(file: Written) -> None:
    assert rewrite(file.data) == file.data


@given(files())
@settings(max_examples=100, deadline=None)
def test_only_holes_change_and_say_what_they_were_filled_with(file: Written) -> None:
    before = CsvSource(io.BytesIO(file.data))
    assert before.dialect.delimiter == file.delimiter
    written = rewrite(file.data, _fill_with_something_seen)
    after = CsvSource(io.BytesIO(written))
    assert after.dialect == before.dialect
    raw = next(after.raw_rows())
    rows = [raw.fields[i * raw.n_columns :][: raw.n_columns] for i in range(len(raw))]
    for own, holes, fields in zip(file.fields, file.holes, rows, strict=True):
        for field, hole, now in zip(own, holes, fields, strict=True):
            assert hole or field == now
    completed = _fill_with_something_seen(next(before.chunks()).frame)
    assert next(after.chunks()).frame.equals(completed)


@given(files(), st.integers(1, 3), st.integers(1, 50))
@settings(max_examples=30, deadline=None)
def test_reading_in_chunks_gives_what_reading_at_once_gives(file: Written, rows: int, block: int) -> None:
    whole = next(CsvSource(io.BytesIO(file.data)).chunks()).frame
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_BLOCK", block)
        chunks = list(CsvSource(io.BytesIO(file.data)).chunks(rows))
    assert pa.concat_tables([chunk.frame for chunk in chunks]).equals(whole)
    assert all(chunk.frame.num_rows == rows for chunk in chunks[:-1])
    assert rewrite(file.data, rows=rows) == file.data


def filled(column: list[str], value: Any, delimiter: str = ";", **overrides: Any) -> str:
    """The field that ``value`` becomes in the last row, an empty one, of a column."""
    text = f"x{delimiter}y\n" + "".join(f"{field}{delimiter}1\n" for field in column)

    def complete(frame: Any) -> Any:
        values = frame.column(0).to_pylist()
        return frame.set_column(0, "x", pa.array([*values[:-1], value], frame.column(0).type))

    written = rewrite(text.encode(), complete, delimiter=delimiter, **overrides).decode()

    return written.splitlines()[-1].removesuffix(f"{delimiter}1")


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (["1.5", "2.25", ""], 3.14159, "3.14"),
        (["1.5", "2.25", ""], 3.1, "3.1"),
        (["1.50", "2.25", ""], 3.1, "3.10"),
        (["1.0", "2.25", ""], 3.0, "3.0"),
        (["1", "2.25", ""], 3.0, "3"),
        (["1,50", "2,25", ""], 3.141, "3,14"),
        (["1,5", ""], -0.01, "0,0"),
        (["+1.5", "-1.5", ""], 2.5, "+2.5"),
        (["1.5", "1.25e-7", ""], 3.14159e-6, "3.14e-06"),
        (["0.1234567890123456", ""], 0.1, "0.1000000000000000"),
        (["0.30000000000000004", "2.5", ""], 0.1, "0.1"),
        (["5", "17", ""], 12, "12"),
        (["+5", "-17", ""], 12, "+12"),
        (["yes", "no", ""], True, "yes"),
        (["TRUE", "TRUE", ""], False, "FALSE"),
        (["0", "1", ""], True, "1"),
        (["t", "f", ""], False, "f"),
        (["31.12.2020", ""], date(2021, 2, 1), "01.02.2021"),
        (["1.2.2020", ""], date(2021, 2, 1), "1.2.2021"),
        (["12/31/2020", ""], date(2021, 2, 1), "02/01/2021"),
        (["2020-12-31T08:30Z", ""], datetime(2021, 2, 1, 9, 5), "2021-02-01T09:05Z"),
        (["2020-12-31 08:30:00.250", ""], datetime(2021, 2, 1, 9, 5), "2021-02-01 09:05:00.000"),
        (["a", "b;c", ""], "b;c", '"b;c"'),
        (['"a"', '"b"', ""], "a", '"a"'),
        (['"a"', "b", ""], "a", "a"),
        (['"1"', '"2"', ""], 1, '"1"'),
        (['"say ""so"""', "b", ""], 'say "so"', '"say ""so"""'),
        ([" 1", " 2", " NA"], 3, " 3"),
        (["1 ", "2 ", "NA "], 3, "3 "),
        ([" 1", " 2", " "], 3, " 3"),
        ([" a", " b", " "], " a", " a"),
        (["007", "008", ""], "007", "007"),
    ],
)  # fmt: skip
def test_values_are_written_in_the_style_of_their_column(column: list[str], value: Any, expected: str) -> None:
    quoted = [f'"{field}"' if ";" in field else field for field in column]
    assert filled(quoted, value) == expected


def test_values_that_are_still_missing_leave_the_hole_as_it_was() -> None:
    data = b"a,b,c\n1, NA ,\n2,x,?\n3,y,2.5\n"
    assert rewrite(data) == data
    assert rewrite(data, lambda frame: frame.set_column(2, "c", pa.array([float("nan"), None, 2.5]))) == data


def test_numbers_in_a_column_without_any_are_written_in_full() -> None:
    def complete(frame: Any) -> Any:
        return frame.set_column(1, "b", pa.array([0.1, 2.0]))

    assert rewrite(b"a,b\n1,\n2,NA\n", complete) == b"a,b\n1,0.1\n2,2.0\n"
    schema = pa.schema([("b", pa.float64())])
    assert rewrite(b"a,b\n1,\n2,NA\n", complete, schema=schema) == b"a,b\n1,0.1\n2,2.0\n"


def test_letters_that_the_encoding_lacks_are_named() -> None:
    def complete(frame: Any) -> Any:
        return frame.set_column(1, "b", pa.array(["é", "Ω"]))

    with pytest.raises(ValueError, match="character 'Ω' does not exist in the file's encoding, cp1252"):
        rewrite("a,b\n1,é\n2,\n".encode("cp1252"), complete)


def test_a_value_that_would_need_quotes_is_refused_where_there_are_none() -> None:
    def complete(frame: Any) -> Any:
        return frame.set_column(1, "b", pa.array(["x", "y,z"]))

    with pytest.raises(ValueError, match="'y,z' cannot be written without quotes"):
        rewrite(b"a,b\n1,x\n2,\n", complete, quote="")
