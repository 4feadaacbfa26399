"""Read delimited text as rows of raw fields, chunk by chunk, such that they can be written again byte by byte."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from .._checks import check_count
from ..exceptions import Message, Term
from .dialect import Dialect, decoding_error
from .tokens import SplitRows, split_rows

ROWS_PER_CHUNK = 50_000
_FIELDS_PER_CHUNK = 2_000_000  # of wide tables fewer rows make a chunk
_BLOCK = 1 << 20
_LONGEST_ROW = 1 << 26


@dataclass
class RawRows:
    r"""Consecutive rows as they stand in the file.

    >>> rows = RawRows(["1", '"a"', "", "b"], ["\r\n", "\n"], n_columns=2, first_line=1)
    >>> rows.column(1)
    ['"a"', 'b']
    >>> rows.text(",")
    '1,"a"\r\n,b\n'
    """

    fields: list[str]  # row by row
    ends: list[str]  # of rows; the last one of a file may be nothing, or be followed by empty lines
    n_columns: int
    first_line: int

    def __len__(self) -> int:
        return len(self.ends)

    def column(self, k: int) -> list[str]:
        """The fields of one column."""
        return self.fields[k :: self.n_columns]

    def replace_column(self, k: int, fields: list[str]) -> None:
        """Put other fields into one column."""
        self.fields[k :: self.n_columns] = fields

    def text(self, delimiter: str) -> str:
        """The rows as text."""
        parts = [delimiter] * (2 * len(self.fields))
        parts[::2] = self.fields
        parts[2 * self.n_columns - 1 :: 2 * self.n_columns] = self.ends
        return "".join(parts)

    def line_of(self, row: int, newline: str) -> int:
        """The line of the file on which a row begins."""
        return self.first_line + _n_lines(self.fields[: row * self.n_columns], row, newline)


def read_rows(stream: BinaryIO, dialect: Dialect, rows: int | None = None) -> Iterator[RawRows]:
    r"""Chunks of ``rows`` rows from the start of a file; with a header, it comes first, alone.

    >>> import io
    >>> [chunk.fields for chunk in read_rows(io.BytesIO(b"a,b\n1,2\n3,4\n"), Dialect(), rows=1)]
    [['a', 'b'], ['1', '2'], ['3', '4']]
    """
    n_columns, line, size, most = 0, 1, 0, 0
    fields: list[str] = []
    ends: list[str] = []
    for new_fields, new_ends, widths in _whole_rows(stream, dialect):
        if not n_columns:
            n_columns = widths[0]
            most = max(1, min(ROWS_PER_CHUNK, _FIELDS_PER_CHUNK // n_columns)) if rows is None else check_count("rows", rows)
            size = 1 if dialect.header else most
        fields += new_fields
        if widths.count(n_columns) != len(widths):
            raise _ragged(fields, ends, widths, n_columns, line, dialect)
        ends += new_ends
        first = 0
        while first + size <= len(ends):
            chunk = RawRows(fields[first * n_columns : (first + size) * n_columns], ends[first : first + size], n_columns, line)
            line += _n_lines(chunk.fields, size, dialect.newline)
            first, size = first + size, most
            yield chunk
        del fields[: first * n_columns], ends[:first]
    if ends:
        yield RawRows(fields, ends, n_columns, line)


def _n_lines(fields: list[str], n_rows: int, newline: str) -> int:
    return n_rows + sum(field.count(newline) for field in fields if newline in field)


def _ragged(fields: list[str], ends: list[str], widths: list[int], n_columns: int, line: int, dialect: Dialect) -> ValueError:
    row = next(place for place, width in enumerate(widths) if width != n_columns)
    before = fields[: (len(ends) + row) * n_columns]
    at = line + _n_lines(before, len(ends) + row, dialect.newline)
    empty = widths[row] == 1 and fields[len(before)] == ""
    found = "is empty" if empty else f"has {widths[row]} field" + "s" * (widths[row] != 1)
    check = "delete lines before the names of the columns" if n_columns == 1 else "check its quotes and delimiters"
    advice = "delete it" if empty else f"{check}, or pass another delimiter than {dialect.delimiter!r}"
    expected = f"{n_columns} field" + "s" * (n_columns != 1)
    return ValueError(f"line {at} {found}, expected {expected} as in line 1; {advice}")


def _whole_rows(stream: BinaryIO, dialect: Dialect) -> Iterator[tuple[list[str], list[str], list[int]]]:
    """Fields, line ends and numbers of fields of as many rows as a block of text completes.

    The last row and empty lines after it wait for more text: at the end of the file empty lines belong to the last row.
    """
    rest, line, enough = "", 1, 0
    for piece in _decoded(stream, dialect):
        rest += piece
        if len(rest) < enough:
            continue
        fields, ends, widths, n_read = _split(rest.rstrip("\r\n"), dialect)
        if ends:
            line += rest.count(dialect.newline, 0, n_read)
            rest, enough = rest[n_read:], 0
            yield fields, ends, widths
        elif len(rest) > _LONGEST_ROW:
            raise _unclosed(line, dialect)
        else:
            enough = 2 * len(rest)  # looking again at every block would take forever in a long row
    last = rest.rstrip("\r\n")
    if not last:
        return
    fields, ends, widths, n_read = _split(last + dialect.newline, dialect)
    if n_read <= len(last):
        raise _unclosed(line + last.count(dialect.newline, 0, n_read), dialect)
    yield fields, [*ends[:-1], rest[len(last) :]], widths


def _unclosed(line: int, dialect: Dialect) -> ValueError:
    return ValueError(
        Message(
            f"the row that begins on line {line} has a quote ({dialect.quote}) that is never closed; close it, or pass ",
            Term("quote", ""),
            " if quotes mean nothing in this file",
        )
    )


def _split(text: str, dialect: Dialect) -> SplitRows:
    """The whole rows of ``text``: without the regular expression where there are no quotes, and lines and fields end alike."""
    end, delimiter = dialect.line_end, dialect.delimiter
    n_rows = text.count(end)
    plain = not dialect.quote or dialect.quote not in text
    if delimiter == " ":
        plain = plain and not (text.startswith(" ") or "  " in text or f" {end}" in text or f"{end} " in text)
    if plain and n_rows == text.count(dialect.newline) and n_rows * end.count("\r") == text.count("\r"):
        if not n_rows:
            return SplitRows([], [], [], 0)
        whole = text[: text.rindex(end)]
        widths = [line.count(delimiter) + 1 for line in whole.split(end)]
        return SplitRows(whole.replace(end, delimiter).split(delimiter), [end] * n_rows, widths, len(whole) + len(end))
    return split_rows(text, delimiter, dialect.quote, dialect.newline)


def _decoded(stream: BinaryIO, dialect: Dialect) -> Iterator[str]:
    """The text, block by block; refuses encodings that would not give the same bytes back."""
    decoder = codecs.getincrementaldecoder(dialect.encoding)()
    encoder = codecs.getincrementalencoder(dialect.encoding)()
    place, unread, line, final = len(dialect.mark), b"", 1, False
    while not final:
        stream.seek(place)  # others may read from the same stream at the same time
        block = stream.read(_BLOCK)
        place += len(block)
        final = not block
        try:
            text = decoder.decode(block, final)
        except UnicodeDecodeError as error:
            raise decoding_error(error, dialect.encoding, line) from None
        unread += block
        again = encoder.encode(text, final)
        if not unread.startswith(again):
            raise ValueError(
                f"the file cannot be written again in the encoding {dialect.encoding} without changing other bytes; "
                "convert it to utf-8 first"
            )
        unread = unread[len(again) :]
        line += text.count("\n")
        yield text
