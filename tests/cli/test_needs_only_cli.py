"""``pip install "otimpute[cli]"`` is enough for the commands: no pandas, no polars, nothing else that is installed here."""

from __future__ import annotations

import csv
from pathlib import Path

from installation import Block, run_blocks

_COMMAND = """
import sys
from otimpute.cli import main

sys.argv = {words!r}.split()
try:
    main()
except SystemExit as ended:
    assert ended.code in (None, 0), ended.code
"""


def run_commands(folder: Path, *commands: str) -> list[str]:
    """What commands print, one after the other."""
    blocks = [Block(_COMMAND.format(words=words), ["otimpute[cli]"], words) for words in commands]
    return run_blocks(blocks, folder).printed


def test_the_demo_shows_how_it_is_done(tmp_path: Path) -> None:
    (printed,) = run_commands(tmp_path, "otimpute demo --out demo")
    commands = [line for line in printed.splitlines() if line.startswith("$ otimpute ")]
    assert [line.split()[2] for line in commands] == ["mask", "impute", "score"]
    assert "categories: " in printed
    files = {path.name for path in (tmp_path / "demo").iterdir()}
    assert files == {"flats.csv", "holes.csv", "filled.csv", "report.html"}
    assert "Imputation of holes.csv" in (tmp_path / "demo/report.html").read_text(encoding="utf-8")


def test_files_are_looked_at_filled_and_judged(tmp_path: Path) -> None:
    jobs = ["nurse", "clerk"]
    rows = [[k, k * 2 if k % 5 else "", jobs[k > 30] if k % 7 else "", f"2024-01-{k % 28 + 1:02}"] for k in range(60)]
    with (tmp_path / "small.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["a", "b", "job", "day"], *rows])
    run_commands(
        tmp_path,
        "otimpute inspect small.csv",
        "otimpute impute small.csv -o out.csv --report r.html --mask mask.csv --std std.csv --set experts=gaussian_em",
        "otimpute fit small.csv --model small.otimpute --method sinkhorn",
        "otimpute apply small.otimpute small.csv -o applied.parquet",
        "otimpute report small.otimpute small.csv -o model.html",
        "otimpute mask small.csv -o holes.csv --rate 0.1",
        "otimpute score small.csv out.csv --holes holes.csv",
    )
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        filled = list(csv.reader(file))[1:]
    assert all(cell for row in filled for cell in row)
    assert [row[0] for row in filled] == [str(k) for k in range(60)]
    for page in ("r.html", "model.html"):
        assert "Imputation of small.csv" in (tmp_path / page).read_text(encoding="utf-8")
