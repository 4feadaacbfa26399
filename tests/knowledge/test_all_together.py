"""Everything that can be said of a table, said at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import AutoImputer, MultipleImputer
from otimpute.baselines import ChainedImputer, ExtraTreesImputer, GaussianEMImputer

SAID: dict[str, Any] = {
    "exclude": ["note"],
    "predictors": {"not": ["outcome"]},
    "groups": "person",
    "time": "visit",
    "derive": ["total = part + rest", "part <= rest"],
    "applicable": {"births": "sex == 'f'"},
}


def visits(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n_people, n_visits = 25, 5
    person = np.repeat(np.arange(n_people), n_visits)
    level, sex = rng.normal(size=n_people)[person], rng.choice(["f", "m"], n_people)[person]
    n = len(person)
    part, rest = 10 + level + 0.2 * rng.normal(size=n), 20 + level + 0.2 * rng.normal(size=n)
    table = pd.DataFrame(
        {
            "person": person,
            "visit": np.tile(np.arange(n_visits), n_people),
            "note": rng.normal(size=n),
            "sex": sex,
            "births": np.where(sex == "f", 2 + level, np.nan),
            "part": part,
            "rest": rest,
            "total": part + rest,
            "outcome": 3 * level + rng.normal(size=n),
        }
    ).astype({"sex": object})
    hidden = rng.random(table.shape) < 0.15
    hidden[:, :2] = False
    return table.mask(hidden)


@pytest.mark.parametrize(
    "imputer",
    [
        GaussianEMImputer(**SAID),
        ExtraTreesImputer(n_estimators=3, n_rounds=2, random_state=0, **SAID),
        AutoImputer(["gaussian_em", "knn"], n_splits=1, random_state=0, **SAID),
    ],
    ids=lambda imputer: type(imputer).__name__,
)
def test_all_rules_hold_at_once(imputer: Any, tmp_path: Path) -> None:
    X = visits()
    for completed in (imputer.fit_transform(X), imputer.transform(X)):
        assert completed["note"].equals(X["note"])
        np.testing.assert_allclose(completed["part"] + completed["rest"], completed["total"], rtol=1e-8)
        assert (completed["part"] <= completed["rest"]).all()
        no_births = X["births"].isna()
        assert (completed["births"].isna() == (completed["sex"] == "m"))[no_births].all()
        assert completed[["sex", "part", "rest", "total", "outcome"]].notna().all(axis=None)
        for name in X:
            known = X[name].notna()
            assert (completed[name][known] == X[name][known]).all()
    imputer.save(tmp_path / "imputer")
    pd.testing.assert_frame_equal(otimpute.load(tmp_path / "imputer").transform(X), imputer.transform(X))


def test_the_outcome_informs_nothing_through_other_rows_either() -> None:
    X = visits()
    changed = X.copy()
    known = changed["outcome"].notna()
    changed.loc[known, "outcome"] = np.random.default_rng(1).normal(size=known.sum())
    for imputer in (GaussianEMImputer(**SAID), AutoImputer(["gaussian_em"], n_splits=1, random_state=0, **SAID)):
        first, second = imputer.fit_transform(X), imputer.fit_transform(changed)
        names = ["births", "part", "rest", "total"]
        pd.testing.assert_frame_equal(first[names], second[names], rtol=1e-9)


def test_several_tables_keep_the_rules() -> None:
    X = visits()
    imputer = MultipleImputer(ChainedImputer(n_rounds=2, **SAID), m=2, random_state=0).fit(X)
    for completed in imputer.tables_:
        np.testing.assert_allclose(completed["part"] + completed["rest"], completed["total"], rtol=1e-8)
        assert completed["note"].equals(X["note"])
    assert len(imputer.diagnostics().summary()) > 0


@pytest.mark.parametrize("inner", [ChainedImputer, GaussianEMImputer])
def test_an_outcome_that_informs_nothing_informs_no_draw(inner: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    X = pd.DataFrame({"x": x, "z": rng.normal(size=300), "outcome": 3 * x + 0.1 * rng.normal(size=300)})
    X.loc[:100, ["x", "outcome"]] = np.nan
    X.loc[100:200, "x"] = np.nan
    changed = X.assign(outcome=np.where(X["outcome"].isna(), np.nan, rng.normal(size=300)))

    def drawn(table: pd.DataFrame) -> Any:
        return MultipleImputer(inner(predictors={"not": ["outcome"]}), m=2, random_state=0).fit(table).tables_

    for first, second in zip(drawn(X), drawn(changed), strict=True):
        assert first["x"].equals(second["x"])
        assert abs(np.corrcoef(first["x"][100:200], first["outcome"][100:200])[0, 1]) < 0.4
        assert np.corrcoef(first["x"][:100], first["outcome"][:100])[0, 1] > 0.9  # which is drawn from it
