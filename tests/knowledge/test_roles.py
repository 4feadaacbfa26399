"""Which columns are imputed, informed and left alone: as said, as found, and what is said of mistakes."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector

from otimpute import AutoImputer, MultipleImputer, SinkhornImputer
from otimpute.baselines import ChainedImputer, GaussianEMImputer, KNNImputer, MeanImputer
from otimpute.exceptions import OtimputeWarning
from otimpute.fitting import BlockModel
from otimpute.knowledge import identifiers_among

N = 60


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    columns = {"age": x, "income": x + rng.normal(size=N), "job": rng.choice(["cook", "smith"], N), "tax": 2 * x}
    return pd.DataFrame(columns).astype({"job": object}).mask(rng.random((N, 4)) < 0.2)


def filled(imputer: Any, X: pd.DataFrame) -> list[str]:
    completed = imputer.fit_transform(X)
    return [name for name in X if X[name].isna().any() and completed[name].notna().all()]


@pytest.mark.parametrize(
    "columns",
    [
        ["age", "income", "tax"],
        ("tax", "age", "income"),
        pd.Index(["age", "income", "tax"]),
        lambda frame: frame.select_dtypes("number").columns,
        lambda frame: frame.dtypes.ne(object),
        make_column_selector(dtype_include="number"),
        ncs.numeric(),
        [True, True, False, True],
    ],
    ids=["list", "tuple", "index", "names from the frame", "booleans from the frame", "scikit-learn", "narwhals", "booleans"],
)
def test_columns_can_be_chosen_in_many_ways(columns: Any) -> None:
    assert filled(MeanImputer(columns=columns), table()) == ["age", "income", "tax"]
    left = {"exclude": columns, "columns": None}
    assert filled(MeanImputer(**left), table()) == ["job"]


def test_polars_has_selectors_of_its_own() -> None:
    import polars.selectors as cs

    X = pl.from_pandas(table())
    completed = MeanImputer(columns=cs.numeric()).fit_transform(X)
    assert completed["job"].equals(X["job"]) and completed["age"].null_count() == 0


def test_a_selector_gives_way_to_exclude() -> None:
    assert filled(MeanImputer(columns=ncs.numeric(), exclude="tax"), table()) == ["age", "income"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"columns": ["incme"]}, "made of columns of X, got 'incme'; did you mean 'income'"),
        ({"columns": [7]}, "got 7; there are age, income"),
        ({"columns": []}, "at least one column"),
        ({"columns": [True, False]}, "one boolean for each of the 4 columns"),
        ({"columns": 3.5}, "a list of columns"),
        ({"columns": ["age"], "exclude": ["age"]}, "not in columns too, got 'age'"),
        ({"exclude": ["age", "income", "job", "tax"]}, "not all"),
        ({"identifiers": "ignore"}, "identifiers must be one of"),
        ({"predictors": {"incme": ["age"]}}, "did you mean 'income'"),
        ({"predictors": {"income": ["aje"]}}, "predictors of 'income' must be made of columns of X, got 'aje'"),
        ({"predictors": {"income": []}}, "some column is left"),
        ({"predictors": {"income": ["income"]}}, "some column is left"),
        ({"predictors": {"income": {"not": ["age", "job", "tax"]}}}, "some column is left"),
        ({"predictors": {"income": {"only": ["age"]}}}, "a list of columns, or"),
        ({"predictors": {"income": ["tax"]}, "exclude": "tax"}, "seen by imputers, got 'tax'"),
        ({"predictors": "all"}, '"auto", got'),
        ({"predictors": {"not": ["age", "income", "job", "tax"]}}, "every imputed column has one, got \"nothing for 'age'"),
        ({"predictors": pd.DataFrame(np.ones((3, 4)), columns=list("abcd"))}, "a row for each of the 4 columns"),
        (
            {"predictors": pd.DataFrame(np.full((4, 4), 2), columns=["age", "income", "job", "tax"])},
            "a frame of booleans, or of 0 and 1",
        ),
        ({"applicable": {"income": "job = 'cook'"}}, "=="),
        ({"applicable": {"income": "age + 1"}}, "is no condition but holds numbers"),
        ({"applicable": {"income": "income > 1"}}, "a condition on other columns"),
        ({"applicable": {"incme": "age > 1"}}, "did you mean 'income'"),
        ({"applicable": {"income": "agee > 1"}}, "did you mean 'age'"),
        ({"applicable": {"income": [True, False]}}, "a boolean for each of the 60 rows"),
        ({"applicable": np.ones((N, 3), dtype=bool)}, r"of shape \(60, 4\), as X"),
        ({"applicable": "sex == 'f'"}, "a dict such as"),
        ({"derive": {"tax": "age * 2"}, "exclude": ["tax"]}, "made of columns that derive does not name"),
    ],
)
def test_mistakes_are_named(said: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        GaussianEMImputer(**said).fit(table())


def test_a_column_called_not_needs_a_frame() -> None:
    X = table().rename(columns={"tax": "not"})
    with pytest.raises(ValueError, match="a column has that name"):
        MeanImputer(predictors={"not": ["age"]}).fit(X)


def test_predictors_are_read_as_mice_writes_them() -> None:
    X = table()
    matrix = pd.DataFrame(1 - np.eye(4, dtype=int), index=X.columns, columns=X.columns)
    matrix.loc["income", ["tax", "job"]] = 0
    by_frame = GaussianEMImputer(predictors=matrix).fit_transform(X)
    by_name = GaussianEMImputer(predictors={"income": ["age"]}).fit_transform(X)
    pd.testing.assert_frame_equal(by_frame, by_name)
    everybody = GaussianEMImputer(predictors=pd.DataFrame(np.ones((4, 4), dtype=bool), columns=X.columns)).fit(X)
    assert not isinstance(everybody.model_, BlockModel)


def test_a_complete_column_needs_no_predictors_in_a_frame() -> None:
    X = table()
    X["age"] = np.arange(N) % 7.0
    matrix = pd.DataFrame(1, index=X.columns, columns=X.columns)
    matrix.loc["age"] = 0
    assert GaussianEMImputer(predictors=matrix).fit_transform(X).notna().all(axis=None)


def test_a_column_is_imputed_as_if_its_predictors_were_the_whole_table() -> None:
    X = table().drop(columns="job")
    limited = GaussianEMImputer(predictors={"income": ["age"]}, columns=["income"]).fit_transform(X)
    alone = GaussianEMImputer().fit_transform(X[["age", "income"]])
    np.testing.assert_allclose(limited["income"], alone["income"])


def test_a_single_predictor_says_what_the_mean_does_not() -> None:
    X = table()
    error = {}
    for name, predictors in {"tax": {"age": ["tax"]}, "job": {"age": ["job"]}}.items():
        completed = GaussianEMImputer(predictors=predictors).fit_transform(X)
        both = X["age"].isna() & X["tax"].notna()
        error[name] = float((completed["age"] - X["tax"] / 2)[both].abs().mean())
    assert error["tax"] < 0.1 * error["job"]


def test_draws_know_what_was_drawn_before_them() -> None:
    """Where both are missing, the outcome goes together with the predictor that it is drawn from."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = pd.DataFrame({"x": x, "z": rng.normal(size=400), "outcome": 3 * x + 0.1 * rng.normal(size=400)})
    X.loc[:150, ["x", "outcome"]] = np.nan
    imputer = MultipleImputer(GaussianEMImputer(predictors={"not": ["outcome"]}), m=2, random_state=0)
    for completed in imputer.fit_transform(X):
        assert np.corrcoef(completed["x"][:150], completed["outcome"][:150])[0, 1] > 0.95


@pytest.mark.parametrize("inner", [ChainedImputer(predictors={"not": ["tax"]}, columns=["age", "income"]), None])
def test_several_tables_are_made_of_the_columns_asked_for(inner: Any) -> None:
    X = table()
    imputer = MultipleImputer(inner or ChainedImputer(columns=["age"], exclude=["job"]), m=2, random_state=0).fit(X)
    for completed in imputer.tables_:
        assert completed["age"].notna().all()
        pd.testing.assert_frame_equal(completed[["job", "tax"]], X[["job", "tax"]])
    assert len(imputer.diagnostics().columns) == (2 if inner else 1)


def test_new_options_survive_cloning() -> None:
    said = {"columns": ["age"], "exclude": "job", "predictors": {"age": ["tax"]}, "identifiers": "use"}
    imputer = clone(AutoImputer(**said))
    assert {name: imputer.get_params()[name] for name in said} == said


def test_what_cannot_make_several_fits_says_so(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="checkpoint must be None where predictors"):
        SinkhornImputer(checkpoint=tmp_path / "c", predictors={"age": ["tax"]}, max_steps=2).fit(table())


# Identifiers


def rows(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=N).round(3), **columns})


rng = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("id", rng.permutation(10_000)[:N]),
        ("customer_id", range(500, 500 + 7 * N, 7)),
        ("orderId", range(N)),
        ("Unnamed: 0", range(N)),
        ("nr", range(1, N + 1)),
        ("code", [f"C{k:05d}" for k in range(N)]),
        ("session", [f"{k * 7919:016x}" for k in range(1, N + 1)]),
        ("who", [f"123e4567-e89b-12d3-a456-{k:012x}" for k in range(N)]),
    ],
)
def test_what_names_rows_is_an_identifier(name: str, cells: Any) -> None:
    assert identifiers_among(nw.from_native(rows(**{name: list(cells)}))).tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("year", range(1960, 1960 + N)),
        ("time", range(N)),
        ("day", range(1, N + 1)),
        ("income", rng.permutation(90_000)[:N]),
        ("population", rng.permutation(9_000_000)[:N]),
        ("id", [k // 2 for k in range(N)]),  # of groups
        ("id", np.linspace(0, 1, N)),  # no whole numbers
        ("count", rng.poisson(20, N)),
        ("date", [str(day.date()) for day in pd.date_range("2024-01-01", periods=N)]),
        ("name", [f"person {k}" for k in range(N)]),
        ("paid", rng.permutation(9_000)[:N]),
        ("rank", range(1, N + 1)),
    ],
)
def test_what_describes_rows_is_no_identifier(name: str, cells: Any) -> None:
    assert not identifiers_among(nw.from_native(rows(**{name: list(cells)}))).any()


def test_a_row_number_that_others_follow_is_no_identifier() -> None:
    rising = pd.DataFrame({"n": range(N), "height": np.arange(N) + np.random.default_rng(0).normal(size=N)})
    assert not identifiers_among(nw.from_native(rising)).any()


def test_small_tables_have_no_identifiers() -> None:
    assert not identifiers_among(nw.from_native(rows(id=range(N))[:19])).any()


def test_an_identifier_is_set_aside_and_named() -> None:
    X = table().assign(person_id=np.arange(N) * 3)
    imputer = AutoImputer(["gaussian_em"], n_splits=1, random_state=0)
    with pytest.warns(OtimputeWarning, match="looks like an identifier: person_id"):
        completed = imputer.fit_transform(X)
    assert completed["person_id"].equals(X["person_id"])
    assert imputer.column_kinds_["person_id"] == "identifier"
    assert "Set aside as identifiers: person_id." in imputer.verdict_ and imputer.judgement_.set_aside == ["person_id"]
    without = AutoImputer(["gaussian_em"], n_splits=1, random_state=0).fit_transform(X.drop(columns="person_id"))
    pd.testing.assert_frame_equal(completed[without.columns], without)


@pytest.mark.parametrize(
    "said",
    [
        {"identifiers": "use"},
        {"columns": ["age", "person_id"]},
        {"predictors": {"age": ["person_id", "tax"]}},
        {"constraints": {"person_id": {"non_negative": True}}},
        {"exclude": ["person_id"]},
        {"time": "person_id"},
    ],
)
def test_an_identifier_that_somebody_names_is_no_surprise(said: dict[str, Any]) -> None:
    imputer = KNNImputer(**said).fit(table().assign(person_id=np.arange(N) * 3))
    assert imputer.column_kinds_["person_id"].startswith("excluded" if "exclude" in said else "integer")


def test_arrays_have_no_identifiers() -> None:
    X = np.column_stack([np.arange(N), np.random.default_rng(0).normal(size=N)])
    X[:5, 1] = np.nan
    assert MeanImputer().fit(X).column_kinds_["0"].startswith("whole number")


# Wide tables


def wide(d: int = 120, n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Twenty factors, each behind six columns."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, d // 6))
    values = np.repeat(factors, 6, axis=1) + 0.3 * rng.normal(size=(n, d))
    return pd.DataFrame(values, columns=[f"c{k}" for k in rng.permutation(d)])


def test_wide_tables_are_imputed_from_what_is_informative() -> None:
    complete = wide()
    X = complete.mask(np.random.default_rng(1).random(complete.shape) < 0.15)
    imputer = GaussianEMImputer(predictors="auto").fit(X)
    assert isinstance(imputer.model_, BlockModel)
    assert max(len(block.columns) for block in imputer.model_.blocks) <= 48
    matrix = imputer.training_table_.roles.predictors
    same = np.abs(complete.corr().to_numpy()) > 0.5
    np.fill_diagonal(same, False)
    assert matrix[same].mean() > 0.98  # the five others of a factor are nearly always there
    errors = [
        float(((each.transform(X) - complete)[X.isna()] ** 2).stack().mean()) for each in (imputer, GaussianEMImputer().fit(X))
    ]
    assert errors[0] < 1.05 * errors[1]


def test_narrow_tables_are_not_limited() -> None:
    assert not isinstance(GaussianEMImputer(predictors="auto").fit(table()).model_, BlockModel)


def test_not_applicable_cells_stay_empty_where_only_completing_tells() -> None:
    X = pd.DataFrame({"has_car": [True, None, False] * 20, "seats": [4.0, np.nan, np.nan] * 20, "age": np.arange(60) % 7.0})
    X.loc[::3, "has_car"] = True
    completed = MeanImputer(applicable={"seats": "has_car"}).fit_transform(X)
    assert completed["seats"].isna().tolist() == [not bool(each) for each in completed["has_car"]]


def test_what_is_observed_where_it_does_not_apply_is_kept_and_named() -> None:
    X = table()
    with pytest.warns(OtimputeWarning, match=r"'tax' has \d+ observed values where it does not apply \(job == 'cook'\)"):
        completed = MeanImputer(applicable={"tax": "job == 'cook'"}).fit_transform(X)
    known = X["tax"].notna()
    assert completed["tax"][known].equals(X["tax"][known])


def test_a_table_of_what_applies_is_about_the_rows_of_the_fit() -> None:
    X = table()
    applies = pd.DataFrame({"tax": X["tax"].notna() | (np.arange(N) < 30)})
    imputer = GaussianEMImputer(applicable=applies).fit(X)
    completed = imputer.transform(X)
    assert (completed["tax"].isna() == (X["tax"].isna() & (np.arange(N) >= 30))).all()
    with pytest.raises(ValueError, match="about the rows of the fit"):
        imputer.transform(X[:10])
