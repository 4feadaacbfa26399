r"""Tables in files: read with nulls for missing values, written with only missing values changed.

Text files (CSV in all its dialects), Parquet, Arrow (Feather) and Excel; needs pyarrow, and openpyxl for Excel.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
>>> _ = path.write_text("id,size\n007,1.5\n008,NA\n")
>>> table = read_file(path)
>>> table.frame.to_pydict()
{'id': ['007', '008'], 'size': [1.5, None]}
"""

from .chunk import Chunk
from .columns import Column, FieldKind, kind_of
from .dialect import Dialect
from .formats import check_output, format_of
from .long_table import check_long, write_long
from .new_table import open_new_table
from .reading_hints import AmbiguousSeparator, ReadingHint, RowNumbers, Sentinel, UnparsedValues, find_reading_hints
from .spellings import NA_VALUES, AmbiguousSpelling
from .table_file import TableFile, TableSource, Writer, open_table, open_writer, read_file

__all__ = [
    "NA_VALUES",
    "AmbiguousSeparator",
    "AmbiguousSpelling",
    "Chunk",
    "Column",
    "Dialect",
    "FieldKind",
    "ReadingHint",
    "RowNumbers",
    "Sentinel",
    "TableFile",
    "TableSource",
    "UnparsedValues",
    "Writer",
    "check_long",
    "check_output",
    "find_reading_hints",
    "format_of",
    "kind_of",
    "open_new_table",
    "open_table",
    "open_writer",
    "read_file",
    "write_long",
]
