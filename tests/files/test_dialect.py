"""How a text file writes its table is found out from its bytes."""

from __future__ import annotations

import codecs
import io

import pytest

from otimpute.files.csv_file import CsvSource, CsvWriter
from otimpute.files.dialect import Dialect, detect_dialect
from otimpute.files.spellings import DeclaredSpellings

pytest.importorskip("pyarrow")


def detect(data: bytes | str, **overrides: object) -> Dialect:
    return detect_dialect(io.BytesIO(data.encode() if isinstance(data, str) else data), **overrides)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends_are_found(delimiter: str, line_end: str) -> None:
    rows = [["name", "n", "x"], ["a", "1", "2.5"], ["b", "", "0.5"]]
    dialect = detect(line_end.join(delimiter.join(row) for row in rows))
    assert (dialect.delimiter, dialect.line_end) == (delimiter, line_end)


def test_delimiters_inside_quotes_do_not_count() -> None:
    assert detect('a;b\n"x,y,z";1\n"x,y,z";2\n').delimiter == ";"
    assert detect('"a;b",c\n"1;2",3\n').delimiter == ","


def test_decimal_commas_do_not_pass_for_delimiters() -> None:
    assert detect("a;b;c\n1,5;2,5;3,5\n0,5;1,5;2,5\n").delimiter == ";"
    assert detect("1,5;2,5;3,5\n0,5;1,5;2,5\n", header=False).delimiter == ";"


def test_one_column_has_any_delimiter_that_it_does_not_use() -> None:
    assert detect("a\n1\n2\n").delimiter == ","
    assert detect("a\n1,5\n2,5\n").delimiter == ";"
    assert detect("text\nwell, so; it is\nyes\n").delimiter not in ",;"


def test_a_few_ragged_rows_do_not_hide_the_delimiter() -> None:
    assert detect("a,b\n" + "1,2\n" * 20 + "1,2,3\n").delimiter == ","


def test_a_line_end_inside_a_quoted_name_is_not_that_of_rows() -> None:
    assert detect('"a\nb",c\r\n1,2\r\n').line_end == "\r\n"
    assert detect('"a\nb",c\r1,2\r').line_end == "\r"


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_byte_order_marks_tell_the_encoding(mark: bytes, name: str, declared: bool) -> None:
    dialect = detect(mark + "é,b\n1,2\n".encode(name), **({"encoding": name} if declared else {}))
    assert (dialect.encoding, dialect.mark) == (name, mark)


def test_the_general_name_of_an_encoding_takes_the_byte_order_of_the_mark() -> None:
    assert detect("a,b\n".encode("utf-16"), encoding="utf-16").mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    assert detect(codecs.BOM_UTF16_BE + "a,b\n".encode("utf-16-be"), encoding="UTF16").encoding == "utf-16-be"
    assert detect(codecs.BOM_UTF8 + b"a,b\n", encoding="utf-8-sig").mark == codecs.BOM_UTF8
    assert detect(b"a,b\n", encoding="utf-8-sig").mark == b""


def test_bytes_that_are_not_utf8_are_west_european() -> None:
    assert detect("straße,x\n€,1\n".encode("cp1252")).encoding == "cp1252"
    assert detect(b"a\x81,b\n").encoding == "latin-1"


def test_one_odd_byte_far_behind_the_beginning_counts() -> None:
    assert detect(b"a,b\n" + b"1,2\n" * 100_000 + b"\xe9,2\n").encoding == "cp1252"


def test_bytes_that_do_not_fit_the_declared_encoding_are_named_with_their_line() -> None:
    with pytest.raises(ValueError, match="line 3 holds the byte 0xe9, which is not utf-8"):
        CsvSource(io.BytesIO("a,b\n1,2\né,3\n".encode("latin-1")), encoding="utf-8")


def test_unknown_encodings_are_refused() -> None:
    for name in ("klingon", "base64"):
        with pytest.raises(ValueError, match=rf"encoding must be one that Python knows.*got '{name}'"):
            detect("a,b\n", encoding=name)


def test_an_encoding_that_loses_bytes_is_refused() -> None:
    ambiguous = b"\x87\x90"  # two codes of one character; the other one is written
    assert ambiguous.decode("cp932").encode("cp932") != ambiguous
    with pytest.raises(ValueError, match="cannot be written again in the encoding cp932"):
        CsvSource(io.BytesIO(b"a,b\n1," + ambiguous + b"\n"), encoding="cp932")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PAR1\x15\x04", "Parquet file, not text"),
        (b"PK\x03\x04abc", "Excel or zip file"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "NUL bytes"),
    ],
)
def test_files_that_are_no_text_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        detect(data)


@pytest.mark.parametrize("wrong", [{"delimiter": ",,"}, {"delimiter": "\n"}, {"quote": "ab"}, {"decimal": ";"}])
def test_impossible_overrides_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        detect("a,b\n1,2\n", **wrong)


def test_one_spelling_of_missing_values_is_a_list_of_one() -> None:
    with pytest.raises(TypeError, match=r"na_values must be a list of spellings, got 'NA'; pass \['NA'\]"):
        detect("a,b\n1,2\n", na_values="NA")


def test_overrides_win() -> None:
    dialect = detect("a;b,c\n1;2,3\n", delimiter=",", header=False, na_values=["9"], decimal=",", quote="")
    assert dialect == Dialect(
        delimiter=",", header=False, declared=DeclaredSpellings({None: frozenset({"9"})}), decimal=",", quote=""
    )


def kinds(text: str, **overrides: object) -> dict[str, str]:
    return {column.name: column.kind for column in CsvSource(io.BytesIO(text.encode()), **overrides).columns}


def test_decimal_commas_are_found() -> None:
    source = CsvSource(io.BytesIO(b"a;b\n1,5;2\n0,25;3\n"))
    assert source.dialect.decimal == ","
    assert next(source.chunks()).frame.to_pydict() == {"a": [1.5, 0.25], "b": [2, 3]}


def test_a_decimal_comma_far_behind_the_beginning_counts() -> None:
    assert kinds("a;b\n" + ";1\n" * 60_000 + "1,5;1\n")["a"] == "number"


def test_groups_of_thousands_are_not_decimals() -> None:
    assert kinds("a;b\n1,234;1\n5,678;2\n") == {"a": "string", "b": "integer"}
    assert kinds("a;b\n1,234;1.5\n5,678;2.5\n") == {"a": "integer", "b": "number"}
    assert kinds("a;b\n1.234;1,5\n5.678;2,5\n") == {"a": "integer", "b": "number"}
    assert kinds("a;b\n1,234;1,5\n5,678;2,5\n") == {"a": "number", "b": "number"}
    assert kinds("a;b\n1,234;1\n5,678;2\n", decimal=",") == {"a": "number", "b": "integer"}
    assert kinds("a;b\n1,234;1\n5,678;2\n", decimal=".") == {"a": "integer", "b": "integer"}
    assert kinds('a,b\n"1,234,567",1\n"2,345,678",2\n') == {"a": "integer", "b": "integer"}
    assert kinds("a;b\n1.234.567;1.5\n2.345;2.5\n") == {"a": "integer", "b": "number"}


@pytest.mark.parametrize(
    "fields", [["1,234.50", "1234.50"], ["1,23.50", "2"], ["1,2345.5", "2"], ["1,234.5e3", "2"], ["01,234.5", "2"]]
)
def test_thousands_that_are_not_written_alike_are_no_numbers(fields: list[str]) -> None:
    assert kinds("a;b\n" + "".join(f"{field};1\n" for field in fields))["a"] == "string"


@pytest.mark.parametrize("rows", [1, None])
def test_numbers_with_marks_between_thousands_are_read_and_written(rows: int | None) -> None:
    for data, values in [
        (b"a;b\n1.295,84;x\n7,50;y\n;z\n", [1295.84, 7.5, None]),
        (b'a,b\n"1,234.50",x\n-12.25,y\n,z\n', [1234.5, -12.25, None]),
    ]:
        source = CsvSource(io.BytesIO(data))
        sink = io.BytesIO()
        writer = CsvWriter(sink, source.dialect, source.columns, source.header, source.dialect.delimiter)
        read = []
        for chunk in source.chunks(rows):
            read += chunk.frame.column("a").to_pylist()
            writer.write(chunk, chunk.frame.set_column(0, "a", chunk.frame.column("a").fill_null(1_234_567.891)))
        assert read == values
        filled = b"1.234.567,89" if b";" in data else b'"1,234,567.89"'
        assert sink.getvalue() == data[: data.rindex(b"\n", 0, -1) + 1] + filled + data[-3:]


def test_thousands_that_show_late_count() -> None:
    assert kinds("a;b\n" + "1,5;1\n" * 60_000 + "1.234,5;1\n")["a"] == "number"
    assert kinds("a;b\n" + "1234,5;1\n" * 60_000 + "1.234,5;1\n")["a"] == "string"


def test_quoted_decimal_commas_can_be_declared_in_files_with_commas() -> None:
    assert kinds('a,b\n"1,5",1\n"2,5",2\n', decimal=",", delimiter=",")["a"] == "number"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("Name,Age\nAnn,31\nBob,\n\nCid,40\n", "line 4 is empty, expected 2 fields as in line 1; delete it"),
        ("Name,Age\nAnn,31\nBob\nCid,\n", "line 3 has 1 field, expected 2 fields as in line 1"),
        ("A report\nName;Age\nAnn;31\nBob;\n" + "Cid;40\n" * 300, "line 2 has 2 fields, expected 1 field as in line 1; delete"),
        (
            "# made by hand\nx,y\n1,5\n2,6\n",
            "line 2 has 2 fields, expected 1 field as in line 1; delete lines before",
        ),
        ("sep=;\nx;y\n1;5\n", "line 1 is 'sep=;', which only Excel understands; delete that line"),
    ],
)
def test_irregular_files_are_not_read_as_one_column(data: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CsvSource(io.BytesIO(data.encode()))
