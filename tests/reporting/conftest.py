"""Reports on the flats and on other tables."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from otimpute import AutoImputer, MultipleImputer, SinkhornImputer
from otimpute.baselines import GaussianEMImputer, MeanImputer
from otimpute.estimator import BaseImputer
from otimpute.reporting import ReportData, collect
from otimpute.reporting.data import MethodScore, Violation, Weights

HOSTILE = [
    "<script>alert(1)</script>", "</style><b>", "q\"uo'te & \\", "{{7*7}}", "حجم الشقة بالمتر المربع", "🏠 emoji", "n" * 200,
    "a\nb\tc", "",
]  # fmt: skip


@pytest.fixture(scope="session")
def hostile(flats: pd.DataFrame) -> pd.DataFrame:
    """The same with names, of columns and of categories, that would like to be markup."""
    frame = flats.set_axis(HOSTILE, axis=1)
    frame["{{7*7}}"] = frame["{{7*7}}"].map(
        {"hills": "<img src=x onerror=alert(1)>", "harbour": "</script><script>alert(2)</script>", "fields": "long " * 40}
    )
    return frame


@pytest.fixture(scope="session")
def pages(flats: pd.DataFrame, hostile: pd.DataFrame) -> dict[str, ReportData]:
    """Reports of all sorts, quickly made."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    holes = numbers.mask(rng.random(numbers.shape) < 0.2)
    wide = pd.DataFrame(rng.normal(size=(2000, 100)), columns=[f"measurement {k}" for k in range(100)])
    wide["measurement 1"] += wide["measurement 0"]
    few_steps = {"max_steps": 40, "random_state": 0}

    def told(imputer: BaseImputer, X: pd.DataFrame, **settings: Any) -> ReportData:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return collect(imputer, X, imputer.fit_transform(X), **settings)

    plain = told(SinkhornImputer(**few_steps), flats, source="flats.csv")
    assert plain.check is not None
    failed = [*plain.check.methods[:-1], MethodScore("ICE", None, None, "<i>did not converge</i>")]
    weights = Weights(["<i>x</i>", "y"], list(flats.columns[:3]), [[0.3, 0.7]] * 3, 2)
    broken = replace(plain.columns[0], light="bad", violations=[Violation("below the lower bound", 3)])
    return {
        "flats": plain,
        "hostile": told(
            SinkhornImputer(**few_steps), hostile, source='"><script>alert(3)</script>.csv', command="otimpute 'a' <b"
        ),
        "nothing missing": told(MeanImputer(), numbers),
        "no check": told(MeanImputer(), holes, check=False),
        "one column": told(MeanImputer(), holes[["a"]]),
        "three rows": told(MeanImputer(), holes[:3]),
        "transformed": collect(MeanImputer().fit(holes), holes),
        "a hundred columns": told(MeanImputer(), wide.mask(rng.random(wide.shape) < 0.1)),
        "error bars": told(AutoImputer(["gaussian_em"], n_splits=2, random_state=0), hostile),
        "several tables": collect(
            MultipleImputer(m=3, random_state=0).fit(hostile.drop(columns="a\nb\tc")), hostile.drop(columns="a\nb\tc")
        ),
        "what was known": told(
            GaussianEMImputer(
                columns=HOSTILE[1:-1], exclude=[HOSTILE[-1]], predictors={"not": [HOSTILE[0]], HOSTILE[4]: HOSTILE[1:4]}
            ),
            hostile,
        ),
        "experts": replace(plain, training=replace(plain.training, curves=[], weights=weights)),
        "a method failed": replace(plain, check=replace(plain.check, methods=failed)),
        "a broken promise": replace(plain, columns=[broken, *plain.columns[1:]]),
    }
