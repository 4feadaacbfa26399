"""What a report says is true of the table and the imputer, and neither is changed."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer

from every_imputer import IMPUTERS, Make
from otimpute import AutoImputer, SinkhornImputer
from otimpute.baselines import GaussianEMImputer, KNNImputer, MeanImputer
from otimpute.exceptions import OtimputeWarning
from otimpute.reporting import ReportData, collect
from otimpute.reporting.render import render

pytestmark = pytest.mark.filterwarnings("ignore::otimpute.exceptions.OtimputeWarning")


def em() -> GaussianEMImputer:
    return GaussianEMImputer()


@pytest.fixture(scope="module")
def said(flats: pd.DataFrame) -> ReportData:
    """About flats whose holes a linear method has filled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtimputeWarning)
        imputer = em()
        return collect(imputer, flats, imputer.fit_transform(flats), source="flats.csv")


def column(said: ReportData, name: str) -> Any:
    return next(each for each in said.columns if each.name == name)


def light(said: ReportData, key: str) -> Any:
    return next(each for each in said.verdict if each.key == key)


def test_holes_are_counted_by_column(flats: pd.DataFrame, said: ReportData) -> None:
    assert {each.name: each.n_missing for each in said.missingness.columns} == flats.isna().sum().to_dict()
    assert said.table.n_missing == int(flats.isna().sum().sum())
    assert said.table.n_incomplete_rows == int(flats.isna().any(axis=1).sum())


def test_patterns_are_the_most_frequent_ones(flats: pd.DataFrame, said: ReportData) -> None:
    patterns = said.missingness.patterns
    shown = flats[patterns.columns].isna()
    expected = shown.value_counts()
    assert patterns.n_patterns == len(expected)
    assert [each.n_rows for each in patterns.rows] == expected.tolist()[: len(patterns.rows)]
    for each in patterns.rows:
        bits = tuple(k in each.missing for k in range(len(patterns.columns)))
        assert expected[bits] == each.n_rows


def test_the_matrix_has_the_share_of_holes_in_blocks_of_rows(flats: pd.DataFrame, said: ReportData) -> None:
    matrix = said.missingness.matrix
    assert matrix.columns == list(flats.columns)
    ends = [*matrix.first_rows[1:], len(flats) + 1]
    for first, end, shares in zip(matrix.first_rows, ends, matrix.share, strict=True):
        assert shares == pytest.approx(flats.iloc[first - 1 : end - 1].isna().mean().tolist(), abs=1e-3)


def test_columns_that_tell_where_others_are_missing_are_found(said: ReportData) -> None:
    found = {(each.missing, each.column): each for each in said.missingness.predictors.strongest}
    assert "where size is high" in found["rent", "size"].words
    assert "of the rows where district is hills" in found["heating", "district"].words
    assert {name for name, _ in found} == {"rent", "heating"}
    assert light(said, "chance").light == "caution"


def test_columns_of_others_kinds_have_shapes_of_their_own(flats: pd.DataFrame, said: ReportData) -> None:
    kinds = {each.name: each.shape.kind for each in said.columns if each.shape is not None}
    assert kinds == {
        "size": "bins", "rent": "bins", "rooms": "bars", "district": "bars", "heating": "bars", "built": "bins",
        "balcony": "bars", "whole": "bins",
    }  # fmt: skip
    for each in said.columns:
        if each.shape is not None and each.name != "whole":
            assert sum(each.shape.observed) == pytest.approx(1, abs=0.02)
            assert sum(each.shape.imputed) == pytest.approx(1, abs=0.02)
    bars = column(said, "district").shape
    shares = flats["district"].value_counts(normalize=True)
    assert dict(zip(bars.labels, bars.observed, strict=True)) == pytest.approx(shares.to_dict())
    assert column(said, "built").shape.labels[0].startswith("19")


def test_statistics_of_observed_and_imputed_values_stand_side_by_side(flats: pd.DataFrame, said: ReportData) -> None:
    lines = {each.name: each for each in column(said, "rent").statistics}
    assert float(lines["mean"].observed) == pytest.approx(flats["rent"].mean(), rel=1e-2)
    assert float(lines["mean"].imputed) > float(lines["mean"].observed)  # large flats do not tell their rent
    dates = {each.name: each for each in column(said, "built").statistics}
    assert dates["lowest"].observed == str(flats["built"].min().date())


def test_values_are_called_farther_out_only_where_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[::10, 0] = np.nan
    imputer = MeanImputer().fit(X)
    assert column(collect(imputer, X, check=False), "0").shape.n_outside == 0
    X[1:4, 0] = 50.0
    far = collect(MeanImputer().fit(X), X, check=False)
    assert column(far, "0").shape.n_outside == 3
    assert "3 values outside the figure" in render(far)
    assert render(far).count("outside the figure") == 1


def test_what_is_kept_and_what_stays_empty_is_told(said: ReportData) -> None:
    assert all(not each.violations for each in said.columns)
    assert light(said, "kept").light == "caution"  # remarks are left alone
    assert column(said, "remark").n_filled == 0
    assert column(said, "rent").n_filled == column(said, "rent").n_missing


@pytest.mark.parametrize(
    ("name", "where", "value", "what"),
    [
        ("size", "hole", -5.0, "below the lower bound"),
        ("size", "hole", 5000.0, "above the upper bound"),
        ("size", "hole", np.nan, "still missing"),
        ("size", "value", 1.0, "observed but changed"),
        ("district", "value", "harbour", "observed but changed"),
        ("built", "value", pd.Timestamp("2020-01-01"), "observed but changed"),
        ("district", "hole", None, "still missing"),
        ("district", "hole", "atlantis", "not among the categories"),
        ("district", "value", "atlantis", "observed but changed"),
        ("remark", "value", "not what it said", "observed but changed"),
    ],
)
def test_broken_promises_are_found(flats: pd.DataFrame, name: str, where: str, value: Any, what: str) -> None:
    imputer = GaussianEMImputer(constraints={"size": {"bounds": (0, 1000)}})
    X_imputed = imputer.fit_transform(flats)
    assert not any(each.violations for each in collect(imputer, flats, X_imputed, check=False).columns)
    spot = flats[name].isna() if where == "hole" else flats[name].notna() & (flats[name] != value)
    X_imputed.loc[spot[spot].index[:3], name] = value
    said = collect(imputer, flats, X_imputed, check=False)
    assert [(each.what, each.n_cells) for each in column(said, name).violations] == [(what, 3)]
    assert light(said, "kept").light == light(said, "trusted").light == column(said, name).light == "bad"


def test_whole_numbers_that_are_not_whole_are_found() -> None:
    X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0], [4.0, 8.0]] * 5)
    imputer = MeanImputer(constraints={1: {"integer": True}})
    X_imputed = imputer.fit_transform(X)
    X_imputed[1, 1] = 2.5
    (broken,) = column(collect(imputer, X, X_imputed, check=False), "1").violations
    assert (broken.what, broken.n_cells) == ("not an integer", 1)


def test_correlations_are_those_of_rows_that_have_both(flats: pd.DataFrame, said: ReportData) -> None:
    found = said.joint.correlations
    assert found is not None
    numbers = flats.assign(built=flats["built"].astype("datetime64[s]").astype("int64").where(flats["built"].notna()))
    expected = numbers[found.columns].astype(float).corr(min_periods=10).to_numpy()
    assert np.allclose(np.array(found.before, dtype=float), expected, atol=2e-3)


def test_rows_lie_in_the_plane_of_most_variance() -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(size=(300, 1))
    X = np.hstack([t, t, t, 0.1 * rng.normal(size=(300, 1))])
    X[::10, 0] = np.nan
    imputer = em()
    plane = collect(imputer, X, imputer.fit_transform(X), check=False).joint.projection
    assert plane is not None
    assert plane.explained == pytest.approx([0.75, 0.25], abs=0.02)
    assert sum(n > 0 for *_, n in plane.points) == 30
    along = np.array([point[0] for point in plane.points])
    assert abs(np.corrcoef(along, t[:, 0])[0, 1]) > 0.99


def test_values_hidden_from_the_method_tell_whether_it_is_better_than_the_mean(said: ReportData) -> None:
    assert said.check is not None
    scores = {each.method: each for each in said.check.methods}
    assert list(scores) == ["GaussianEMImputer", "column mean", "KNN", "ICE"]
    assert scores["GaussianEMImputer"].error < 0.7 * scores["column mean"].error
    by_name = {each.name: each for each in said.check.columns}
    assert set(by_name) == {"size", "rent", "rooms", "district", "heating", "built", "balcony"}  # those with holes
    assert by_name["rent"].against_mean < 0.5
    assert by_name["heating"].against_mean > 0.9  # tossed coins
    assert by_name["rent"].lead > 5 and by_name["heating"].lead < 2
    assert column(said, "rent").light == "good"
    assert column(said, "heating").light == "caution"
    assert "heating" in light(said, "trusted").answer
    assert by_name["built"].unit == "years"
    assert all(n > 0 for *_, n in by_name["district"].pairs)
    truth, guess = np.array(by_name["rent"].points).T
    assert np.abs(truth - guess).mean() == pytest.approx(by_name["rent"].scores["GaussianEMImputer"], rel=0.3)


def test_the_score_of_the_mean_is_the_mean_distance_from_it() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(5, 2, 1500), rng.normal(size=1500)])
    X[:100, 0] = np.nan
    check = collect(MeanImputer().fit(X), X).check
    assert check is not None
    (only,) = check.columns
    assert only.scores["column mean"] == only.scores["MeanImputer"] == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.15)
    assert only.against_mean == 1


def test_noise_is_told_from_what_can_be_imputed() -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    said = collect(em().fit(X), X)
    assert light(said, "better").light == "bad"
    assert light(said, "better").answer.startswith("No")
    assert light(said, "trusted").light == "caution"
    assert light(said, "chance").light == "unknown"
    assert said.missingness.predictors.strongest == []


def test_draws_are_not_blamed_for_being_draws() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:60, 0] = np.nan
    said = collect(AutoImputer(["gaussian_em"], target="distribution", random_state=0).fit(X), X)
    assert light(said, "better").light == "caution"
    assert "single draws have larger errors" in light(said, "better").answer


def test_the_fit_is_told_in_curves_or_weights(flats: pd.DataFrame) -> None:
    with_curves = collect(SinkhornImputer(random_state=0, validation_fraction=0.1).fit(flats), flats, check=False).training
    names = [each.name for each in with_curves.curves]
    assert names[0] == "divergence between batches" and "mean absolute error on hidden values" in names
    assert all(len(each.steps) == len(each.values) > 3 for each in with_curves.curves)
    assert with_curves.weights is None
    imputer = AutoImputer(["gaussian_em"], random_state=0).fit(flats)
    told = collect(imputer, flats, check=False).training
    assert told.weights is not None
    assert told.weights.experts == ["mean", "gaussian_em"]
    assert np.allclose(np.sum(told.weights.weights, axis=1), 1)
    assert told.words == imputer.verdict_.splitlines()


def test_a_fit_that_was_cut_short_is_doubted() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[X < -1] = np.nan
    said = collect(SinkhornImputer(max_steps=30, tol=0, random_state=0).fit(X), X, check=False)
    assert (said.training.converged, light(said, "converged").light) == (False, "caution")
    assert "not quite settled after 30 steps" in light(said, "converged").answer


@pytest.mark.parametrize("make", IMPUTERS.values(), ids=IMPUTERS)
@pytest.mark.filterwarnings("ignore")
def test_every_imputer_can_be_reported_on_and_keeps_its_promises(make: Make, flats: pd.DataFrame) -> None:
    imputer = make(constraints={"size": {"bounds": (5, 300)}})
    said = collect(imputer, flats, imputer.fit_transform(flats))
    assert not any(each.violations for each in said.columns)
    assert said.check is not None
    json.dumps(said.as_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array"])
def test_all_kinds_of_tables_say_the_same(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    X["c"] += X["a"]
    X = X.mask(rng.random(X.shape) < 0.2)
    tables = {"pandas": X, "polars": pl.from_pandas(X), "pyarrow": pa.Table.from_pandas(X), "array": X.to_numpy()}
    expected, told = (
        collect(em().fit(table), table).as_dict() for table in (tables["pandas"], tables[kind])
    )  # fmt: skip
    if kind == "array":
        assert [each["name"] for each in told["columns"]] == ["0", "1", "2"]
        told["columns"] = [each | {"name": "abc"[int(each["name"])]} for each in told["columns"]]
    assert told["columns"] == expected["columns"]
    assert told["joint"]["projection"] == expected["joint"]["projection"]


def test_nothing_changes_the_imputer_or_the_table(flats: pd.DataFrame, tmp_path: Path) -> None:
    calls: list[Any] = []
    imputer = SinkhornImputer(
        random_state=np.random.default_rng(3), max_steps=60, callbacks=lambda at: calls.append(at) and None
    )
    imputer.fit(flats)
    copy, n_calls, state = flats.copy(), len(calls), imputer.random_state.bit_generator.state
    imputer.set_params(callbacks=None)
    imputer.save(tmp_path / "before")
    parameters = imputer.get_params()
    collect(imputer, flats)
    imputer.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert imputer.get_params() == parameters
    assert imputer.random_state.bit_generator.state == state
    assert len(calls) == n_calls
    pd.testing.assert_frame_equal(flats, copy)


def test_callbacks_are_not_called_by_the_check(flats: pd.DataFrame) -> None:
    calls: list[Any] = []
    imputer = SinkhornImputer(random_state=0, max_steps=60, callbacks=lambda at: calls.append(at) and None).fit(flats)
    n_calls = len(calls)
    collect(imputer, flats)
    assert len(calls) == n_calls > 0


def test_the_same_again_is_the_same(flats: pd.DataFrame) -> None:
    imputer = SinkhornImputer(random_state=0, max_steps=60).fit(flats)
    first, second = (collect(imputer, flats) for _ in range(2))
    day = replace(second.reproduce, date=first.reproduce.date)
    assert replace(second, reproduce=day) == first


def test_a_long_table_is_sampled_and_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    imputer = em().fit(X)
    said = collect(imputer, X, max_rows=500)
    assert said.table.n_missing == int(np.isnan(X).sum())
    assert said.table.n_shown == 500
    assert any("30,000 rows" in note and "sample of 500" in note for note in said.notes)
    assert said.check is not None and said.check.n_rows <= 500


def test_promises_are_checked_in_all_rows_of_a_long_table() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[::10, 0] = np.nan
    imputer = em()
    X_imputed = imputer.fit_transform(X)
    X_imputed[1, 1] += 1
    said = collect(imputer, X, X_imputed, max_rows=10, check=False)
    assert [(each.what, each.n_cells) for each in column(said, "1").violations] == [("observed but changed", 1)]


def test_values_that_were_imputed_for_the_report_are_named_as_such(flats: pd.DataFrame, said: ReportData) -> None:
    assert not said.table.from_transform
    alone = collect(em().fit(flats), flats, check=False)
    assert alone.table.from_transform
    assert any("transform" in note for note in alone.notes)
    assert alone.no_check == light(alone, "better").answer == "It was not requested."


def odd_tables() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    holes = rng.random((40, 3)) < 0.3
    numbers = np.where(holes, np.nan, rng.normal(size=(40, 3)))
    return {
        "no holes": rng.normal(size=(30, 2)),
        "one column": numbers[:, :1],
        "one row": np.array([[1.0, np.nan, 3.0]]),
        "three rows": numbers[:3],
        "a constant column": np.column_stack([numbers, np.full(40, 7.0)]),
        "one value in a column": np.column_stack([numbers, np.r_[1.0, np.full(39, np.nan)]]),
        "an empty column": np.column_stack([numbers, np.full(40, np.nan)]),
        "huge values": numbers * 1e300,
        "tiny values": numbers * 1e-300,
        "categories only": pd.DataFrame({"a": ["x", "y", None, "x"] * 10, "b": ["u", None, "v", "v"] * 10}),
        "one category": pd.DataFrame({"a": ["x", None, "x", "x"] * 10, "b": numbers[:, 0]}),
        "text only": pd.DataFrame({"a": [f"t{k}" if k % 3 else None for k in range(40)], "b": numbers[:, 0]}),
        "an empty column of text": pd.DataFrame({"a": pd.Series([None] * 40, dtype=object), "b": numbers[:, 0]}),
        "one date": pd.DataFrame({"a": pd.to_datetime(["2020-01-01", None] * 20), "b": numbers[:, 0]}),
        "names that are numbers": pd.DataFrame(numbers, columns=[7, 8, 9]),
        "a hundred columns": np.where(rng.random((60, 100)) < 0.2, np.nan, rng.normal(size=(60, 100))),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", odd_tables())
@pytest.mark.parametrize("make", [em, lambda: SinkhornImputer(max_steps=20, random_state=0)], ids=["em", "sinkhorn"])
def test_odd_tables_have_reports_too(given: str, make: Make) -> None:
    X = odd_tables()[given]
    imputer = make()
    quick = given == "a hundred columns"  # ICE takes half a minute there
    said = collect(imputer, X, imputer.fit_transform(X), check=not quick)
    json.dumps(said.as_dict(), allow_nan=False)
    assert not any(each.violations for each in said.columns)
    assert len(said.columns) == np.shape(X)[1]
    assert len(said.verdict) == (1 if given == "no holes" else 5)
    assert render(said).count('<article class="column"') == len(said.columns)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{"keep_empty_features": False}, {"add_indicator": True}, {"integers": "float"}])
@pytest.mark.parametrize("as_frame", [True, False])
def test_columns_may_be_dropped_or_added(settings: dict[str, Any], as_frame: bool) -> None:
    X = np.column_stack([np.full(50, np.nan), *np.random.default_rng(0).normal(size=(2, 50))])
    X[::7, 1] = np.nan
    X_in: Any = pd.DataFrame(X, columns=["none", "b", "c"]) if as_frame else X
    imputer = em().set_params(**settings)
    said = collect(imputer, X_in, imputer.fit_transform(X_in))
    assert not any(each.violations for each in said.columns)
    assert (said.columns[0].n_missing, said.columns[0].n_filled) == (50, 0)
    assert said.verdict[0].answer.endswith(f"Some values are still missing in {said.columns[0].name}.")


def test_marked_holes_are_holes() -> None:
    X = np.array([[1, 2], [2, -1], [3, 6], [-1, 8], [5, 10]] * 10)
    imputer = MeanImputer(missing_values=-1)
    said = collect(imputer, X, imputer.fit_transform(X))
    assert said.table.n_missing == 20
    assert not any(each.violations for each in said.columns)


def test_what_is_needed_to_reproduce_is_there(flats: pd.DataFrame, said: ReportData) -> None:
    block = said.reproduce
    assert "from otimpute.baselines import GaussianEMImputer" in block.code
    assert "pd.read_csv('flats.csv')" in block.code
    assert {"otimpute", "Python", "numpy"} <= set(block.versions)
    other = collect(em().fit(flats), flats.iloc[::-1], check=False).reproduce
    assert len(block.fingerprint) == 16 and other.fingerprint != block.fingerprint
    by_chance = collect(SinkhornImputer(max_steps=5).fit(flats), flats, check=False).reproduce
    assert "random_state was None" in by_chance.words[0]


def test_wrong_arguments_are_refused_in_words(flats: pd.DataFrame) -> None:
    X = flats[["size", "rent"]]
    imputer = em().fit(X)
    with pytest.raises(TypeError, match="imputer must be from otimpute, got SimpleImputer"):
        collect(SimpleImputer().fit(X), X)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        collect(em(), X)
    with pytest.raises(ValueError, match="240 rows of X, got 3"):
        collect(imputer, X, imputer.transform(X)[:3])
    with pytest.raises(TypeError, match="X_imputed must be a table of pandas, as X is, got ndarray"):
        collect(imputer, X, imputer.transform(X).to_numpy())
    with pytest.raises(ValueError, match="max_rows must be a whole number >= 10, got 5"):
        collect(imputer, X, max_rows=5)
    with pytest.raises(ValueError, match="feature names"):
        collect(imputer, flats)


def test_columns_without_values_in_the_rows_that_are_checked_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).assign(c=rng.choice(["x", "y"], 60))
    X = X.mask(rng.random(X.shape) < 0.2)
    imputer = KNNImputer().fit(X)
    X["b"], X["c"] = np.nan, None
    found = collect(imputer, X).check
    assert found is not None
    assert [each.name for each in found.columns] == ["a"]
    assert not any(each.failure for each in found.methods)


def test_wide_tables_are_not_checked_against_what_takes_minutes() -> None:
    X = np.random.default_rng(0).normal(size=(30, 200))
    X[::3] = np.nan
    X[0, 0] = 1.0
    found = collect(MeanImputer().fit(X), X).check
    assert found is not None
    assert [each.method for each in found.methods if each.failure] == ["ICE"]
    assert all(set(each.scores) == {"MeanImputer", "column mean", "KNN"} for each in found.columns)


def test_booleans_are_right_or_wrong_even_if_fractions_are_written() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    X = pd.DataFrame({"x": x, "yes": pd.array(x > 0, dtype="boolean")})
    X.loc[rng.random(200) < 0.2, "yes"] = pd.NA
    wrong = {}
    for integers in ("round", "float"):
        imputer = GaussianEMImputer(integers=integers)
        said = collect(imputer, X, imputer.fit_transform(X))
        assert said.check is not None
        wrong[integers] = said.check.columns[0].scores
    assert wrong["float"] == wrong["round"]


def test_categories_that_training_did_not_know_must_stay_as_they_were() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, None, 4.0] * 5, "kind": ["a", "b", "a", None] * 5})
    imputer = MeanImputer().fit(X)
    new = X.assign(kind=["a", "new", "a", None] * 5)
    kept = imputer.transform(new)
    assert not any(each.violations for each in collect(imputer, new, kept, check=False).columns)
    changed = kept.assign(kind=kept["kind"].replace("new", "newer"))
    said = collect(imputer, new, changed, check=False)
    assert [(each.what, each.n_cells) for each in column(said, "kind").violations] == [("observed but changed", 5)]


def test_a_column_that_was_not_checked_is_not_said_to_have_too_few_values(flats: pd.DataFrame) -> None:
    words = column(collect(em().fit(flats), flats, check=False), "rent").words
    assert "not checked" in words
    assert "too few" not in words


def test_columns_with_one_value_are_found_exactly_by_the_mean_too() -> None:
    X = pd.DataFrame({"x": np.arange(60.0), "one": 3.7, "only": "a"})
    X.loc[::5, ["one", "only"]] = None
    said = collect(MeanImputer().fit(X), X)
    assert {column(said, name).light for name in ("one", "only")} == {"good"}
    assert "imputed exactly" in column(said, "one").words
    assert "only category" in column(said, "only").words
    assert column(said, "one").statistics[1].observed == "0"  # its standard deviation
    assert said.joint.correlations is None  # the only column that varies is x


def test_holes_of_a_long_table_are_filled_only_where_they_are() -> None:
    X = pd.DataFrame({"x": np.arange(5000.0), "text": [f"id {k}" for k in range(5000)]})
    X.loc[[17, 4711], "text"] = None
    X.loc[::7, "x"] = None
    said = collect(MeanImputer().fit(X), X, max_rows=20, check=False)
    assert column(said, "text").n_filled == 0
    assert light(said, "kept").light == "caution"
    assert any(note.startswith("Values of the sample were imputed") for note in said.notes)


def test_numbers_have_the_digits_by_which_they_differ() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"latitude": 52.5 + 0.01 * rng.random(100), "huge": 1e300 * rng.normal(size=100), "x": rng.random(100)})
    X.loc[::4, ["latitude", "huge"]] = np.nan
    said = collect(em().fit(X), X, check=False)
    mean = column(said, "latitude").statistics[0]
    assert float(mean.observed) == pytest.approx(X["latitude"].mean(), abs=1e-5)
    labels = column(said, "latitude").shape.labels
    assert len(set(labels)) == len(labels) > 1
    assert all(len(each.observed) < 12 and "inf" not in each.observed for each in column(said, "huge").statistics)


def test_the_largest_numbers_can_be_drawn() -> None:
    X = np.c_[[1.7e308, -1.7e308, *np.linspace(-1e307, 1e307, 50)], np.arange(52.0)]
    X[5:15, 0] = np.nan
    shape = column(collect(MeanImputer().fit(X), X, check=False), "0").shape
    assert sum(shape.observed) == pytest.approx(1)


def test_moments_of_a_time_zone_are_told_in_universal_time() -> None:
    X = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=50, freq="h", tz="America/New_York"), "x": np.arange(50.0)})
    X.loc[::5, "t"] = pd.NaT
    found = column(collect(MeanImputer().fit(X), X, check=False), "t")
    assert found.kind == "date/time in UTC"
    assert found.statistics[0].observed == "2020-01-01 06:00:00"


def test_correlations_of_nothing_have_no_sign() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat([1.0, -1.0], 50)
    X = pd.DataFrame({"x": x, "y": np.tile([1.0, -1.0], 50) + 1e-4 * x * -1})
    imputer = MeanImputer()
    X.loc[rng.random(100) < 0.1, "y"] = np.nan
    said = collect(imputer.fit(X), X, X.assign(y=X["y"].fillna(9.0)), check=False)
    assert "-0.00" not in render(said)


def test_the_fingerprint_changes_with_everything_in_the_table() -> None:
    X = pd.DataFrame({"x": [1.0, None, 3.0] * 10, "kind": ["a", "b", "a"] * 10, "text": [f"id {k}" for k in range(30)]})
    imputer = MeanImputer().fit(X)
    other_text, other_labels, new_label = X.copy(), X.replace({"a": "c"}), X.copy()
    other_text.loc[3, "text"], new_label.loc[3, "kind"] = "id", "new"
    prints = [collect(imputer, each, check=False).reproduce.fingerprint for each in (X, other_text, new_label)]
    others = (other_labels, X.rename(columns={"x": "y"}), X[::-1])
    prints += [collect(MeanImputer().fit(each), each, check=False).reproduce.fingerprint for each in others]
    assert len(set(prints)) == 6
    assert collect(imputer, X.copy(), check=False).reproduce.fingerprint == prints[0]


def test_what_cannot_be_drawn_again_is_said() -> None:
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [2.0, 4.0]])
    for random_state, told in ((0, []), (None, ["None"]), (np.random.RandomState(0), ["RandomState"])):
        words = collect(SinkhornImputer(random_state=random_state, max_steps=1).fit(X), X, check=False).reproduce.words
        assert [name for name in ("None", "RandomState") if any(name in line for line in words)] == told


@pytest.mark.parametrize("wrong", [np.inf, "many"])
def test_errors_say_that_the_imputed_table_is_meant(wrong: Any) -> None:
    X = pd.DataFrame({"x": [1.0, None, 3.0], "y": [1.0, 2.0, 3.0]})
    imputer = MeanImputer()
    X_imputed = imputer.fit_transform(X).assign(x=wrong)
    with pytest.raises(ValueError, match=r"X_imputed does not match X: .*'x'"):
        collect(imputer, X, X_imputed, check=False)


def test_columns_of_noise_are_not_trusted_because_of_luck() -> None:
    lights = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 8))
        X[rng.random(X.shape) < 0.2] = np.nan
        imputer = KNNImputer()
        X_imputed = imputer.fit_transform(X)
        lights += [column.light for column in collect(imputer, X, X_imputed).columns]
    assert lights.count("good") <= 1
