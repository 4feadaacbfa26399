"""Files of any format are read, completed and written with care."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from otimpute.files import check_output, open_table, open_writer, read_file

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
ipc = pytest.importorskip("pyarrow.ipc")
pq = pytest.importorskip("pyarrow.parquet")

CSV = b'id,x,kind,when\r\n007,1.50,"a, b",2020-01-31\r\n008,,c,\r\n009,2.25,,2020-02-01\r\n'
COMPLETED = b'id,x,kind,when\r\n007,1.50,"a, b",2020-01-31\r\n008,3.75,c,2020-03-01\r\n009,2.25,c,2020-02-01\r\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(CSV)
    return path


def complete(frame: Any) -> Any:
    values = {"x": 3.75, "kind": "c", "when": date(2020, 3, 1)}
    for name, value in values.items():
        place = frame.column_names.index(name)
        column = frame.column(place)
        filled = [value if cell is None else cell for cell in column.to_pylist()]
        frame = frame.set_column(place, frame.schema.field(place), pa.array(filled).cast(column.type))
    return frame


def test_a_csv_is_completed_in_its_holes_only(table: Path) -> None:
    file = read_file(table)
    file.write(table.with_name("out.csv"), complete(file.frame))
    assert table.with_name("out.csv").read_bytes() == COMPLETED
    assert table.read_bytes() == CSV


DATA = Path(__file__).parents[3] / "shared" / "data" / "uci"


@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not here")
@pytest.mark.parametrize("name", ["MANIFEST", "ionosphere", "wine_quality_red"])
def test_data_sets_come_out_as_they_went_in(tmp_path: Path, name: str) -> None:
    file = read_file(DATA / f"{name}.csv")
    file.write(tmp_path / "out.csv", file.frame)
    assert (tmp_path / "out.csv").read_bytes() == (DATA / f"{name}.csv").read_bytes()


def test_pyarrow_is_needed_only_to_read_and_write(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, otimpute.files; sys.exit('pyarrow' in sys.modules or 'openpyxl' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs the package .pyarrow.: pip install "otimpute\[cli\]"'):
        read_file(table)


def test_a_description_is_plain_and_says_what_is_missing(table: Path) -> None:
    described = read_file(table).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["format"], described["n_rows"]) == ("csv", 3)
    assert described["dialect"]["delimiter"] == ","
    assert [(column["name"], column["kind"], column["n_missing"]) for column in described["columns"]] == [
        ("id", "string", 0),
        ("x", "number", 1),
        ("kind", "string", 1),
        ("when", "date", 1),
    ]


@pytest.mark.parametrize("name", ["out.parquet", "out.feather", "out.arrow", "out.ipc"])
def test_a_csv_becomes_a_typed_file_and_again_a_csv(table: Path, name: str) -> None:
    file = read_file(table)
    typed = table.with_name(name)
    file.write(typed, complete(file.frame))
    again = read_file(typed)
    assert again.frame.equals(complete(file.frame))
    again.write(table.with_name("again.csv"), again.frame)
    assert table.with_name("again.csv").read_text() == (
        'id,x,kind,when\n007,1.5,"a, b",2020-01-31\n008,3.75,c,2020-03-01\n009,2.25,c,2020-02-01\n'
    )


def rich_table() -> Any:
    categories = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array(["low", "high"]), ordered=True)
    schema = pa.schema(
        [
            pa.field("level", categories.type),
            pa.field("small", pa.int16(), metadata={"unit": "kg"}),
            pa.field("at", pa.timestamp("ns", "Europe/Vienna")),
            pa.field("single", pa.float32()),
            pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        ],
        metadata={"made by": "us"},
    )
    moments = pa.array([datetime(2020, 1, 1), None, datetime(2021, 1, 1)], pa.timestamp("us")).cast(pa.timestamp("ns"))
    columns = [
        categories,
        pa.array([1, 2, None], pa.int16()),
        moments.cast(pa.timestamp("ns", "Europe/Vienna")),
        pa.array([0.1, None, 0.3], pa.float32()),
        pa.array([["a"], None, []], pa.list_(pa.field("element", pa.string()))),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@pytest.mark.parametrize("name", ["table.parquet", "table.feather", "table.arrow"])
def test_types_categories_and_metadata_of_typed_files_are_kept(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, rich_table()
    write, read = (pq.write_table, pq.read_table) if name.endswith("parquet") else (feather.write_feather, feather.read_table)
    write(frame, path)
    schema = read(path).schema  # older pyarrow widens a dictionary's indices when it reads Parquet
    assert schema.names == frame.schema.names
    file = read_file(path)
    assert file.frame.schema.equals(schema, check_metadata=True)
    assert [column.kind for column in file.columns] == ["string", "integer", "timestamp", "number", "other"]
    assert [column.n_missing for column in file.columns] == [1] * 5
    out = tmp_path / f"out-{name}"
    file.write(out, file.frame)
    written = read(out)
    assert written.schema.equals(schema, check_metadata=True)
    assert written.to_pydict() == frame.to_pydict()


def test_the_streaming_format_of_arrow_is_read_too(tmp_path: Path) -> None:
    frame = pa.table({"x": [1, None]})
    with ipc.new_stream(tmp_path / "table.arrow", frame.schema) as writer:
        writer.write_table(frame)
    assert read_file(tmp_path / "table.arrow").frame.equals(frame)


def test_typed_values_become_plain_text(tmp_path: Path) -> None:
    pq.write_table(rich_table().append_column("yes", pa.array([True, None, False])), tmp_path / "table.parquet")
    file = read_file(tmp_path / "table.parquet")
    file.write(tmp_path / "table.tsv", file.frame)
    assert (tmp_path / "table.tsv").read_text() == (
        "level\tsmall\tat\tsingle\ttags\tyes\n"
        "high\t1\t2020-01-01 01:00:00+01:00\t0.1\t['a']\ttrue\n"
        "\t2\t\t\t\t\n"
        "low\t\t2021-01-01 01:00:00+01:00\t0.3\t[]\tfalse\n"
    )


def test_another_delimiter_changes_quotes_only_where_needed(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b\n"x,y",x\ty\n2,"z"\n')
    file = read_file(path)
    for _ in range(2):  # writing leaves the file that was read as it is
        file.write(tmp_path / "table.tsv", file.frame, force=True)
        assert (tmp_path / "table.tsv").read_text() == 'a\tb\n"x,y"\t"x\ty"\n2\t"z"\n'
    back = read_file(tmp_path / "table.tsv")
    assert back.frame.equals(file.frame)
    back.write(tmp_path / "back.csv", back.frame)
    assert (tmp_path / "back.csv").read_text() == 'a,b\n"x,y","x\ty"\n2,"z"\n'


def test_a_csv_keeps_its_delimiter_whatever_it_is(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a\tb\n1\t2\n")
    file = read_file(tmp_path / "table.csv")
    file.write(tmp_path / "out.csv", file.frame)
    assert (tmp_path / "out.csv").read_text() == "a\tb\n1\t2\n"


def test_compressed_text_goes_in_and_out(table: Path) -> None:
    packed = table.with_name("table.csv.gz")
    packed.write_bytes(gzip.compress(CSV, mtime=0))
    file = read_file(packed)
    file.write(table.with_name("out.CSV.GZ"), complete(file.frame))
    assert gzip.decompress(table.with_name("out.CSV.GZ").read_bytes()) == COMPLETED


class Standard:
    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("name", ["-", "from.tsv"])
def test_standard_output_keeps_the_dialect(table: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data = CSV.replace(b",", b"\t").replace(b"\t ", b", ")
    path = name if name == "-" else str(table.with_name(name))
    if name == "-":
        monkeypatch.setattr(sys, "stdin", Standard(data))
    else:
        Path(path).write_bytes(data)
    monkeypatch.setattr(sys, "stdout", Standard())
    file = read_file(path)
    file.write("-", file.frame)
    assert sys.stdout.buffer.getvalue() == data  # type: ignore[attr-defined]


@pytest.mark.parametrize("rows", [1, 2, None])
@pytest.mark.parametrize("source_name", ["table.csv", "table.csv.gz", "table.parquet", "table.arrow", "-"])
def test_streams_give_what_whole_files_give(
    table: Path, monkeypatch: pytest.MonkeyPatch, source_name: str, rows: int | None
) -> None:
    path = source_name if source_name == "-" else str(table.with_name(source_name))
    whole = read_file(table)
    if source_name == "-":
        monkeypatch.setattr(sys, "stdin", Standard(CSV))
    elif source_name != "table.csv":
        whole.write(path, whole.frame)
        whole = read_file(path)
    whole.write(table.with_name("whole.csv"), complete(whole.frame))
    with open_table(path) as source, open_writer(table.with_name("stream.csv"), source) as writer:
        assert source.describe()["columns"] == whole.describe()["columns"]
        for chunk in source.chunks(rows):
            assert chunk.frame.num_rows <= (rows or 3)
            writer.write(chunk, complete(chunk.frame))
    assert table.with_name("stream.csv").read_bytes() == table.with_name("whole.csv").read_bytes()


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_categories_survive_streaming(tmp_path: Path, name: str) -> None:
    frame = pa.table({"c": pa.array(["a", "b", None, "c"]).dictionary_encode()})
    pq.write_table(frame, tmp_path / "table.parquet")
    with open_table(tmp_path / "table.parquet") as source, open_writer(tmp_path / name, source) as writer:
        for chunk in source.chunks(1):
            own = chunk.frame.column(0).cast(pa.string()).fill_null("z").cast(frame.schema.types[0])
            writer.write(chunk, pa.table({"c": own}))
    again = read_file(tmp_path / name).frame
    assert again.schema.equals(frame.schema)
    assert again.column("c").to_pylist() == ["a", "b", "z", "c"]


def test_types_may_come_from_a_schema(table: Path) -> None:
    with open_table(table, schema=pa.schema([("x", pa.float32())])) as source:
        assert next(source.chunks()).frame.schema.field("x").type == pa.float32()
        assert source.schema.field("id").type == pa.string()
    with (
        pytest.raises(ValueError, match="has no column 'y'; it has 'id', 'x'"),
        open_table(table, schema=pa.schema([("y", pa.int8())])),
    ):
        pass


def test_an_existing_file_is_not_replaced_without_force(table: Path) -> None:
    out = table.with_name("out.csv")
    out.write_text("mine")
    file = read_file(table)
    with pytest.raises(FileExistsError, match=r"out\.csv' exists; give another name, or force"):
        file.write(out, file.frame)
    with pytest.raises(FileExistsError, match="is the input itself"):
        file.write(table, file.frame)
    assert (out.read_text(), table.read_bytes()) == ("mine", CSV)
    file.write(out, complete(file.frame), force=True)
    file.write(table, complete(file.frame), force=True)
    assert out.read_bytes() == table.read_bytes() == COMPLETED


def test_a_stream_may_replace_its_own_input(table: Path) -> None:
    with open_table(table) as source, open_writer(table, source, force=True) as writer:
        for chunk in source.chunks(1):
            writer.write(chunk, complete(chunk.frame))
    assert table.read_bytes() == COMPLETED


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.arrow"])
def test_nothing_is_left_of_a_file_whose_writing_failed(table: Path, name: str) -> None:
    file = read_file(table)
    with pytest.raises(RuntimeError, match="no more"), open_writer(table.with_name(name), file) as writer:
        for chunk in file.chunks(1):
            writer.write(chunk, complete(chunk.frame))
            raise RuntimeError("no more")
    assert sorted(table.parent.iterdir()) == [table]


def test_outputs_that_are_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file in it"):
        check_output(str(tmp_path), force=True)
    with pytest.raises(ValueError, match="not a regular file; write to '-'"):
        check_output("/dev/null", force=True)


@pytest.mark.parametrize(
    ("completed", "said"),
    [
        (pa.table({"a": [1], "b": [1.5]}), "must have 2 rows, got 1"),
        (pa.table({"a": [1, 2]}), r"must have the columns \['a', 'b'\], got \['a'\]"),
        (pa.table({"a": [1, 2], "b": ["x", "y"]}), "'b' must hold double, got string"),
        (pa.table({"a": [1.5, 2], "b": [0.5, 1]}), "'a' must hold int64, got double"),
    ],
)
def test_completed_tables_that_do_not_fit_are_refused(tmp_path: Path, completed: Any, said: str) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,0.5\n2,\n")
    file = read_file(tmp_path / "table.csv")
    with pytest.raises(ValueError, match=said):
        file.write(tmp_path / "out.csv", completed)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(TypeError, match="must be a pyarrow Table, got dict"):
        file.write(tmp_path / "out.csv", {})


@pytest.mark.parametrize(
    ("name", "data", "error", "said"),
    [
        ("none.csv", None, FileNotFoundError, "there is no file '.*none.csv'"),
        ("empty.csv", b"", ValueError, "the file is empty"),
        ("blank.csv", b"\xef\xbb\xbf\n\n", ValueError, "the file is empty"),
        ("header.csv", b"a,b\n", ValueError, "column names but no rows"),
        ("junk.csv", bytes(range(256)), ValueError, "not text, because it contains NUL bytes"),
        ("table.xml", b"<a/>", ValueError, "must end in .csv, .txt, .* got 'table.xml'; rename it, or pass format="),
        ("text.parquet", CSV, ValueError, "cannot be read as parquet"),
        ("text.arrow", CSV, ValueError, "cannot be read as arrow"),
        ("empty.parquet", b"", ValueError, "cannot be read as parquet"),
        ("text.csv.gz", CSV, ValueError, "is not a complete gzip file"),
        ("cut.csv.gz", gzip.compress(CSV, mtime=0)[:-9], ValueError, "is not a complete gzip file"),
        ("packed.csv", gzip.compress(CSV, mtime=0), ValueError, "is a gzip file, not text; name it .csv.gz"),
    ],
)
def test_files_that_cannot_be_read_give_one_clear_line(
    tmp_path: Path, name: str, data: bytes | None, error: type[Exception], said: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=said) as caught:
        read_file(tmp_path / name)
    assert "\n" not in str(caught.value)
    with pytest.raises(error), open_table(tmp_path / name):
        pass


def test_folders_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        read_file(tmp_path / "folder.csv")


def test_a_typed_file_without_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="columns but no rows"):
        read_file(tmp_path / "table.parquet")


def test_options_of_other_formats_are_refused(tmp_path: Path, table: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="delimiter is for text files"):
        read_file(tmp_path / "table.parquet", delimiter=",")
    with pytest.raises(ValueError, match="sheet is for Excel files"):
        read_file(table, sheet="one")


def test_the_format_can_be_declared(tmp_path: Path) -> None:
    (tmp_path / "table.dat").write_bytes(CSV)
    file = read_file(tmp_path / "table.dat", format="csv")
    file.write(tmp_path / "out.dat", file.frame, format="parquet")
    assert pq.read_table(tmp_path / "out.dat").equals(file.frame)
    with pytest.raises(ValueError, match="format must be one of 'arrow', 'csv'"):
        read_file(tmp_path / "table.dat", format="sas")
