"""Groups and times of a table: what is built inside never comes out, and is there for new rows too."""

import datetime as dt
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import otimpute
from otimpute import AutoImputer, RoundRobinImputer
from otimpute.baselines import GaussianEMImputer, MeanImputer
from otimpute.exceptions import OtimputeWarning

BOTH = {"groups": "person", "time": "year"}


def people(n_people=15, n_years=8, rate=0.2, seed=0):
    """Complete and incomplete: people differ, and move like random walks."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(n_people, n_years)) * 0.4, axis=1) + 2 * rng.normal(size=(n_people, 1))
    income = walk.ravel()
    rent = income / 2 + rng.normal(size=len(income)) * 0.4
    complete = pd.DataFrame(
        {
            "person": np.repeat([f"p{k:02d}" for k in range(n_people)], n_years),
            "year": np.tile(np.arange(2000, 2000 + n_years), n_people),
            "income": income,
            "rent": rent,
            "job": np.where(income > 0, "baker", "smith"),
        }
    )
    table = complete.copy()
    for name in ("income", "rent", "job"):
        table.loc[rng.random(len(table)) < rate, name] = None
    return complete, table


def helpers_of(imputer, table):
    """Helper columns of a table, by row."""
    training = imputer.training_table_
    return training.arrays_of(imputer.read_table(table))[0][:, training.layout.own.stop :]


@pytest.fixture(scope="module")
def fitted():
    return GaussianEMImputer(**BOTH).fit(people()[1])


def test_groups_and_times_help():
    complete, table = people(40)
    holes = table["income"].isna()

    def error(**given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OtimputeWarning)
            imputed = GaussianEMImputer(**given).fit_transform(table)
        return np.sqrt(((imputed["income"] - complete["income"])[holes] ** 2).mean())

    assert error(**BOTH) < 0.85 * error()
    assert error(groups="person") < error()


def test_rows_of_the_fit_that_come_again_are_completed_as_they_were(fitted):
    _, table = people()
    values, missing = fitted.training_table_.arrays_of(fitted.read_table(table))
    np.testing.assert_allclose(fitted.training_table_.layout.with_helpers_of(values, missing), values, atol=1e-12)
    one_by_one = np.vstack([helpers_of(fitted, table.iloc[[k]]) for k in range(20)])
    np.testing.assert_allclose(one_by_one, helpers_of(fitted, table)[:20], atol=1e-12)


@pytest.mark.parametrize("given", [BOTH, {"groups": "person"}])
def test_the_order_of_rows_does_not_matter(given):
    _, table = people()
    imputer = GaussianEMImputer(**given).fit(table)
    order = np.random.default_rng(0).permutation(len(table))
    np.testing.assert_array_equal(helpers_of(imputer, table.iloc[order]), helpers_of(imputer, table)[order])
    pd.testing.assert_frame_equal(imputer.transform(table.iloc[order]), imputer.transform(table).iloc[order])


def test_the_order_of_rows_in_the_fit_does_not_matter():
    _, table = people()
    order = np.random.default_rng(0).permutation(len(table))
    first, second = (GaussianEMImputer(**BOTH).fit_transform(each) for each in (table, table.iloc[order]))
    pd.testing.assert_frame_equal(second.loc[table.index], first, rtol=1e-6)


def test_what_is_hidden_is_left_in_no_helper():
    _, table = people()
    imputer = GaussianEMImputer(**BOTH).fit(table)
    training = imputer.training_table_
    values, missing = training.arrays_of(imputer.read_table(table))
    hidden = ~missing & (np.random.default_rng(1).random(missing.shape) < 0.3)
    hidden[:, training.layout.own.stop :] = False
    other = np.where(hidden, values + 100.0, values)
    made = [training.layout.with_helpers_of(each, missing | hidden)[:, training.layout.own.stop :] for each in (values, other)]
    np.testing.assert_array_equal(*made)
    assert (made[0] != values[:, training.layout.own.stop :]).any()


def test_trials_show_experts_nothing_of_what_is_hidden():
    """An expert that copies its helper is as wrong in the trial as it is about values that are really missing."""
    complete, table = people(60, rate=0.3)
    imputer = AutoImputer(experts=["gaussian_em"], random_state=0, **BOTH)
    holes = table["income"].isna()
    true = np.sqrt(((imputer.fit_transform(table)["income"] - complete["income"])[holes] ** 2).mean())
    said = imputer.scores_["income"]["stack"]["rmse"]
    assert 0.85 * true < said < 1.4 * true


def test_blocks_of_missing_years_are_judged_as_such():
    complete, _ = people(60, 12, rate=0)
    rng, table = np.random.default_rng(3), complete.copy()
    away = rng.integers(0, 8, 60)
    year = complete["year"].to_numpy() - 2000
    start = np.repeat(away, 12)
    holes = (year >= start) & (year < start + 5) & np.repeat(rng.random(60) < 0.7, 12)
    table.loc[holes, "income"] = None
    imputer = AutoImputer(experts=["gaussian_em"], random_state=0, **BOTH)
    true = np.sqrt(((imputer.fit_transform(table)["income"] - complete["income"])[holes] ** 2).mean())
    assert 0.75 * true < imputer.scores_["income"]["stack"]["rmse"] < 1.5 * true


def test_helpers_are_in_no_answer(tmp_path):
    _, table = people()
    imputer = AutoImputer(experts=["gaussian_em", "extra_trees"], n_splits=1, random_state=0, **BOTH).fit(table)
    names = list(table.columns)
    assert set(imputer.scores_) <= set(names)
    assert set(imputer.weights_) <= set(names)
    assert imputer.imputation_std_.columns.tolist() == names
    assert set(imputer.category_probabilities(table)) <= set(names)
    assert imputer.get_feature_names_out().tolist() == names
    assert imputer.training_table_.layout.names == tuple(names)
    assert {each.name for each in imputer.judgement_.columns} == {"income", "rent", "job"}
    page = tmp_path / "page.html"
    otimpute.report(imputer, table).save(page)
    assert page.stat().st_size > 10_000


def test_the_mean_imputer_says_the_means_of_the_table_only():
    _, table = people()
    numbers = table[["year", "income", "rent"]]
    imputer = MeanImputer(time="year")
    with pytest.warns(OtimputeWarning, match="share a time"):
        imputer.fit(numbers)
    np.testing.assert_allclose(imputer.means_, numbers.mean())


@pytest.mark.filterwarnings("ignore::otimpute.exceptions.OtimputeWarning")
@pytest.mark.parametrize("make", [lambda: AutoImputer(["gaussian_em"], n_splits=1, random_state=0, **BOTH), RoundRobinImputer])
def test_saved_imputers_impute_the_same(make, tmp_path):
    _, table = people()
    imputer = make()
    if isinstance(imputer, RoundRobinImputer):
        imputer.set_params(max_cycles=2, n_updates=3, n_pairs=2, random_state=0, **BOTH)
    imputer.fit(table).save(tmp_path / "it")
    new = people(4, seed=9)[1]
    pd.testing.assert_frame_equal(otimpute.load(tmp_path / "it").transform(new), imputer.transform(new))


def test_a_stored_panel_whose_parts_do_not_go_together_is_refused(fitted):
    panel = fitted.training_table_.panel
    with pytest.raises(ValueError, match="do not go together"):
        replace(panel, labels=panel.labels[:3])


def test_a_new_group_is_known_by_its_other_rows_here(fitted):
    new = pd.DataFrame(
        {"person": ["new"] * 3, "year": [2001, 2002, 2003], "income": [9.0, None, 9.0], "rent": [None] * 3, "job": [None] * 3}
    ).astype({"income": float, "rent": float, "job": object})
    with pytest.warns(OtimputeWarning, match="1 group of these rows did not occur in the fit"):
        together = fitted.transform(new)
    with pytest.warns(OtimputeWarning, match="did not occur"):
        alone = fitted.transform(new.iloc[[1]])
    assert together["income"][1] > 5 > alone["income"][1]


def test_rows_of_a_known_group_are_known_by_those_of_the_fit(fitted):
    complete, _ = people()
    richest = complete.groupby("person")["income"].mean().idxmax()
    poorest = complete.groupby("person")["income"].mean().idxmin()
    new = pd.DataFrame({"person": [richest, poorest], "year": 2008, "income": np.nan, "rent": np.nan, "job": None})
    found = fitted.transform(new.astype({"job": object}))["income"]
    assert found[0] > found[1] + 2


def test_rows_are_alone_unless_they_belong_to_a_panel(fitted):
    assert not fitted.training_table_.rows_are_alone
    assert GaussianEMImputer().fit(people()[1]).training_table_.rows_are_alone


def test_frames_and_arrays_give_the_same():
    _, table = people()
    numbers = table[["person", "year", "income", "rent"]].assign(person=lambda each: each["person"].str[1:].astype(int))
    by_name = GaussianEMImputer(**BOTH).fit_transform(numbers)
    by_place = GaussianEMImputer(groups=0, time=1).fit_transform(numbers.to_numpy(dtype=float))
    by_polars = GaussianEMImputer(**BOTH).fit_transform(pl.DataFrame(numbers.to_dict("list"), nan_to_null=True))
    np.testing.assert_allclose(by_name.to_numpy(), by_place)
    np.testing.assert_allclose(by_polars.to_numpy(), by_place)


def test_times_may_be_dates_and_groups_several_columns():
    complete, table = people()
    dated = table.assign(
        year=[dt.date(year, 1, 1) for year in table["year"]], town=table["person"].str[1], person=table["person"].str[2]
    )
    imputer = GaussianEMImputer(groups=["town", "person"], time="year")
    holes = table["income"].isna()
    imputed = imputer.fit_transform(dated)
    assert len(imputer.training_table_.panel.labels) == 15
    assert np.sqrt(((imputed["income"] - complete["income"])[holes] ** 2).mean()) < 0.6 * complete["income"].std()


def test_the_groups_themselves_are_no_quantity():
    """A number that stands for a group informs nobody by its size."""
    _, table = people()
    coded = table.assign(person=table["person"].str[1:].astype(int))
    layout = GaussianEMImputer(**BOTH).fit(coded).training_table_.layout
    assert "person" not in [layout.names[place] for place in layout.groups[layout.own]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": "persn"}, "groups must be a column of the table, which has 'person', 'year'"),
        ({"groups": []}, "groups must be a column or a list of columns"),
        ({"groups": ["person", "person"]}, "groups must be different columns"),
        ({"groups": 2.5}, "groups must be the name of a column"),
        ({"groups": "person", "time": "person"}, "time must be another column than those of the groups"),
        ({"time": "job"}, "time must be a column of numbers or dates.*this one holds category"),
        ({"time": "income"}, "column 'income', which is given as time, is missing in"),
        ({"groups": "job"}, "column 'job', which is given as groups, is missing in"),
    ],
)
def test_what_cannot_be_a_group_or_a_time_is_refused(given, said):
    with pytest.raises((ValueError, TypeError), match=said):
        GaussianEMImputer(**given).fit(people()[1])


def test_new_rows_without_a_group_are_refused(fitted):
    new = people()[1].head(3).copy()
    new.loc[0, "person"] = None
    with pytest.raises(ValueError, match="column 'person', which is given as groups, is missing in 1 row"):
        fitted.transform(new)


def test_groups_with_one_row_and_times_that_repeat_are_told():
    _, table = people()
    odd = pd.concat([table, table.head(1).assign(person="alone"), table.head(1)], ignore_index=True)
    with pytest.warns(OtimputeWarning) as told:
        imputed = GaussianEMImputer(**BOTH).fit_transform(odd)
    words = [str(each.message) for each in told]
    assert any("1 group of 16 has one row" in each for each in words)
    assert any("1 row shares group and time with another row" in each for each in words)
    assert not imputed.isna().any().any()


def test_observed_values_are_untouched():
    _, table = people()
    imputed = GaussianEMImputer(**BOTH).fit_transform(table)
    seen = table.notna()
    pd.testing.assert_frame_equal(imputed.where(seen), table.where(seen))
    assert imputed.dtypes.equals(table.dtypes)


def test_a_complete_table_is_learned_from_later():
    complete, _ = people()
    new = complete.head(4).copy()
    new.loc[1, "income"] = None
    imputed = AutoImputer(["gaussian_em"], n_splits=1, random_state=0, **BOTH).fit(complete).transform(new)
    assert abs(imputed["income"][1] - complete["income"][1]) < complete["income"].std()
