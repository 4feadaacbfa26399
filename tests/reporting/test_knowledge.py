"""What a report says of what people knew of their table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from otimpute import MultipleImputer
from otimpute.baselines import GaussianEMImputer
from otimpute.reporting import Report, ReportData, collect, plots

N = 60


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=["age", "income", "births", "<i>outcome"])
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    frame["sex"] = np.where(np.arange(N) % 3 == 0, "m", "f")
    frame["key"] = np.arange(500, 500 + 7 * N, 7)
    frame["remark"] = 1.5 * np.arange(N)
    return frame


def told(imputer: Any, X: pd.DataFrame) -> ReportData:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect(imputer, X, imputer.fit_transform(X), check=False)


RULES: dict[str, Any] = {
    "exclude": ["remark"],
    "predictors": {"not": ["<i>outcome"], "income": ["age"], "age": {"not": ["births"]}},
    "applicable": {"births": "sex == 'f'"},
}


def test_rules_are_told_in_words(people: pd.DataFrame) -> None:
    data = told(GaussianEMImputer(**RULES), people)
    assert data.known is not None
    n_empty = int(people.loc[people.sex == "m", "births"].isna().sum())
    assert [rule.words for rule in data.known.rules] == [
        "Neither imputed nor looked at: remark.",
        "Set aside as identifiers, which say nothing about other rows: key.",
        "<i>outcome informs no other column.",
        "age is informed by all other columns but births.",
        "income is informed by age only.",
        f"births exists only where sex == 'f': {n_empty} cells stay empty, as nothing is missing there.",
    ]
    assert data.as_dict()["known"]["rules"][0] == {
        "kind": "excluded",
        "columns": ["remark"],
        "words": data.known.rules[0].words,
    }


def test_the_matrix_has_what_informs_what(people: pd.DataFrame) -> None:
    data = told(GaussianEMImputer(**RULES), people)
    assert data.known is not None and data.known.matrix is not None
    matrix = data.known.matrix
    assert matrix.columns == ["age", "income", "births", "<i>outcome", "sex"]
    assert dict(zip(matrix.imputed, matrix.informs, strict=True)) == {
        "age": [None, True, False, False, True],
        "income": [True, None, False, False, False],
        "births": [True, True, None, False, True],
        "<i>outcome": [True, True, True, None, True],
    }
    picture = plots.predictor_matrix(matrix)
    drawn = {each.get("class"): each.get("d", "") for each in picture.iter("path")}
    assert drawn["more level-9"].count("M") == sum(own is True for row in matrix.informs for own in row)
    assert drawn["unknown-cell"].count("M") == 4
    assert "The fewest inform income: 1 column." in str(picture.findtext("desc"))


def test_the_page_shows_them(people: pd.DataFrame) -> None:
    page = Report(told(GaussianEMImputer(**RULES), people)).html
    assert "What was known of the table" in page and "Which columns inform which" in page
    assert "&lt;i&gt;outcome informs no other column." in page and "<i>outcome" not in page


def test_nothing_is_shown_where_nothing_was_known(people: pd.DataFrame) -> None:
    data = told(GaussianEMImputer(), people.drop(columns="key"))
    assert data.known is None
    assert "What was known" not in Report(data).html


def test_only_and_columns_that_are_not_limited_draw_no_matrix(people: pd.DataFrame) -> None:
    data = told(GaussianEMImputer(columns=["age"]), people.drop(columns="key"))
    assert data.known is not None and data.known.matrix is None
    assert [rule.words for rule in data.known.rules] == ["Only age may be imputed; others can still inform."]


def test_several_tables_show_the_same(people: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = MultipleImputer(GaussianEMImputer(**RULES), m=2, random_state=0).fit(people)
        data = collect(imputer, people)
    one = told(GaussianEMImputer(**RULES), people)
    assert data.known == one.known


def test_what_cannot_exist_predicts_no_missing_value(people: pd.DataFrame) -> None:
    people = people.assign(births=np.where((people.sex == "f"), people.age.fillna(0.0), np.nan))
    people.loc[[4, 5, 22, 31, 35, 41, 50, 55], "births"] = np.nan
    people = people.drop(columns="key")
    ruled, plain = told(GaussianEMImputer(applicable=RULES["applicable"]), people), told(GaussianEMImputer(), people)
    strongest = [(each.missing, each.column) for each in plain.missingness.predictors.strongest]
    assert ("births", "sex") in strongest  # all men lack it
    assert ("births", "sex") not in [(each.missing, each.column) for each in ruled.missingness.predictors.strongest]
    assert ruled.verdict[0].light == "good"


def test_derived_columns_are_computed_and_complete(people: pd.DataFrame) -> None:
    people = people.drop(columns="key").assign(total=people.age + people.income)
    people.loc[people.index % 5 == 0, "total"] = np.nan
    data = told(GaussianEMImputer(derive=["total = age + income", "total <= 100"]), people)
    assert data.known is not None
    assert [rule.words for rule in data.known.rules][:2] == [
        "total = age + income in every imputed row.", "total <= 100 in every imputed row.",
    ]  # fmt: skip
    assert "from these rules: computed from known ones" in data.known.rules[2].words
    column = next(column for column in data.columns if column.name == "total")
    assert (column.kind, column.light, column.n_filled) == ("derived", "good", column.n_missing)
    assert data.verdict[0].answer.startswith("All ")


def test_a_report_without_the_imputed_table_keeps_the_rules(people: pd.DataFrame) -> None:
    people = people.drop(columns="key").assign(total=people.age + people.income)
    imputer = GaussianEMImputer(derive=["total = age + income"]).fit(people)
    data = collect(imputer, people, check=False)
    assert data.table.from_transform and data.verdict[0].light == "good"
