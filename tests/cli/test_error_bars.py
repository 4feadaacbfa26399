"""Which cells were filled in, and how far off they may be: in the summary, and as tables beside the completed one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.feather as feather
import pytest

pytestmark = pytest.mark.usefixtures("two_experts")


@pytest.fixture
def table(tmp_path: Path, flats: pd.DataFrame) -> pd.DataFrame:
    frame = flats[["size", "rent", "district", "built", "whole"]].assign(key=[f"k{n}" for n in range(len(flats))])
    frame.loc[3, "key"] = None
    frame.to_csv(tmp_path / "flats.csv", index=False)
    return frame


def test_cells_that_were_filled_and_their_error_bars_are_written(invoke: Any, table: pd.DataFrame) -> None:
    invoke("impute", "flats.csv", "-o", "full.csv", "--exclude", "key", "--mask", "mask.csv", "--std", "std.csv", "-q")
    mask, std = pd.read_csv("mask.csv"), pd.read_csv("std.csv")
    assert list(mask) == list(std) == list(table)
    holes = table.isna()
    expected = holes.assign(key=False)  # not used, so not filled
    assert (mask == expected).all(axis=None)
    assert {str(dtype) for dtype in mask.dtypes} == {"bool"}
    assert (std[~holes].fillna(0) == 0).all(axis=None)
    assert (std[["size", "rent", "built"]][holes] > 0).sum().sum() == holes[["size", "rent", "built"]].sum().sum()
    assert std.loc[3, "key"] != std.loc[3, "key"]  # nothing was filled there
    assert std["district"].max() < 1  # a chance


@pytest.mark.parametrize("ending", ["tsv", "csv.gz", "parquet", "arrow", "xlsx"])
def test_they_come_in_all_formats(invoke: Any, table: pd.DataFrame, ending: str) -> None:
    invoke(
        "impute", "flats.csv", "-o", "full.csv", "--exclude", "key", "--mask", f"mask.{ending}", "--std", f"std.{ending}", "-q"
    )
    read: Any = {
        "tsv": lambda path: pd.read_csv(path, sep="\t"), "csv.gz": pd.read_csv, "parquet": pd.read_parquet,
        "arrow": feather.read_feather, "xlsx": pd.read_excel,
    }[ending]  # fmt: skip
    assert (read(f"mask.{ending}").astype(bool) == table.isna().assign(key=False)).all(axis=None)
    assert (read(f"std.{ending}")["size"][table["size"].isna()] > 0).all()


def test_apply_writes_them_chunk_by_chunk(invoke: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("impute", "flats.csv", "-o", "a.csv", "--exclude", "key", "--save-model", "m.otimpute", "-q")
    monkeypatch.setattr("otimpute.files.csv_text.ROWS_PER_CHUNK", 50)
    invoke("apply", "m.otimpute", "flats.csv", "-o", "b.csv", "--mask", "mask.csv", "--std", "std.parquet", "-q")
    mask, std = pd.read_csv("mask.csv"), pd.read_parquet("std.parquet")
    assert (mask == table.isna().assign(key=False)).all(axis=None)
    assert ((std > 0) == table.isna().assign(key=False)).all(axis=None)


def test_a_method_without_error_bars_is_refused_before_the_fit(
    invoke: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoke("fit", "flats.csv", "--model", "m.otimpute", "-m", "mean", "-q")
    monkeypatch.setattr("otimpute.baselines.MeanImputer.fit_cells", None)
    said = invoke("impute", "flats.csv", "-o", "full.csv", "-m", "mean", "--std", "std.csv", code=1).stderr
    assert "--std needs error bars, which --method mean does not have; use --method auto" in said
    assert (
        "the model 'm.otimpute' does not have"
        in invoke("apply", "m.otimpute", "flats.csv", "-o", "full.csv", "--std", "std.csv", code=1).stderr
    )
    assert not Path("full.csv").exists()


def test_they_go_to_files_of_their_own(invoke: Any, table: pd.DataFrame) -> None:
    arguments = ["impute", "flats.csv", "-o", "full.csv", "-m", "mean"]
    assert "same file" in invoke(*arguments, "--mask", "full.csv", code=1).stderr
    assert "same file" in invoke(*arguments, "--mask", "flats.csv", "-f", code=1).stderr
    assert "not to standard output" in invoke(*arguments, "--mask", "-", code=1).stderr
    assert "must end in .csv" in invoke(*arguments, "--mask", "mask.txt.old", code=1).stderr
    Path("mask.csv").write_text("mine")
    assert "exists" in invoke(*arguments, "--mask", "mask.csv", code=1).stderr
    assert Path("mask.csv").read_text() == "mine" and not Path("full.csv").exists()
    invoke(*arguments, "--mask", "mask.csv", "--force")
    assert Path("mask.csv").read_text().startswith("size,rent,")


def test_the_summary_tells_typical_error_bars_and_the_least_sure_cells(invoke: Any, table: pd.DataFrame) -> None:
    told = json.loads(invoke("impute", "flats.csv", "-o", "a.csv", "--std", "std.csv", "--exclude", "key", "--json").stdout)
    std = pd.read_csv("std.csv")
    for column in told["columns"]:
        if column["n_missing"]:
            typical = std[column["name"]][table[column["name"]].isna()].median()
            assert column["typical_error_bar"] == pytest.approx(typical)
    first = told["least_sure"][0]
    bar = std.loc[first["row"] - 1, first["column"]]
    assert bar == std[first["column"]].max()
    seconds = table["built"].astype("datetime64[s]").astype("int64").where(table["built"].notna())
    spread = np.nanstd(seconds if first["column"] == "built" else table[first["column"]])
    assert first["size"] == pytest.approx(bar / spread, rel=1e-6)
    said = invoke("impute", "flats.csv", "-o", "a.csv", "-f", "--exclude", "key").stderr
    assert "error bar" in said
    assert f"most uncertain: row {first['row']}, {first['column']}: {first['value']} ({first['bar']})" in said
    assert "error bar" not in invoke("impute", "flats.csv", "-o", "a.csv", "-f", "-m", "mean").stderr
