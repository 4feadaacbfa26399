"""Several completed tables: what they have in common, how they differ, and that pooled intervals contain the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import otimpute
from otimpute import AutoImputer, MultipleImputer, SinkhornImputer
from otimpute.baselines import ChainedImputer, GaussianEMImputer, GaussianMixtureImputer, MeanImputer
from otimpute.exceptions import StoredFileError

BASES = [None, GaussianEMImputer(), GaussianMixtureImputer(n_components=2, max_iter=3), SinkhornImputer(max_steps=20)]


def people(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """A mixed table with missing values and an index of its own."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    table = pd.DataFrame(
        {
            "age": pd.array(age, dtype="Int64"),
            "income": np.exp(7 + 0.02 * age + 0.3 * rng.normal(size=n)),
            "job": np.where(rng.random(n) < age / 100, "clerk", "nurse"),
            "member": pd.array(rng.random(n) < 0.4, dtype="boolean"),
        },
        index=[f"p{k}" for k in range(n)],
    )
    return table.mask(np.random.default_rng(seed + 1).random(table.shape) < 0.25)


@pytest.fixture(scope="module")
def fitted() -> MultipleImputer:
    return MultipleImputer(m=3, random_state=0).fit(people())


def test_tables_are_as_many_as_asked_for_and_of_the_kind_that_was_given(fitted: MultipleImputer) -> None:
    assert len(fitted.tables_) == 3
    for table in fitted.tables_:
        pd.testing.assert_index_equal(table.index, people().index)
        assert (table.dtypes == people().dtypes).all() and not table.isna().any().any()
    for other, kind in ((pl.from_pandas(people()), pl.DataFrame), (pa.Table.from_pandas(people()), pa.Table)):
        assert isinstance(MultipleImputer(m=2, random_state=0).fit(other).tables_[0], kind)


def test_observed_values_are_untouched_and_draws_differ(fitted: MultipleImputer) -> None:
    given = people()
    first, second = fitted.tables_[0], fitted.tables_[1]
    for name in given:
        seen = given[name].notna()
        assert (first.loc[seen, name] == given.loc[seen, name]).all()
        assert (first.loc[~seen, name] != second.loc[~seen, name]).any()


def test_any_table_can_be_had_by_its_number(fitted: MultipleImputer) -> None:
    every = list(fitted.tables_)
    pd.testing.assert_frame_equal(fitted.tables_[-1], every[2])
    pd.testing.assert_frame_equal(fitted.tables_[1:][0], every[1])
    with pytest.raises(IndexError, match="3 tables, 0 to 2, got 3"):
        fitted.tables_[3]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_same_seed_same_tables_whatever_the_number_of_workers(base: Any) -> None:
    X = people()[["age", "income"]]
    one = MultipleImputer(base, m=3, random_state=4).fit(X)
    two = MultipleImputer(base, m=3, random_state=4, n_jobs=2).fit(X)
    for first, second in zip(one.tables_, two.tables_, strict=True):
        pd.testing.assert_frame_equal(first, second)
    other = MultipleImputer(base, m=3, random_state=5).fit(X)
    assert not other.tables_[0].equals(one.tables_[0])


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_a_file_keeps_tables_and_models(base: Any, tmp_path: Path) -> None:
    X, new = people()[["age", "income"]], people(20, seed=7)[["age", "income"]]
    imputer = MultipleImputer(base, m=2, random_state=0).fit(X)
    imputer.save(tmp_path / "m.otimpute")
    loaded = otimpute.load(tmp_path / "m.otimpute")
    for k in range(2):
        pd.testing.assert_frame_equal(loaded.complete(X)[k], imputer.tables_[k])
        pd.testing.assert_frame_equal(loaded.transform(new)[k], imputer.transform(new)[k])
    with pytest.raises(AttributeError, match=r"call complete\(X\) with the table that was fitted"):
        _ = loaded.tables_
    with pytest.raises(ValueError, match="not the table that was fitted"):
        loaded.complete(new)


def test_a_file_with_other_cells_than_its_table_is_refused(tmp_path: Path) -> None:
    imputer = MultipleImputer(m=2, random_state=0).fit(people())
    imputer._cells = imputer._cells[:1]
    with pytest.raises(StoredFileError, match="do not go together"):
        imputer.save(tmp_path / "m.otimpute")
        otimpute.load(tmp_path / "m.otimpute")


def test_new_rows_are_completed_as_often_and_each_row_alone(fitted: MultipleImputer) -> None:
    new = people(30, seed=5)
    together = fitted.transform(new)
    assert len(together) == 3
    for table, alone in zip(together, fitted.transform(new.iloc[3:4]), strict=True):
        assert not table.isna().any().any()
        pd.testing.assert_frame_equal(table.iloc[3:4], alone)


@pytest.mark.parametrize("convert", [lambda x: x, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_the_long_format_is_that_of_mice(convert: Any) -> None:
    tables = MultipleImputer(m=2, random_state=0).fit(convert(people())).tables_
    for original in (False, True):
        long = tables.long(include_original=original)
        frame = long if isinstance(long, pd.DataFrame) else long.to_pandas()
        numbers = [0, 1, 2] if original else [1, 2]
        assert list(frame.columns[:2]) == [".imp", ".id"]
        assert frame[".imp"].tolist() == np.repeat(numbers, 120).tolist()
        assert frame[".id"].tolist() == list(range(1, 121)) * len(numbers)
        assert frame["job"].isna().any() == original


def test_the_long_format_of_arrays_has_two_columns_in_front() -> None:
    X = people()[["age", "income"]].to_numpy(dtype=float, na_value=np.nan)
    long = MultipleImputer(m=2, random_state=0).fit(X).tables_.long()
    assert long.shape == (240, 4) and long[:, 0].tolist() == [1.0] * 120 + [2.0] * 120


def test_bounds_hold_and_nothing_piles_up_at_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    share = 1 / (1 + np.exp(-2 * x - rng.normal(size=600)))
    X = pd.DataFrame({"x": x, "share": share})
    missing = rng.random(600) < 0.4
    X.loc[missing, "share"] = np.nan
    drawn = np.concatenate([t["share"][missing] for t in MultipleImputer(m=5, random_state=0).fit(X).tables_])
    assert drawn.min() >= 0 and drawn.max() <= 1
    for edge in (0, 1):
        near = np.mean(np.abs(drawn - edge) < 0.01)
        assert near < 2 * np.mean(np.abs(share[missing] - edge) < 0.01) + 0.01


def test_classes_are_drawn_as_often_as_they_occur() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    rare = rng.random(2000) < 0.15 / (1 + np.exp(-x))  # 7 % of all, and never the most likely class of a row
    X = pd.DataFrame({"x": x, "group": np.where(rare, "rare", "usual")})
    missing = rng.random(2000) < 0.5
    X.loc[missing, "group"] = None
    share = np.mean([(t["group"][missing] == "rare").mean() for t in MultipleImputer(m=10, random_state=0).fit(X).tables_])
    error = np.sqrt(rare.mean() * (1 - rare.mean()) / (~missing).sum())
    assert abs(share - rare[missing].mean()) < 3 * error


@pytest.mark.parametrize("curved", [False, True])
def test_pooled_intervals_contain_the_truth(curved: bool) -> None:
    """Sixty tables, missing where the first column is large; of intervals of 95 %, at most nine may fail (1 in 2000)."""
    missed = np.zeros(2)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=150)
        y = (x**2 if curved else 0.7 * x) + rng.normal(size=150)
        missing = rng.random(150) < 1 / (1 + np.exp(-1.5 * x))
        X = np.column_stack([x, np.where(missing, np.nan, y)])

        def analyse(table: np.ndarray) -> tuple[list[float], list[list[float]]]:
            inputs = np.column_stack([np.ones(150), table[:, 0] ** 2 if curved else table[:, 0]])
            inverse = np.linalg.inv(inputs.T @ inputs)
            found = inverse @ inputs.T @ table[:, 1]
            residuals = table[:, 1] - inputs @ found
            return found.tolist(), (inverse * (residuals @ residuals) / 148).tolist()

        pooled = otimpute.pool(MultipleImputer(m=5, random_state=seed).fit(X), analyse, df_complete=148)
        truth = np.array([0.0, 1.0 if curved else 0.7])
        missed += (truth < pooled.low) | (truth > pooled.high)
    assert (missed <= 9).all()


def test_errors_say_what_to_do() -> None:
    X = people()
    with pytest.raises(ValueError, match=r"m must be.* >= 2.*got 1.*20 is a good number"):
        MultipleImputer(m=1).fit(X)
    for wrong in (MeanImputer(), AutoImputer(), "mice"):
        with pytest.raises(TypeError, match=r"imputer must be None for the default, or one of ChainedImputer\(\)"):
            MultipleImputer(wrong).fit(X)
    with pytest.raises(ValueError, match=r"no missing values.*analyse it as it is"):
        MultipleImputer().fit(X.dropna())
    with pytest.raises(ValueError, match=r"column 'empty' has no observed value.*drop it"):
        MultipleImputer().fit(X.assign(empty=np.nan))
    texts = [None if k == 3 else f"text {k}" for k in range(len(X))]
    with pytest.raises(ValueError, match=r"column 'note' has missing values that cannot be imputed.*drop it"):
        MultipleImputer().fit(X.assign(note=texts))
    with pytest.raises(ValueError, match=r"delta needs the default imputer.*got GaussianEMImputer"):
        MultipleImputer(GaussianEMImputer(), delta={"age": 1}).fit(X)
    with pytest.raises(NotFittedError):
        _ = MultipleImputer().tables_
    assert isinstance(MultipleImputer(ChainedImputer(n_rounds=1), m=2, random_state=0).fit(X).tables_[0], pd.DataFrame)
