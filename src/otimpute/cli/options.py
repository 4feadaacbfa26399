"""Options shared by commands, grouped in dataclasses with methods that implement them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import ParameterError

if TYPE_CHECKING:
    from ..files import TableFile, TableSource, Writer

InputFile = Annotated[str, typer.Argument(metavar="IN", help="A table; - is standard input.", show_default=False)]
InputFiles = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A table; - is standard input. Or a folder of Parquet files, or a pattern such as 'data/*.parquet'.",
        show_default=False,
    ),
]
OutputFile = Annotated[
    str, typer.Option("--out", "-o", metavar="OUT", help="Where to write; - is standard output.", show_default=False)
]


def is_many(source: str) -> bool:
    """Return whether a path stands for many files: a folder, or a pattern.

    >>> is_many("data/*.parquet"), is_many("data.parquet")
    (True, False)
    """
    path = Path(source)
    return not path.is_file() and (path.is_dir() or any(letter in source for letter in "*?["))


def option(panel: str, text: str, *names: str, default: str | bool = False, **more: Any) -> Any:
    """Define an option in a panel of the help; ``default`` is the text shown as default, True for its value."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=default, **more)


_FILE = partial(option, "The file")
_OUTPUT = partial(option, "Output")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Expand parameters that are groups of options into their fields, for typer."""
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in parameters.items() if is_dataclass(each.annotation)}

    @wraps(function)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    shown = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in parameters.items()
        for each in (inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [parameter])
    ]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


@contextmanager
def about(path: str) -> Iterator[None]:
    """Add the name of the file to errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        error.add_note("standard input" if path == "-" else path)
        raise


def check_apart(paths: dict[str, str | Path | None]) -> None:
    """Raise if the same file is used for several outputs; the input may be replaced (see `Writing.check`).

    >>> check_apart({"IN": "a.csv", "--out": "b.csv", "--save-model": "b.csv"})
    Traceback (most recent call last):
    ValueError: --out and --save-model are the same file, 'b.csv'; give another name
    """
    named = {what: str(path) for what, path in paths.items() if path is not None and str(path) != "-"}
    for one, other in combinations(named, 2):
        if {one, other} != {"IN", "--out"} and os.path.realpath(named[one]) == os.path.realpath(named[other]):
            raise ValueError(f"{one} and {other} are the same file, {named[other]!r}; give another name")


def by_column(texts: Sequence[str] | None) -> dict[str | None, list[str]] | None:
    """Parse spellings by column, from ``column=spelling``; None is the key for all other columns.

    >>> by_column(["NA", "answer=None", "answer=NA"])
    {None: ['NA'], 'answer': ['None', 'NA']}
    """
    told: dict[str | None, list[str]] = {}
    for text in texts or []:
        name, _, spelling = text.rpartition("=")
        told.setdefault(name or None, []).append(spelling if name else text)
    return told or None


@dataclass(frozen=True)
class Reading:
    """How files are read; by default this is detected."""

    file_format: Annotated[str | None, _FILE("csv, tsv, parquet, arrow or excel.", "--format", default="by its name")] = None
    delimiter: Annotated[str | None, _FILE("Field separator; also tab, space.", default="detected")] = None
    decimal: Annotated[str | None, _FILE("Decimal separator, a point or a comma.", default="detected")] = None
    encoding: Annotated[str | None, _FILE("utf-8, cp1252, utf-16, ...", default="detected")] = None
    quote: Annotated[str | None, _FILE("Quote character; '' for none.", default='"')] = None
    na: Annotated[
        list[str] | None,
        _FILE("Text for missing values, in all columns or in one; repeat for more.", default="detected", metavar="[COL=]TEXT"),
    ] = None
    keep: Annotated[
        list[str] | None,
        _FILE("Text that looks like a missing value but is not; repeat for more.", metavar="[COL=]TEXT"),
    ] = None
    header: Annotated[
        bool, _FILE("Whether the first line has the names of the columns.", "--header/--no-header", default="yes")
    ] = True
    day_first: Annotated[bool | None, _FILE("Whether days come first.", "--day-first/--month-first", default="detected")] = None
    sheet: Annotated[str | None, _FILE("Sheet of an Excel file.", default="the first")] = None

    def read(self, path: str, known_gaps: Any = None) -> TableFile:
        """The whole table."""
        from ..files import read_file

        with about(path):
            return read_file(path, known_gaps=known_gaps, **self._told())

    @contextmanager
    def open(self, path: str, schema: Any, known_gaps: Any) -> Iterator[TableSource]:
        """The table in chunks, its columns of the types in ``schema`` and with gaps as in ``known_gaps``, if they are there."""
        from ..files import open_table

        with about(path), open_table(path, schema=schema, known_gaps=known_gaps, **self._told()) as source:
            yield source

    def _told(self) -> dict[str, Any]:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(self.delimiter or "", self.delimiter)
        told = {
            "format": self.file_format, "delimiter": delimiter, "decimal": self.decimal, "encoding": self.encoding,
            "quote": self.quote, "day_first": self.day_first, "sheet": self.sheet, "header": None if self.header else False,
            "na_values": by_column(self.na), "keep_values": by_column(self.keep),
        }  # fmt: skip
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Replacing:
    """Whether existing files may be replaced."""

    force: Annotated[bool, _OUTPUT("Replace existing files.", "--force", "-f")] = False

    def check_model(self, path: Path) -> None:
        """Raise before a long fit if the file could not be written."""
        from ..files import check_output

        check_output(str(path), force=self.force)


@dataclass(frozen=True)
class Writing(Replacing):
    """How tables are written."""

    out_format: Annotated[str | None, _OUTPUT("csv, tsv, parquet, arrow or excel.", default="by its name")] = None

    def check(self, out: str, source: str | None = None) -> None:
        """Raise before a long fit if the table could not be written."""
        from .._optional import require
        from ..files import check_output, format_of

        check_output(out, source, force=self.force)
        try:
            form = format_of(out, self.out_format, ", or pass --out-format")
        except ParameterError as error:
            error.parameter = "--out-format"
            raise
        if form == "excel":
            require("openpyxl", "writing Excel files", "excel")

    def check_new(self, path: Path) -> None:
        """Like `check`, for a table whose format is given by the extension of its name."""
        from .._optional import require
        from ..files import check_output, format_of

        check_output(str(path), force=self.force)
        if format_of(str(path), advice="") == "excel":
            require("openpyxl", "writing Excel files", "excel")

    def write(self, table: TableFile, out: str, completed: Any) -> None:
        """The whole table."""
        with about(out):
            table.write(out, completed, force=self.force, format=self.out_format)

    @contextmanager
    def open(self, out: str, source: TableSource) -> Iterator[Writer]:
        """Take chunks."""
        from ..files import open_writer

        with open_writer(out, source, force=self.force, format=self.out_format) as writer:
            yield writer


@dataclass(frozen=True)
class Showing:
    """What to show besides the result."""

    quiet: Annotated[bool, _OUTPUT("Show only notes and errors, no progress or summary.", "--quiet", "-q")] = False
    json: Annotated[bool, _OUTPUT("Print the summary as JSON.", "--json")] = False
