"""How a text file writes its table: detected from its bytes, or declared by the caller."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from .._checks import check_choice, check_flag
from ..exceptions import InPython, Message, Term
from .spellings import NA_IN_NUMBERS, NOTHING_DECLARED, DeclaredSpellings, Spellings
from .tokens import split_rows, unquoted

DELIMITERS = ("\t", ";", "|", ",")  # where several would do: commas may be decimal marks, the others hardly ever are

_SAMPLE = 1 << 18
_BLOCK = 1 << 20
_ROWS_TO_COMPARE = 200
_BYTE_ORDER_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NUMBER = re.compile(r"[+-]?\d*[.,]?\d+[.,]?(?:[eE][+-]?\d+)?")
_WITH_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_NOT_TEXT = (
    (b"PAR1", "a Parquet file", ("name it .parquet or pass ", Term("format", "parquet"))),
    (b"ARROW1", "an Arrow file", ("name it .arrow or pass ", Term("format", "arrow"))),
    (b"PK\x03\x04", "an Excel or zip file", ("name it .xlsx or pass ", Term("format", "excel"), ", or unpack it")),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", ("save it as .xlsx",)),
    (b"\x1f\x8b", "a gzip file", ("name it .csv.gz",)),
)


@dataclass(frozen=True)
class Dialect:
    """Everything needed to read a delimited text file and to write more of the same."""

    encoding: str = "utf-8"
    mark: bytes = b""  # the byte order mark at the start of the file
    delimiter: str = ","
    quote: str = '"'  # "" when quotes are letters like others
    line_end: str = "\n"
    header: bool = True
    decimal: str | None = None  # None until columns were looked at
    day_first: bool | None = None  # None: 01/02/2020 is a date only in columns that tell day and month apart
    declared: DeclaredSpellings = NOTHING_DECLARED  # spellings of missing values

    @property
    def newline(self) -> str:
        """The character that ends lines, whatever stands before it."""
        return self.line_end[-1]

    def describe(self) -> dict[str, Any]:
        """Plain values, for people and JSON."""
        return {
            "encoding": self.encoding + (" with byte order mark" if self.mark else ""),
            "delimiter": self.delimiter,
            "quote": self.quote,
            "decimal": self.decimal,
            "line_end": self.line_end,
            "header": self.header,
            "na_values": self.declared.describe(),
        }


def detect_dialect(
    stream: BinaryIO,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str = '"',
    decimal: str | None = None,
    header: bool = True,
    na_values: Spellings | None = None,
    keep_values: Spellings | None = None,
    known_gaps: Mapping[str, Iterable[str]] | None = None,
    day_first: bool | None = None,
) -> Dialect:
    r"""The dialect of a text file; what is given is not guessed.

    Parameters
    ----------
    stream
        A binary stream that can go back to its start.
    delimiter
        What separates fields; a space means any number of them.
    na_values
        Spellings of missing values instead of the usual ones, which are weighed column by column: a list for all columns, or a
        dict of lists by column, under None for all others. Numbers mean all that are equal. Empty fields are always missing.
    keep_values
        Spellings that look like missing values and are none, in the same form.
    known_gaps
        Spellings of missing values in columns that another file has too: its `Column.na_values` by name. ``na_values`` and
        ``keep_values`` take precedence.

    Examples
    --------
    >>> import io
    >>> dialect = detect_dialect(io.BytesIO("stra\xdfe;n\r\na;1,5\r\n".encode("cp1252")))
    >>> dialect.encoding, dialect.delimiter, dialect.line_end
    ('cp1252', ';', '\r\n')
    """
    _check_characters(delimiter, quote)
    if decimal is not None:
        check_choice("decimal", decimal, [".", ","])
    name, mark = _detect_encoding(stream, encoding)
    stream.seek(len(mark))
    beginning = stream.read(_SAMPLE)
    sample = codecs.getincrementaldecoder(name)("replace").decode(beginning)
    if separator := re.match(r'"?sep=."?(?=\r|\n)', sample):
        raise ValueError(f"line 1 is {separator[0]!r}, which only Excel understands; delete that line")
    outside = re.sub(f"{quote}[^{quote}]*{quote}", "", sample) if quote else sample
    newline = "\r" if "\r" in outside and "\n" not in outside else "\n"
    if len(beginning) < _SAMPLE:
        sample = sample.rstrip("\r\n") + newline
    if delimiter is None:
        delimiter = _detect_delimiter(sample, quote, newline, "," if decimal == "," else "")
    ends = split_rows(sample, delimiter, quote, newline).ends
    return Dialect(
        encoding=name,
        mark=mark,
        delimiter=delimiter,
        quote=quote,
        line_end=ends[0] if ends else newline,
        header=check_flag("header", header),
        decimal="." if decimal is None and delimiter == "," else decimal,
        day_first=day_first if day_first is None else check_flag("day_first", day_first),
        declared=DeclaredSpellings.from_arguments(na_values, keep_values, known_gaps),
    )


def decoding_error(error: UnicodeDecodeError, encoding: str, line: int) -> ValueError:
    """What to say about bytes that are no text; ``line`` is the one before which decoding was fine."""
    line += error.object[: error.start].count(b"\n")
    found = error.object[error.start : error.start + 1].hex()
    return ValueError(
        f"line {line} holds the byte 0x{found}, which is not {encoding}: {error.reason}; "
        "pass the file's own encoding (cp1252, utf-16, ...), or none to have it detected"
    )


def _check_characters(delimiter: str | None, quote: str) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise ValueError(Message(Term("delimiter"), f" must be one character, no quote and no line end, got {delimiter!r}"))
    if quote not in ('"', "'", "") or quote == delimiter:
        raise ValueError(Message(Term("quote"), f" must be '\"', \"'\" or '' (for none), got {quote!r}"))


def _detect_encoding(stream: BinaryIO, declared: str | None) -> tuple[str, bytes]:
    """Its name and the byte order mark."""
    stream.seek(0)
    beginning = stream.read(_SAMPLE)
    for magic, what, advice in _NOT_TEXT:
        if beginning.startswith(magic):
            raise ValueError(Message(f"the file is {what}, not text; ", *advice))
    if declared is not None:
        try:
            "a".encode(declared)  # knows better than the lookup which encodings are those of text
            declared = codecs.lookup(declared).name
        except LookupError:
            raise ValueError(
                Message(Term("encoding"), f" must be one that Python knows (utf-8, cp1252, utf-16, ...), got {declared!r}")
            ) from None
    for mark, name in _BYTE_ORDER_MARKS:
        if beginning.startswith(mark) and (declared is None or name.startswith(declared.removesuffix("-sig"))):
            return name, mark
    if declared is not None:
        return _WITH_MARK.get(declared, declared), b""
    if b"\0" in beginning:
        raise ValueError(
            Message(
                "the file is not text, because it contains NUL bytes; check its name, or pass ",
                Term("format"),
                InPython("="),
                " or ",
                Term("encoding", "utf-16-le"),
            )
        )
    for name in ("utf-8", "cp1252"):
        if _decodes(stream, name):
            return name, b""
    return "latin-1", b""  # knows every byte


def _decodes(stream: BinaryIO, encoding: str) -> bool:
    stream.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while block := stream.read(_BLOCK):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _detect_delimiter(sample: str, quote: str, newline: str, excluded: str) -> str:
    """The one that cuts all rows, or at least most, into as many fields as the first one.

    Where none does, the one that most rows have: what is wrong with the others can be said then.
    """
    shares, used = {}, {}
    for delimiter in DELIMITERS:
        if delimiter == excluded:
            continue
        widths = split_rows(sample, delimiter, quote, newline).widths[:_ROWS_TO_COMPARE]
        used[delimiter] = sum(width > 1 for width in widths) / max(1, len(widths))
        shares[delimiter] = (sum(width == widths[0] for width in widths) / len(widths), widths[0]) if widths else (0.0, 0)
    fitting = {delimiter: share for delimiter, (share, width) in shares.items() if width > 1}
    if fitting and max(fitting.values()) > 0.8:
        return max(fitting, key=fitting.__getitem__)  # the first of the best
    if _has_columns_of_numbers(sample, quote, newline):
        return " "
    most_used = max(used, key=used.__getitem__)
    if used[most_used] > 0.5 and not (most_used == "," and _has_only_decimal_commas(sample)):
        return most_used
    alone = [delimiter for delimiter in (",", ";", "\t", "|") if shares.get(delimiter) == (1.0, 1)]
    return alone[0] if alone else ("," if excluded != "," else ";")


def _has_only_decimal_commas(sample: str) -> bool:
    return all(re.fullmatch(r'[ "]*[+-]?\d*,\d+[ "]*', line) for line in sample.splitlines() if "," in line)


def _has_columns_of_numbers(sample: str, quote: str, newline: str) -> bool:
    """Whether spaces cut all rows into as many fields, and one column holds numbers, so that these are not words of a text.

    The first line may differ, if it has several fields too: what is wrong with it can be said then.
    """
    fields, _, widths, _ = split_rows(sample, " ", quote, newline)
    widths = widths[:_ROWS_TO_COMPARE]
    if len(widths) < 2 or widths[0] < 2 or len(set(widths[1:])) != 1:
        return False
    cells = [unquoted(field, quote).strip() for field in fields[widths[0] : sum(widths)]]
    columns = [[cell for cell in cells[k :: widths[1]] if cell not in NA_IN_NUMBERS] for k in range(widths[1])]
    return any(column and all(_NUMBER.fullmatch(cell) for cell in column) for column in columns)
