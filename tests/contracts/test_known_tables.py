"""What people know of their table holds for every imputer: what is imputed, from what, and what holds between columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import otimpute
from every_imputer import IMPUTERS, TORCH, Make

N = 90


def people(seed: int = 0) -> pd.DataFrame:
    """Numbers and a category that say much about each other, and an outcome that says all."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    return pd.DataFrame(
        {
            "income": x + 0.3 * rng.normal(size=N),
            "age": x + 0.5 * rng.normal(size=N),
            "job": np.where(x + 0.5 * rng.normal(size=N) > 0, "cook", "smith"),
            "outcome": 2.0 * x,
        }
    )


def with_holes(table: pd.DataFrame, seed: int = 1, rate: float = 0.2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return table.astype({"job": object} if "job" in table else {}).mask(rng.random(table.shape) < rate)


def other_values(table: pd.DataFrame, name: str, seed: int = 5) -> pd.DataFrame:
    """The same table with other values where one column has some."""
    changed = table.copy()
    known = changed[name].notna()
    changed.loc[known, name] = np.random.default_rng(seed).normal(size=known.sum()) * 3
    return changed


@pytest.fixture(params=[name for name in IMPUTERS if not name.endswith("-cuda")])
def make(request: pytest.FixtureRequest) -> Make:
    return IMPUTERS[request.param]


def test_only_the_columns_asked_for_are_imputed(make: Make) -> None:
    X = with_holes(people())
    imputer = make(columns=["income", "job"], exclude=["age"], add_indicator=True)
    for completed in (imputer.fit_transform(X), imputer.transform(X[:30])):
        part = X[: len(completed)]
        assert completed[["income", "job"]].notna().all(axis=None)
        pd.testing.assert_frame_equal(completed[["age", "outcome"]], part[["age", "outcome"]])
        known = part["income"].notna()
        assert (completed["income"][known] == part["income"][known]).all()
        assert [name for name in completed if name.startswith("missing")] == [
            "missingindicator_income",
            "missingindicator_job",
        ]
    assert imputer.training_table_.n_missing[[1, 3]].sum() == 0


def test_what_an_excluded_column_holds_changes_nothing(make: Make) -> None:
    X = with_holes(people())
    first, second = (make(exclude="outcome").fit_transform(each) for each in (X, other_values(X, "outcome")))
    pd.testing.assert_frame_equal(first.drop(columns="outcome"), second.drop(columns="outcome"))


def test_what_a_forbidden_predictor_holds_changes_no_cell_of_its_target(make: Make) -> None:
    X = with_holes(people())
    changed = other_values(X, "outcome")
    said = {"predictors": {"not": ["outcome"], "income": ["age"]}}
    imputer = make(**said)
    first, second = imputer.fit_transform(X), make(**said).fit_transform(changed)
    numbers = ["income", "age"]
    pd.testing.assert_frame_equal(first[numbers], second[numbers])
    names = ["income", "age", "job"]
    pd.testing.assert_frame_equal(imputer.transform(X[:30])[names], imputer.transform(changed[:30])[names])
    jobs = X.assign(job=X["job"].map({"cook": "smith", "smith": "cook"}))
    assert imputer.transform(X[:30])["income"].equals(imputer.transform(jobs[:30])["income"])


def test_a_file_holds_what_was_known(make: Make, name_of: str, tmp_path: Path) -> None:
    X = with_holes(people())
    imputer = make(columns=lambda table: [name for name in table if name != "outcome"], predictors={"not": ["outcome"]}).fit(X)
    if name_of == "round-robin-torch":
        with pytest.raises(TypeError, match="pickle the fitted imputer"):
            imputer.save(tmp_path / "imputer")
        return
    imputer.save(tmp_path / "imputer")
    loaded = otimpute.load(tmp_path / "imputer")
    assert loaded.columns == ["income", "age", "job"]
    pd.testing.assert_frame_equal(loaded.transform(X[:30]), imputer.transform(X[:30]))


def test_rows_of_new_tables_are_treated_alone(make: Make) -> None:
    X = with_holes(people())
    imputer = make(predictors={"income": ["age", "job"]}, columns=["income", "job"]).fit(X)
    together, alone = imputer.transform(X[:20]), pd.concat([imputer.transform(X[k : k + 1]) for k in range(20)])
    pd.testing.assert_frame_equal(together, alone, rtol=1e-6)


def test_arrays_have_their_columns_by_position(make: Make) -> None:
    X = with_holes(people()).drop(columns="job").to_numpy(dtype=float)
    completed = make(columns=[0], exclude=[1], predictors={0: [2]}).fit_transform(X)
    assert not np.isnan(completed[:, 0]).any()
    np.testing.assert_array_equal(completed[:, 1:], X[:, 1:])


def births(frame: Any = pd.DataFrame) -> Any:
    """Births, which only women have, and parts of a total; some of all are missing."""
    rng = np.random.default_rng(2)
    sex = rng.choice(["f", "m"], N)
    age = rng.normal(40, 10, N).round(1)
    n_births = np.where(sex == "f", np.clip((age - 20) / 10, 0, None).round(1), np.nan)
    part, rest = rng.normal(10, 2, N).round(2), rng.normal(20, 3, N).round(2)
    columns = {"sex": sex, "age": age, "births": n_births, "part": part, "rest": rest, "total": part + rest}
    table = pd.DataFrame(columns)
    hidden = rng.random(table.shape) < 0.2
    hidden[:, 2] &= sex == "f"
    table = table.astype({"sex": object}).mask(hidden)
    rows = {name: [None if pd.isna(value) else value for value in table[name]] for name in table}
    return frame(rows)


RULES: dict[str, Any] = {"applicable": {"births": "sex == 'f'"}, "derive": ["total = part + rest", "part <= rest"]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_rules_hold_in_every_imputed_cell(make: Make, name_of: str, frame: Any) -> None:
    if frame is not pd.DataFrame and name_of not in ("mean", "gaussian-em", "chained"):
        pytest.skip("what differs between frames is the same for all imputers")
    X = births(frame)
    imputer = make(**RULES)
    before = births()
    for completed in (imputer.fit_transform(X), imputer.transform(X)):
        done = completed if frame is pd.DataFrame else completed.to_pandas()
        assert type(completed) is type(X)
        missing = before["births"].isna()
        assert (done["births"].isna() == (done["sex"] == "m"))[missing].all()
        np.testing.assert_allclose(done["part"] + done["rest"], done["total"], atol=0.0051)
        assert (done["part"] <= done["rest"]).all()
        assert done[["age", "part", "rest", "total"]].notna().all(axis=None)
        for name in before:
            known = before[name].notna()
            assert (done[name][known] == before[name][known]).all()


def test_not_applicable_cells_count_as_missing_nowhere(make: Make) -> None:
    X = births()
    imputer = make(**RULES, add_indicator=True)
    completed = imputer.fit_transform(X)
    women_or_unknown = X["sex"] != "m"
    assert imputer.training_table_.n_missing[2] == (X["births"].isna() & women_or_unknown).sum()
    assert not completed["missingindicator_births"][(X["sex"] == "m")].any()
    assert completed["missingindicator_total"].to_numpy().tolist() == X["total"].isna().tolist()


def test_rules_are_kept_in_files(make: Make, name_of: str, tmp_path: Path) -> None:
    if name_of in TORCH or name_of.startswith("round-robin"):
        pytest.skip("nothing of this is in their models")
    X = births()
    imputer = make(**RULES).fit(X)
    imputer.save(tmp_path / "imputer")
    pd.testing.assert_frame_equal(otimpute.load(tmp_path / "imputer").transform(X), imputer.transform(X))
