"""Columns of more categories than are told apart: rare ones are pooled, and never imputed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import otimpute
from otimpute import AutoImputer, SinkhornImputer
from otimpute.baselines import GaussianEMImputer, KNNImputer, MeanImputer
from otimpute.exceptions import OtimputeWarning
from otimpute.reporting import collect
from otimpute.table import Encoding, describe_columns, observed_category_of


def cities(n: int = 20_000, n_cities: int = 8_000, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """A column in which the k-th city is 1 / k as frequent as the first, and another that tells the frequent ones."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_cities + 1)
    drawn = rng.choice(n_cities, n, p=share / share.sum())
    return [f"city {k}" for k in drawn], np.minimum(drawn, 100) + 0.1 * rng.normal(size=n)


def with_holes(cells: list[str], every: int = 7) -> list[str | None]:
    return [None if k % every == 0 else cell for k, cell in enumerate(cells)]


def test_of_8000_categories_the_frequent_ones_are_learned() -> None:
    truth, place = cities()
    frame = pl.DataFrame({"city": with_holes(truth), "place": place})
    encoding = Encoding.of_frame(nw.from_native(frame))
    assert encoding.widths == [49, 1]
    imputer = GaussianEMImputer()
    imputed = imputer.fit_transform(frame)["city"]
    observed = frame["city"].is_not_null()
    assert imputed.filter(observed).equals(frame["city"].filter(observed))
    assert set(imputed.filter(~observed)) <= set(encoding.codes[0].categories) <= {f"city {k}" for k in range(200)}
    again = imputer.transform(frame)["city"]
    assert set(again.filter(~observed)) <= set(encoding.codes[0].categories)


def test_the_pooled_rest_never_wins() -> None:
    column = ["a"] * 30 + ["b"] * 20 + [f"rare {k % 60}" for k in range(120)] + [None]
    for imputer in (MeanImputer(), KNNImputer(), SinkhornImputer(max_steps=10)):
        imputer.set_params(max_categories=3)
        imputed = imputer.fit_transform(pl.DataFrame({"x": column, "y": np.arange(171.0)}))
        assert imputed["x"][170] in ("a", "b")
    assert MeanImputer(max_categories=3).fit_transform(pl.DataFrame({"x": column}))["x"][170] == "a"


@pytest.mark.parametrize("max_categories", [1, 2, 3, 50])
def test_the_width_stays_below_the_limit(max_categories: int) -> None:
    frame = pl.DataFrame({"x": with_holes([f"c{min(k % 70, 2 * (k % 40))}" for k in range(2000)])})
    encoding = Encoding.of_frame(nw.from_native(frame), max_categories=max_categories)
    assert encoding.widths == [max_categories - 1]
    assert MeanImputer(max_categories=max_categories).fit_transform(frame)["x"].null_count() == 0


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(with_holes(cities(3000, 300)[0]), dtype="category"),
        pd.Series(with_holes(cities(3000, 300)[0]), dtype=object),
        pl.Series(with_holes(cities(3000, 300)[0]), dtype=pl.Categorical),
        pl.Series(with_holes(cities(3000, 300)[0]), dtype=pl.Enum([f"city {k}" for k in range(300)])),
    ],
    ids=["pandas category", "pandas text", "polars categorical", "polars enum"],
)
def test_types_are_kept(column: Any) -> None:
    frame = (pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame)({"x": column})
    imputed = MeanImputer().fit_transform(frame)
    assert imputed["x"].dtype == column.dtype
    assert imputed["x"][0] == "city 0"
    assert describe_columns(frame)[0].treatment == "one of the 49 most frequent labels"


def test_an_order_needs_no_pooling() -> None:
    grades = [f"{k:03}" for k in range(120)]
    column = pd.Categorical([grades[k % 120] if k % 9 else None for k in range(1000)], categories=grades, ordered=True)
    encoding = Encoding.of_frame(nw.from_native(pd.DataFrame({"x": column})))
    assert encoding.widths == [1]
    assert not MeanImputer().fit_transform(pd.DataFrame({"x": column}))["x"].isna().any()


def test_names_that_come_up_again_and_again_are_left_alone() -> None:
    frame = pl.DataFrame({"customer": with_holes([f"customer {k % 800}" for k in range(8000)]), "x": np.arange(8000.0)})
    assert describe_columns(frame)[0].treatment == "left alone (no text is frequent)"
    with pytest.warns(OtimputeWarning, match="columns customer are not imputed"):
        assert MeanImputer().fit_transform(frame).equals(frame)


def test_new_rows_and_model_files_know_the_rest(tmp_path: Path) -> None:
    truth, place = cities(3000, 300)
    imputer = GaussianEMImputer().fit(pl.DataFrame({"city": truth, "place": place}))
    imputer.save(tmp_path / "model")
    new = pl.DataFrame({"city": ["never seen", truth[0], None], "place": [None, None, 1.0]})
    imputed = otimpute.load(tmp_path / "model").transform(new)
    assert imputed.equals(imputer.transform(new))
    assert imputed["city"].to_list() == ["never seen", truth[0], "city 0"]
    assert imputed["place"][0] > 40  # rare ones are far from the first


def test_guesses_at_rare_categories_count_as_wrong() -> None:
    truth, place = cities(600, 200)
    frame = pl.DataFrame({"city": with_holes(truth), "place": place})
    imputer = AutoImputer(["gaussian_em"], n_splits=1, random_state=0, max_categories=10).fit(frame)
    table = imputer.read_table(frame)
    rare = observed_category_of(table.codes[0], table.values[~table.holes[:, 0], :9]) == 9
    assert imputer.scores_["city"]["stack"]["wrong"] > rare.mean() - 0.1
    assert rare.mean() > 0.3


def test_reports_tell_rare_categories_apart() -> None:
    truth, place = cities(600, 200)
    frame = pl.DataFrame({"city": with_holes(truth), "place": place})
    imputer = MeanImputer(max_categories=10)
    imputed = imputer.fit_transform(frame)
    assert not any(column.violations for column in collect(imputer, frame, imputed, check=False).columns)
    rare = next(k for k, city in enumerate(frame["city"]) if city is not None and int(city[5:]) > 100)
    cells = imputed["city"].to_list()
    cells[rare], cells[0] = "another rare one", "city 199"
    changed = collect(imputer, frame, imputed.with_columns(city=pl.Series(cells)), check=False)
    broken = {each.what: each.n_cells for column in changed.columns for each in column.violations}
    assert broken == {"observed but changed": 1, "not among the categories": 1}
