"""Excel workbooks are completed in their holes only."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from otimpute.files import open_table, open_writer, read_file

pa = pytest.importorskip("pyarrow")
openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "data"
    for row in [
        ["id", "n", "x", "ok", "at", "empty", "sum"],
        ["007", 1, 1.5, True, datetime(2020, 1, 31), None, "=B2+C2"],
        ["008", None, "?", None, datetime(2020, 2, 1, 8, 30), None, "=B3+C3"],
        [None, 3, 2, False, None, "NA", "=B4+C4"],
    ]:
        sheet.append(row)
    sheet["A2"].font = openpyxl.styles.Font(bold=True)
    sheet["K9"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("more").append(["y"])
    book["more"].append([5])
    path = tmp_path / "table.xlsx"
    book.save(path)
    return path


def completed(frame: Any) -> Any:
    values = {"id": "007", "n": 2, "x": 1.75, "ok": True, "at": datetime(2020, 3, 1)}
    for place, name in enumerate(frame.column_names):
        if name in values:
            frame = frame.set_column(place, name, frame.column(place).fill_null(values[name]))
    return frame


def test_cells_have_types(workbook: Path) -> None:
    file = read_file(workbook)
    assert file.frame.to_pydict() == {
        "id": ["007", "008", None],
        "n": [1, None, 3],
        "x": [1.5, None, 2.0],
        "ok": [True, None, False],
        "at": [datetime(2020, 1, 31), datetime(2020, 2, 1, 8, 30), None],
        "empty": [None, None, None],
        "sum": [None, None, None],
    }
    assert [column.kind for column in file.columns] == ["string", "integer", "number", "boolean", "timestamp", "empty", "empty"]
    assert file.describe()["sheet"] == "data"
    assert read_file(workbook, sheet="more").frame.to_pydict() == {"y": [5]}
    assert read_file(workbook, na_values=["007"]).frame.column("id").to_pylist() == [None, "008", None]


@pytest.mark.parametrize("stream", [True, False])
def test_only_holes_change(workbook: Path, stream: bool) -> None:
    out = workbook.with_name("out.xlsx")
    if stream:
        with open_table(workbook) as source, open_writer(out, source) as writer:
            for chunk in source.chunks(1):
                writer.write(chunk, completed(chunk.frame))
    else:
        file = read_file(workbook)
        file.write(out, completed(file.frame))
    sheet = openpyxl.load_workbook(out)["data"]
    assert [[cell.value for cell in row[:7]] for row in sheet.iter_rows(max_row=4)][1:] == [
        ["007", 1, 1.5, True, datetime(2020, 1, 31), None, "=B2+C2"],
        ["008", 2, 1.75, True, datetime(2020, 2, 1, 8, 30), None, "=B3+C3"],
        ["007", 3, 2, False, datetime(2020, 3, 1), "NA", "=B4+C4"],
    ]
    assert sheet["A2"].font.bold
    assert openpyxl.load_workbook(out).sheetnames == ["data", "more"]


def test_text_becomes_a_workbook_and_text_again(workbook: Path) -> None:
    text = workbook.with_name("table.csv")
    text.write_text("id,x,d\n007,1.5,2020-01-31\n008,,\n")
    file = read_file(text)
    file.write(workbook.with_name("new.xlsx"), file.frame)
    again = read_file(workbook.with_name("new.xlsx"))
    again.write(workbook.with_name("again.csv"), again.frame)
    assert workbook.with_name("again.csv").read_text() == "id,x,d\n007,1.5,2020-01-31 00:00:00\n008,,\n"


def test_workbooks_that_cannot_be_read_give_one_clear_line(workbook: Path) -> None:
    with pytest.raises(ValueError, match="sheet must be one of 'data', 'more', got 'none'"):
        read_file(workbook, sheet="none")
    workbook.with_name("text.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read as an Excel workbook"):
        read_file(workbook.with_name("text.xlsx"))
    openpyxl.Workbook().save(workbook.with_name("blank.xlsx"))
    with pytest.raises(ValueError, match="has no values"):
        read_file(workbook.with_name("blank.xlsx"))


def test_text_is_never_a_formula(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_text("=name,n\n=1+1,1\n#N/A!,2\n,3\n")
    table = read_file(source)
    table.write(tmp_path / "new.xlsx", table.frame)
    again = read_file(tmp_path / "new.xlsx")
    assert again.frame.to_pydict() == {"=name": ["=1+1", "#N/A!", None], "n": [1, 2, 3]}
    again.write(tmp_path / "filled.xlsx", again.frame.set_column(0, "=name", [["=1+1", "#N/A!", "=2+2"]]))
    cells = openpyxl.load_workbook(tmp_path / "filled.xlsx").active["A"]
    assert [cell.value for cell in cells] == ["=name", "=1+1", "#N/A!", "=2+2"]
    assert all(cell.data_type == "s" for cell in cells)
