"""Files whose fields are separated by spaces, any number of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from otimpute.files import csv_text, open_table, open_writer, read_file
from otimpute.files.dialect import detect_dialect

pa = pytest.importorskip("pyarrow")

ALIGNED = b'  name     x    y \n  "a b"  1.50   NA\n c      12.25 -3  \r\n   d       NA 10\n'


@pytest.fixture(
    params=[ALIGNED, b'name x y\n"a b" 1.50 NA\nc 12.25 -3\nd NA 10', b" name x y\n 'q' 1.50 NA\n c 1 -3\n d NA 10\n\n"]
)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "table.txt").write_bytes(request.param)
    return tmp_path / "table.txt"


@pytest.mark.parametrize("rows", [1, None])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_they_come_out_as_they_went_in(path: Path, rows: int | None, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "_BLOCK", block)
    with open_table(path) as source, open_writer(path.with_name("out.txt"), source) as writer:
        assert source.schema.names == ["name", "x", "y"]
        assert [column.kind for column in source.columns] == ["string", "number", "integer"]
        for chunk in source.chunks(rows):
            writer.write(chunk, chunk.frame)
    assert path.with_name("out.txt").read_bytes() == path.read_bytes()


def test_only_holes_change(path: Path) -> None:
    table = read_file(path)
    frame = table.frame.set_column(1, "x", table.frame.column("x").fill_null(0.5))
    frame = frame.set_column(2, "y", frame.column("y").fill_null(7))
    table.write(path.with_name("out.txt"), frame)
    new = path.with_name("out.txt").read_bytes()
    y, x = (b"7", b"0.50") if b"12.25" in path.read_bytes() else (b"7", b"0.5")
    assert new == path.read_bytes().replace(b"NA", y, 1).replace(b"NA", x, 1)


def test_a_filled_text_with_a_space_is_quoted_and_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text('c    x\n"a b"  1\nnull   2\n c   3\n')
    table = read_file(tmp_path / "in.txt")
    assert table.frame.column("c").to_pylist() == ["a b", None, "c"]
    table.write(tmp_path / "out.txt", table.frame.set_column(0, "c", [["a b", "a b", "c"]]))
    assert (tmp_path / "out.txt").read_text() == 'c    x\n"a b"  1\n"a b"   2\n c   3\n'
    table.write(tmp_path / "out.tsv", table.frame)
    assert (tmp_path / "out.tsv").read_text() == 'c\tx\n"a b"\t1\nnull\t2\nc\t3\n'


@pytest.mark.parametrize("quote", ['"', ""])
def test_values_that_are_hidden_leave_a_field(tmp_path: Path, quote: str) -> None:
    (tmp_path / "in.txt").write_text("x   y\n1   2\n3   4\n5   6\n")
    read_file(tmp_path / "in.txt", quote=quote).write_without(tmp_path / "out.txt", np.array([[1, 0], [0, 1], [0, 0]], bool))
    again = read_file(tmp_path / "out.txt")
    assert again.frame.to_pydict() == {"x": [None, 3, 5], "y": [2, None, 6]}


@pytest.mark.parametrize(
    "text",
    ["full name\nJohn Smith\nJane Doe\n", "n\n1 234\n5 678\n", "when day\n2020-01-01 08:30\n2020-01-02 09:30\n",
     "text here\nsome words 5\nmore 7\n", "a b,c d\n1 2,3\n4 5,6\n"],
)  # fmt: skip
def test_texts_are_not_cut_at_their_spaces(text: str) -> None:
    assert detect_dialect(io.BytesIO(text.encode())).delimiter != " "


def test_names_of_rows_without_a_name_of_their_own_are_said(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text('x y\n"1" 2 3\n"2" 4 5\n')
    with pytest.raises(ValueError, match="line 2 has 3 fields, expected 2 fields as in line 1"):
        read_file(tmp_path / "in.txt")
