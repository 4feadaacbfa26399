"""Several completed tables from the shell."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otimpute import MultipleImputer, pool_estimates

M = 3


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Semicolons, Windows' line ends, ids with zeros, decimal commas, several spellings of nothing, a last line without end."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    lines = ["id;age;income;smoker;city"]
    for k in range(60):
        income = ["", "NA", "?"][k // 3 % 3] if k % 3 == 0 else f"{2 + x[k] + 0.3 * rng.normal():.2f}".replace(".", ",")
        smoker, age = "NA" if k % 4 == 0 else ("yes" if x[k] > 0 else "no"), int(40 + 8 * x[k])
        lines.append(f"{k:03};{age};{income};{smoker};{'?' if k % 5 == 0 else ['Rome', 'Oslo', 'Bern'][k % 3]}")
    path = tmp_path / "in.csv"
    path.write_bytes("\r\n".join(lines).encode())
    return path


def lines_of(path: str | Path) -> list[list[str]]:
    return [line.split(";") for line in Path(path).read_bytes().decode().split("\r\n")]


def test_one_long_file_has_the_original_and_all_tables(invoke: Any, table: Path) -> None:
    result = invoke("impute", "in.csv", "-o", "long.csv", "--multiple", M, "--exclude", "id")
    assert "long.csv: 3 tables of 60 rows × 5 columns, 47 missing values of each drawn by chained" in result.stderr
    assert "otimpute.pool" in result.stderr and "as.mids" in result.stderr
    header, *long = lines_of("long.csv")
    names, *original = lines_of(table)
    assert header == [".imp", ".id", *names]
    assert long.pop() == [""]  # the last line ends, too
    assert [line[:2] for line in long] == [[str(k), str(row + 1)] for k in range(M + 1) for row in range(60)]
    assert [line[2:] for line in long[:60]] == original
    holes = 0
    for place, line in enumerate(long[60:]):
        for old, new in zip(original[place % 60], line[2:], strict=True):
            if old in ("", "NA", "?"):
                holes += 1
                assert new not in ("", "NA", "?")
            else:
                assert new == old
    assert holes == 47 * M
    assert long[60:120] != long[120:180]


def test_tables_are_those_of_the_library(invoke: Any, table: Path) -> None:
    invoke("impute", table, "-o", "long.parquet", "--multiple", M, "--exclude", "id", "--seed", 5, "--delta", "income=.5 sd",
           "--delta", "smoker=yes:3", "--jobs", 2)  # fmt: skip
    long = pq.read_table("long.parquet")
    assert long.column_names[:2] == [".imp", ".id"]
    assert long.column(".imp").type == pa.int64()
    original = long.slice(0, 60).select(["age", "income", "smoker", "city"])
    imputer = MultipleImputer(m=M, random_state=5, delta={"income": "0.5 sd", "smoker": {True: 3}}).fit(original)
    for k, expected in enumerate(imputer.tables_, start=1):
        assert long.slice(60 * k, 60).select(original.column_names).equals(expected)


def test_a_file_each(invoke: Any, table: Path) -> None:
    invoke("impute", "in.csv", "-o", "long.csv", "--multiple", M, "--exclude", "id")
    result = invoke("impute", "in.csv", "-o", "out-{}.csv", "--multiple", M, "--exclude", "id")
    assert "out-1.csv to out-3.csv: 3 tables" in result.stderr
    assert "as.mids" not in result.stderr
    long = lines_of("long.csv")
    for k in range(1, M + 1):
        names, *rows = lines_of(f"out-{k}.csv")
        assert [names, *rows] == [line[2:] for line in [long[0], *long[1 + 60 * k :][:60]]]
        assert not Path(f"out-{k}.csv").read_bytes().endswith(b"\n")  # as in the input
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv", "long.csv", "out-1.csv", "out-2.csv", "out-3.csv"]


def test_files_appear_all_or_none(invoke: Any, table: Path) -> None:
    Path("out-2.csv").write_text("mine")
    result = invoke("impute", table, "-o", "out-{}.csv", "--multiple", M, code=1)
    assert "'out-2.csv' exists; give another name, or --force to replace it" in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv", "out-2.csv"]
    assert Path("out-2.csv").read_text() == "mine"
    invoke("impute", table, "-o", "out-{}.csv", "--multiple", M, "--force", "--exclude", "id")
    assert Path("out-2.csv").read_text().startswith("id;age")


@pytest.mark.parametrize("out", ["long.tsv", "long.csv.gz", "long.arrow", "long.xlsx"])
def test_every_format_holds_the_same(invoke: Any, table: Path, out: str) -> None:
    from otimpute.files import read_file

    if out.endswith("xlsx"):
        pytest.importorskip("openpyxl", reason="needs the extra excel")
    invoke("impute", table, "-o", "long.parquet", "--multiple", 2, "--exclude", "id")
    invoke("impute", table, "-o", out, "--multiple", 2, "--exclude", "id")
    read, expected = read_file(out).frame, pq.read_table("long.parquet")
    assert read.column_names == expected.column_names
    for name in (".imp", ".id", "age", "city"):
        assert read.column(name).to_pylist() == expected.column(name).to_pylist()
    np.testing.assert_allclose(
        read.column("income").to_pandas(), expected.column("income").to_pandas(), atol=0.0051 if "sv" in out else 0
    )


def test_typed_files_keep_their_types(invoke: Any) -> None:
    labels = pa.array(["a", "b", None, "a", "b", "a"] * 5).dictionary_encode()
    frame = pa.table({"x": pa.array([1.0, 2.0, 3.0, None, 5.0, 6.0] * 5, pa.float32()), "label": labels, "n": list(range(30))})
    pq.write_table(frame, "in.parquet")
    for out in ("long.parquet", "long.arrow"):
        invoke("impute", "in.parquet", "-o", out, "--multiple", 2)
    long = pq.read_table("long.parquet")
    assert [long.schema.field(name).type for name in frame.column_names][::2] == [pa.float32(), pa.int64()]
    assert long.num_rows == 90 and long.column("label").null_count == 5


def test_to_standard_output(start: Any, table: Path) -> None:
    result = start("impute", "-", "-o", "-", "--multiple", "2", "--exclude", "id", stdin=table.read_bytes())
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(b".imp;.id;id;age") and result.stdout.count(b"\r\n") == 181


def test_json_says_what_was_done(invoke: Any, table: Path) -> None:
    result = invoke("impute", table, "-o", "out-{}.csv", "--multiple", 2, "--delta", "income=1", "--exclude", "id", "--json",
                    "--mask", "mask.csv")  # fmt: skip
    summary = json.loads(result.stdout)
    assert summary["m"] == 2 and summary["method"] == "chained" and summary["delta"] == ["income=1"]
    assert summary["output"] == ["out-1.csv", "out-2.csv"]
    assert {column["name"]: column["n_missing"] for column in summary["columns"]} == {"income": 20, "smoker": 15, "city": 12}
    assert Path("mask.csv").read_text().count("true") == 47


def test_another_method_that_draws(invoke: Any, table: Path) -> None:
    result = invoke("impute", table, "-o", "long.csv", "--multiple", 2, "--exclude", "id", "--method", "gaussian_em")
    assert "drawn by gaussian_em" in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--multiple", "1"], "--multiple must be a whole number >= 2, got 1; one table cannot show"),
        (["--delta", "income=1"], "--delta needs --multiple, which imputes by random draws: pass --multiple 20"),
        (["--multiple", "2", "--delta", "incme=1"], "--delta: no column 'incme'; did you mean 'income'?"),
        (["--multiple", "2", "--delta", "id=1", "--exclude", "id"], "--delta: no column 'id'"),
        (["--multiple", "2", "--delta", "income"], "--delta takes income=0.2, 'income=0.5 sd', 'income=1.1 x' or smoker=yes:2"),
        (["--multiple", "2", "--delta", "income=much"], "--delta of column 'income' must be a number"),
        (["--multiple", "2", "--delta", "smoker=yes:much"], "--delta takes a category and its odds as in smoker=yes:2"),
        (["--multiple", "2", "--delta", "smoker=yes:-1"], "odds in --delta of column 'smoker' must be finite numbers > 0"),
        (
            ["--multiple", "2", "--delta", "city=Paris:2"],
            "odds in --delta of column 'city' are for 'Paris'; its categories are",
        ),
        (["--multiple", "2", "--delta", "income=yes:2"], "column 'income' holds numbers; its --delta must be"),
        (["--multiple", "2", "--delta", "smoker=2"], "or for categories and booleans odds such as yes:2, got '2'"),
        (["--multiple", "2", "--delta", "age=2"], "--delta is for column 'age', which has no missing values"),
        (["--multiple", "2", "--delta", "income=2", "--delta", "income=3"], "--delta is given twice for column 'income'"),
        (["--multiple", "2", "--method", "auto"], "--multiple needs random draws, which --method auto does not make; pass"),
        (["--multiple", "2", "--method", "chaind"], "--method must be one of"),
        (["--multiple", "2", "--method", "gaussian_em", "--delta", "income=1"], "--delta needs --method chained"),
        (["--multiple", "2", "--set", "delta=1"], "--set delta=1: use --delta instead"),
        (["--multiple", "2", "--set", "n_rounds=0"], "--set n_rounds must be a whole number >= 1"),
        (["--multiple", "2", "--std", "std.csv"], "--std is not for --multiple"),
        (["--multiple", "2", "--save-model", "a.otimpute"], "--save-model is not for --multiple"),
        (["--multiple", "2", "--max-seconds", "5"], "--max-seconds is not for --multiple"),
        (["--multiple", "2", "--jobs", "0"], "--jobs must be a whole number >= 1"),
    ],
)
def test_wrong_options_are_refused_in_one_line(invoke: Any, table: Path, options: list[str], problem: str) -> None:
    exclude = [] if "--exclude" in options else ["--exclude", "id"]
    result = invoke("impute", table, "-o", "long.csv", *options, *exclude, code=1)
    assert problem in result.stderr and result.stderr.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["in.csv"]


def test_tables_that_cannot_be_imputed_several_times_are_refused(invoke: Any) -> None:
    Path("full.csv").write_text("a,b\n" + "\n".join(f"{k},{k * k}" for k in range(20)))
    assert "nothing is missing, so all tables would be the same" in invoke(
        "impute", "full.csv", "-o", "long.csv", "--multiple", 2, code=1
    ).stderr  # fmt: skip
    Path("names.csv").write_text(
        "name,b\n" + "\n".join(f"{'' if k == 3 else f'person {k}'},{k if k % 4 else ''}" for k in range(90))
    )
    assert "column 'name' has missing values that cannot be imputed" in (
        said := invoke("impute", "names.csv", "-o", "long.csv", "--multiple", 2, code=1).stderr
    )
    assert "or pass --exclude name" in said
    Path("taken.csv").write_text(".imp,b\n" + "\n".join(f"{k},{k if k % 4 else ''}" for k in range(20)))
    assert "a column '.imp', which the long format adds; rename it" in invoke(
        "impute", "taken.csv", "-o", "long.csv", "--multiple", 2, code=1
    ).stderr  # fmt: skip
    invoke("impute", "taken.csv", "-o", "out-{}.csv", "--multiple", 2)


@cache
def why_no_mice() -> str:
    if shutil.which("Rscript") is None:
        return "Rscript is not installed"
    loads = subprocess.run(["Rscript", "-e", "library(mice)"], capture_output=True, check=False).returncode == 0
    return "" if loads else "the R package mice is not installed"


def test_mice_reads_the_long_file_and_pools_it_alike(invoke: Any) -> None:
    if why_no_mice():
        pytest.skip(why_no_mice())
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "group": rng.choice(["a", "b"], 80)})
    frame["y"] = frame["x"] + rng.normal(size=80)
    for name in frame.columns:
        frame.loc[rng.random(80) < 0.2, name] = None
    frame.to_csv("in.csv", index=False)
    invoke("impute", "in.csv", "-o", "long.csv", "--multiple", 5)
    script = """
        suppressMessages(library(mice))
        long <- read.csv("long.csv", na.strings = c("NA", ""), stringsAsFactors = TRUE)
        imputed <- as.mids(long)
        stopifnot(imputed$m == 5, sum(is.na(imputed$data)) == sum(imputed$nmis))
        pooled <- summary(pool(with(imputed, lm(y ~ x))))
        cat(sprintf("%.10g", c(pooled$estimate, pooled$std.error, pooled$df)), sum(imputed$nmis))
    """
    run = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    *numbers, n_missing = map(float, run.stdout.split())
    assert n_missing == frame.isna().sum().sum()
    long = pd.read_csv("long.csv")
    estimates, covariances = [], []
    for _, one in long[long[".imp"] > 0].groupby(".imp"):
        inputs = np.column_stack([np.ones(80), one["x"]])
        inverse = np.linalg.inv(inputs.T @ inputs)
        slopes = inverse @ inputs.T @ one["y"].to_numpy()
        estimates.append(slopes)
        covariances.append(inverse * ((one["y"] - inputs @ slopes) ** 2).sum() / 78)
    pooled = pool_estimates(estimates, covariances, df_complete=78)
    np.testing.assert_allclose(numbers, np.concatenate([pooled.estimate, pooled.std_error, pooled.df]), rtol=1e-6)
