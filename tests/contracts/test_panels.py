"""Groups and times, whatever the imputer: only holes are filled, helpers never come out, files and order change nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest

import otimpute
from every_imputer import IMPUTERS
from otimpute.exceptions import OtimputeWarning


def people():
    rng, n_people, n_years = np.random.default_rng(0), 12, 8
    level = np.repeat(2 * rng.normal(size=n_people), n_years)
    year = np.tile(np.arange(2000, 2000 + n_years), n_people)
    income = level + 0.1 * (year - 2000) + 0.2 * rng.normal(size=len(level))
    table = pd.DataFrame(
        {
            "person": np.repeat([f"p{k}" for k in range(n_people)], n_years),
            "year": year,
            "income": income,
            "rent": income / 2 + 0.2 * rng.normal(size=len(level)),
            "job": np.where(level > 0, "baker", "smith"),
        }
    )
    for name in ("income", "rent", "job"):
        table.loc[rng.random(len(table)) < 0.25, name] = None
    return table


@pytest.mark.parametrize("name", IMPUTERS)
def test_every_imputer_takes_groups_and_times(name, tmp_path):
    table, order = people(), np.random.default_rng(1).permutation(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short trainings
        imputer = IMPUTERS[name](groups="person", time="year")
        imputed = imputer.fit_transform(table)
        new = imputer.transform(table.head(30))
        again = imputer.transform(table.head(30).iloc[order])
        imputer.save(tmp_path / "it")
        loaded = otimpute.load(tmp_path / "it", **({"model": imputer.model} if callable(getattr(imputer, "model", 0)) else {}))
        kept = loaded.transform(table.head(30))
    seen = table.notna()
    assert imputed.columns.tolist() == table.columns.tolist()
    assert imputed.dtypes.equals(table.dtypes)
    assert not imputed.isna().any().any()
    pd.testing.assert_frame_equal(imputed.where(seen), table.where(seen))
    pd.testing.assert_frame_equal(again, new.iloc[order])
    pd.testing.assert_frame_equal(kept, new)


def test_a_new_group_is_told():
    imputer = IMPUTERS["gaussian-em"](groups="person", time="year").fit(people())
    with pytest.warns(OtimputeWarning, match="1 group of these rows did not occur in the fit"):
        imputer.transform(people().head(3).assign(person="new"))
