"""Files written with more holes than they had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otimpute.files import read_file

CSV = b'id;x;kind\r\n007;1,50;"a; b"\r\n008;NA;c\r\n009; 2,25;d'


def test_only_hidden_fields_of_a_csv_are_emptied(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(CSV)
    file = read_file(tmp_path / "in.csv")
    missing = np.array([[False, False, True], [False, False, False], [True, True, False]])
    file.write_without(tmp_path / "out.csv", missing)
    assert (tmp_path / "out.csv").read_bytes() == b"id;x;kind\r\n007;1,50;\r\n008;NA;c\r\n;;d"
    assert (tmp_path / "in.csv").read_bytes() == CSV
    with pytest.raises(FileExistsError):
        file.write_without(tmp_path / "out.csv", missing)


def test_a_table_of_one_column_keeps_its_rows(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n1\n2\n3\n")
    read_file(tmp_path / "in.csv").write_without(tmp_path / "out.csv", np.array([[True], [False], [True]]))
    assert read_file(tmp_path / "out.csv").frame.to_pydict() == {"x": [None, 2, None]}


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.csv", "out.xlsx"])
def test_typed_tables_get_nulls(tmp_path: Path, name: str) -> None:
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    pq.write_table(pa.table({"x": [1.5, None, 2.5], "c": ["a", "b", "c"]}), tmp_path / "in.parquet")
    missing = np.array([[True, False], [False, False], [False, True]])
    read_file(tmp_path / "in.parquet").write_without(tmp_path / name, missing)
    assert read_file(tmp_path / name).frame.to_pydict() == {"x": [None, None, 2.5], "c": ["a", "b", None]}


def test_cells_of_a_workbook_are_emptied_and_all_else_stays(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["x", "c"], [1.5, "a"], ["NA", "b"], [3.5, "c"]):
        book.active.append(row)
    book.active["B2"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "in.xlsx")
    missing = np.array([[True, False], [False, True], [False, False]])
    read_file(tmp_path / "in.xlsx").write_without(tmp_path / "out.xlsx", missing)
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert list(sheet.values) == [("x", "c"), (None, "a"), ("NA", None), (3.5, "c")]
    assert sheet["B2"].font.bold
