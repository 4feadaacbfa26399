"""Text is cut into fields and put together again without losing a byte."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from otimpute.files import csv_text
from otimpute.files.csv_text import read_rows
from otimpute.files.dialect import Dialect
from otimpute.files.tokens import unquoted

tricky_text = st.text(alphabet='ab1 ,;"\n\r', max_size=40)


def rows_of(text: str, dialect: Dialect, rows: int | None = None) -> list[list[str]]:
    chunks = read_rows(io.BytesIO(text.encode()), dialect, rows)
    return [chunk.fields[i * chunk.n_columns :][: chunk.n_columns] for chunk in chunks for i in range(len(chunk))]


@given(tricky_text, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(['"', ""]), st.integers(1, 3))
@example('a,"b\n', "\n", '"', 1)
@example("a\r", "\n", '"', 1)
@settings(deadline=None)
def test_any_text_is_cut_into_rows_that_give_it_back_or_refused(text: str, line_end: str, quote: str, rows: int) -> None:
    dialect = Dialect(line_end=line_end, quote=quote)
    try:
        chunks = list(read_rows(io.BytesIO(text.encode()), dialect, rows))
    except ValueError as error:
        assert "line" in str(error)
        return
    if text.strip("\r\n"):
        assert "".join(chunk.text(",") for chunk in chunks) == text
    else:
        assert chunks == []


@given(
    st.lists(st.lists(st.text(alphabet='ab,"\n é', max_size=5), min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
@settings(deadline=None)
def test_what_the_standard_library_writes_is_read_as_it_was(table: list[list[str]], quoting: int) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n", quoting=quoting).writerows(table)
    rows = rows_of(written.getvalue(), Dialect())
    assert [[unquoted(field, '"') for field in row] for row in rows] == table


@given(
    st.lists(st.lists(st.text(alphabet='ab,"\n', max_size=3), min_size=2, max_size=2), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(1, 7),
)
@settings(deadline=None)
def test_chunks_and_blocks_of_any_size_give_the_same_rows(table: list[list[str]], rows: int, block: int) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(table)
    dialect = Dialect(line_end="\r\n")
    whole = rows_of(written.getvalue(), dialect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_BLOCK", block)
        chunks = list(read_rows(io.BytesIO(written.getvalue().encode()), dialect, rows))
    assert [field for chunk in chunks for field in chunk.fields] == [field for row in whole for field in row]
    assert [len(chunk) for chunk in chunks[:1]] == [1]
    assert all(len(chunk) == rows for chunk in chunks[1:-1])


def test_quotes_inside_plain_fields_are_letters() -> None:
    assert rows_of('a,b\n5" pipe,6" pipe\n', Dialect())[1] == ['5" pipe', '6" pipe']


def test_quotes_may_follow_spaces() -> None:
    assert rows_of('a,b\n1, "x, y"\n', Dialect())[1] == ["1", ' "x, y"']


def test_a_carriage_return_alone_is_text_where_lines_end_otherwise() -> None:
    assert rows_of("a,b\n1\r2,3\n", Dialect())[1] == ["1\r2", "3"]


def test_mixed_line_ends_are_kept() -> None:
    chunks = list(read_rows(io.BytesIO(b"a,b\r\n1,2\n3,4\r\n5,6"), Dialect(line_end="\r\n")))
    assert [chunk.ends for chunk in chunks] == [["\r\n"], ["\n", "\r\n", ""]]


def test_empty_lines_at_the_end_belong_to_the_last_row() -> None:
    chunks = list(read_rows(io.BytesIO(b"a,b\n1,2\n\n\n"), Dialect()))
    assert chunks[-1].ends == ["\n\n\n"]


def test_empty_lines_in_a_table_of_one_column_are_empty_fields() -> None:
    assert rows_of("a\n1\n\n3\n\n", Dialect()) == [["a"], ["1"], [""], ["3"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, expected 2 fields as in line 1"),
        ("a,b\n1,2\n1\n1,2\n", "line 3 has 1 field, expected 2"),
        ('a,b\n"1\n\n2",2\n\n1,2\n', "line 5 is empty, expected 2"),
        ('"a\nb",c\n1,2\n3\n', "line 4 has 1 field, expected 2"),
        ('a,b\n1,"2\n3,4\n', "row that begins on line 2 has a quote .* never closed"),
    ],
)
@pytest.mark.parametrize("rows", [1, None])
def test_ragged_rows_are_named(text: str, said: str, rows: int | None) -> None:
    with pytest.raises(ValueError, match=said):
        list(read_rows(io.BytesIO(text.encode()), Dialect(), rows))


def test_a_quote_that_never_closes_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "_LONGEST_ROW", 10_000)
    monkeypatch.setattr(csv_text, "_BLOCK", 1_000)
    stream = io.BytesIO(b'a,b\n1,2\n3,"' + b"x,y\n" * 100_000)
    with pytest.raises(ValueError, match="row that begins on line 3 has a quote"):
        list(read_rows(stream, Dialect()))
    assert stream.tell() < 40_000


def test_lines_of_rows_are_counted_with_line_ends_inside_quotes() -> None:
    header, first, second = read_rows(io.BytesIO(b'a,b\n"1\n1",2\n3,4\n5,6\n'), Dialect(), 2)
    assert (header.first_line, first.first_line, second.first_line) == (1, 2, 5)
    assert [first.line_of(row, "\n") for row in (0, 1)] == [2, 4]


def test_two_readers_of_one_stream_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "_BLOCK", 5)
    stream = io.BytesIO(b"a,b\n1,2\n3,4\n5,6\n")
    for one, other in zip(read_rows(stream, Dialect(), 1), read_rows(stream, Dialect(), 1), strict=True):
        assert one == other


def test_wide_tables_come_in_fewer_rows() -> None:
    line = ",".join(["1"] * 100_000) + "\n"
    sizes = [len(chunk) for chunk in read_rows(io.BytesIO((line * 25).encode()), Dialect())]
    assert sizes == [1, 20, 4]
