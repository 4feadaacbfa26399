r"""Tables in files: read with nulls for holes, written with nothing changed but the holes.

Text files (CSV in all its dialects), Parquet, Arrow (Feather) and Excel; needs pyarrow, and openpyxl for Excel.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
>>> _ = path.write_text("id,size\n007,1.5\n008,NA\n")
>>> table = read_file(path)
>>> table.frame.to_pydict()
{'id': ['007', '008'], 'size': [1.5, None]}
"""

from .chunk import Chunk
from .columns import Column
from .dialect import Dialect
from .doubts import Doubt, Misfits, RowNumbers, Sentinel, UnclearMark, find_doubts
from .formats import check_output, format_of
from .new_table import open_new_table
from .spellings import NA_VALUES, DoubtfulSpelling
from .table_file import TableFile, TableSource, Writer, open_table, open_writer, read_file

__all__ = [
    "NA_VALUES",
    "Chunk",
    "Column",
    "Dialect",
    "Doubt",
    "DoubtfulSpelling",
    "Misfits",
    "RowNumbers",
    "Sentinel",
    "TableFile",
    "TableSource",
    "UnclearMark",
    "Writer",
    "check_output",
    "find_doubts",
    "format_of",
    "open_new_table",
    "open_table",
    "open_writer",
    "read_file",
]
