"""Scores of tables with columns of any kind."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from otimpute.metrics import energy_distance, mae, rmse, score_table, wasserstein2


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_every_kind_of_column_is_scored_in_every_kind_of_frame(frame: Any) -> None:
    true = {
        "x": [1.0, 2.0, 3.0, 6.0],
        "n": [1, 2, 3, 2**60],
        "c": ["a", "a", "b", "b"],
        "ok": [True, False, True, True],
        "t": [datetime(2020, 1, day) for day in (1, 11, 21, 31)],
    }
    guess = {**true, "x": [1.0, 2.0, 5.0, 2.0], "c": ["a", "b", "b", "b"], "ok": [True, False, False, True]}
    guess["t"] = [datetime(2020, 1, day) for day in (3, 11, 21, 31)]
    missing = np.zeros((4, 5), dtype=bool)
    missing[2:, 0] = missing[1:3, 2] = missing[2, 3] = missing[0, 4] = True
    scores = score_table(frame(true), frame(guess), missing)
    x, n, c, ok, t = scores.columns
    assert (x.kind, x.n_cells, x.mae, x.rmse) == ("numbers", 2, 3.0, pytest.approx(10**0.5))
    assert x.scaled_rmse == pytest.approx(10**0.5 / np.std([1, 2, 3, 6]))
    assert x.simplest == pytest.approx(np.sqrt((1.5**2 + 4.5**2) / 2))
    assert (n.n_cells, n.mae) == (0, None)
    assert (c.kind, c.accuracy, c.simplest) == ("categories", 0.5, 0.5)
    assert (ok.accuracy, ok.simplest) == (0.0, 1.0)
    assert (t.kind, t.mae) == ("times", 2.0)
    assert scores.accuracy == pytest.approx(1 / 3)


def test_numbers_alone_get_the_scores_of_standardised_tables() -> None:
    rng = np.random.default_rng(0)
    X_true, missing = rng.normal(size=(50, 3)) * [1, 10, 100], rng.random((50, 3)) < 0.3
    X_imputed = np.where(missing, X_true + rng.normal(size=X_true.shape), X_true)
    scores = score_table(*(pa.table(dict(zip("abc", X.T, strict=True))) for X in (X_true, X_imputed)), missing)
    scaled = X_true / X_true.std(axis=0), X_imputed / X_true.std(axis=0), missing
    assert (scores.mae, scores.rmse) == (pytest.approx(mae(*scaled)), pytest.approx(rmse(*scaled)))
    assert scores.energy_distance == pytest.approx(energy_distance(*scaled))
    assert scores.wasserstein2 == pytest.approx(wasserstein2(*scaled))
    assert scores.accuracy is None


def test_cells_without_truth_do_not_count_and_those_without_guess_are_told() -> None:
    true = pa.table({"x": [1.0, None, 3.0, 4.0], "c": ["a", None, "b", "b"], "d": [date(2020, 1, 1), None, None, None]})
    guess = pa.table({"x": [2.0, 9.0, None, 4.0], "c": ["a", "a", None, "b"], "d": [date(2020, 1, 1)] * 4})
    x, c, d = score_table(true, guess, np.ones((4, 3), dtype=bool)).columns
    assert (x.n_cells, x.n_unfilled, x.mae) == (3, 1, 0.5)
    assert (c.n_cells, c.n_unfilled, c.accuracy) == (3, 1, pytest.approx(2 / 3))
    assert (d.n_cells, d.mae, d.spread, d.scaled_mae) == (1, 0.0, 0.0, None)
    assert x.simplest is c.simplest is None  # nothing was observed


def test_types_that_have_no_score_are_told_apart() -> None:
    frame = pa.table({"tags": [["a"], ["b"]]})
    (tags,) = score_table(frame, frame, np.ones((2, 1), dtype=bool)).columns
    assert (tags.kind, tags.mae, tags.accuracy) == ("other", None, None)


def test_tables_that_do_not_match_are_refused() -> None:
    frame = pa.table({"x": [1.0, 2.0]})
    missing = np.ones((2, 1), dtype=bool)
    with pytest.raises(ValueError, match="must have the same columns and rows"):
        score_table(frame, pa.table({"y": [1.0, 2.0]}), missing)
    with pytest.raises(ValueError, match="must have the same columns and rows"):
        score_table(frame, frame, missing[:1])
    with pytest.raises(ValueError, match="column 'x' must hold numbers, as it does in X_true, got String"):
        score_table(frame, pa.table({"x": ["a", "b"]}), missing)
