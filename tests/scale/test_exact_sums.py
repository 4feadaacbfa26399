"""Sums over rows are exact: right to the last bit, whatever the order."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otimpute.gaussian import fit_gaussian
from otimpute.streams import ColumnSums, ScatterSums

ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)


def column(values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(values, dtype=float)[:, None], np.zeros((len(values), 1), dtype=bool)


@given(st.lists(ANY_FLOAT, min_size=1, max_size=30), st.integers(0, 29))
def test_means_are_the_doubles_nearest_to_the_truth(values: list[float], cut: int) -> None:
    first, second = ColumnSums.empty(1), ColumnSums.empty(1)
    if values[:cut]:
        first.add(*column(values[:cut]))
    if values[cut:]:
        second.add(*column(values[cut:]))
    first.merge(ColumnSums.from_data(second.as_data()))
    truth = sum(map(Fraction, values), Fraction(0)) / len(values)
    assert first.means()[0] == float(truth)


def test_holes_do_not_count() -> None:
    sums = ColumnSums.empty(2)
    sums.add(np.array([[1.0, 5.0], [3.0, np.nan]]), np.array([[False, False], [False, True]]))
    assert sums.means().tolist() == [2.0, 5.0]
    assert np.isnan(ColumnSums.empty(1).means()[0])


@pytest.mark.parametrize("scale", [1.0, 6.0, 200.0])
def test_products_of_rows_are_those_of_the_grid_in_any_order(scale: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 4)) * scale
    grid = np.rint(np.clip(rows, -512, 512) * 2**16)
    integers = [[int(each) for each in row] for row in grid]
    truth = np.array([[sum(r[a] * r[b] for r in integers) for b in range(4)] for a in range(4)], dtype=object)
    totals = []
    for cuts in ([], [1, 7, 1500], [2999]):
        sums = ScatterSums.empty(4)
        for part in np.split(rng.permutation(rows), cuts):
            own = ScatterSums.empty(4)
            own.add(part)
            sums.merge(ScatterSums.from_data(own.as_data()))
        totals.append(sums.totals())
    for drift, scatter in totals:
        assert scatter.tolist() == [[each / 2**32 for each in row] for row in truth]
        assert drift.tolist() == [math.fsum(grid[:, k]) / 2**16 for k in range(4)]


def test_a_step_over_all_rows_is_a_step_of_em() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 5)) @ (np.eye(5) + 0.6 * rng.normal(size=(5, 5)))
    rows /= rows.std(axis=0)
    missing = rng.random(rows.shape) < 0.3
    rows[missing] = 0
    settled = fit_gaussian(rows, missing, tolerance=1e-9, max_iterations=500)
    filled, conditional = settled.expect(rows, missing)
    sums = ScatterSums.empty(5)
    sums.add(filled - settled.mean)
    drift, scatter = sums.totals()
    # Where EM has settled, a further step changes nothing.
    again = settled.improved(len(rows), drift, scatter + conditional / 2**24, 1.0)
    np.testing.assert_allclose(again.mean, settled.mean, atol=1e-6)
    np.testing.assert_allclose(again.covariance, settled.covariance, atol=1e-6)
