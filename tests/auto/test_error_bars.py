"""Error bars: what share of fresh errors they cover, in which units, and from how little they can be learned."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.auto._error_bars import COVERED, HALF_WIDTH, ErrorBars


def draw(n_per_column: list[int], seed: int, *, heavy: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors whose size grows with the experts' disagreement, more so in some columns than in others."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(n_per_column)), n_per_column)
    disagreement = rng.gamma(2.0, 0.3, size=len(group))
    noise = rng.standard_t(4, size=len(group)) if heavy else rng.normal(size=len(group))
    scale = np.array([0.2, 1.0, 3.0, 0.5])[group % 4]
    return noise * scale * (0.3 + 1.5 * disagreement), disagreement, group


def share_covered(bars: ErrorBars, errors, disagreement, group) -> np.ndarray:
    inside = np.abs(errors) <= HALF_WIDTH * bars.at(disagreement, group)
    return np.bincount(group, inside) / np.bincount(group)


@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy tails"])
def test_nine_of_ten_fresh_errors_are_covered_in_every_column(heavy):
    n = [2000, 2000, 2000]
    bars = ErrorBars.fit(*draw(n, 0, heavy=heavy), 3)
    np.testing.assert_allclose(share_covered(bars, *draw([20_000] * 3, 1, heavy=heavy)), COVERED, rtol=0, atol=0.025)


def test_from_few_cells_bars_are_rather_too_wide_than_too_narrow():
    covered = [
        share_covered(ErrorBars.fit(*draw([8, 15, 60, 30], seed), 4), *draw([500] * 4, 1000 + seed)) for seed in range(60)
    ]
    assert (np.abs(np.mean(covered, axis=0) - 0.93) < 0.05).all()


def test_where_experts_disagree_bars_are_as_much_wider_as_errors_are():
    bars = ErrorBars.fit(*draw([5000], 2), 1)
    narrow, wide = bars.at(np.array([0.1, 2.0]), np.zeros(2, dtype=int))
    assert wide / narrow == pytest.approx((0.3 + 1.5 * 2.0) / (0.3 + 1.5 * 0.1), rel=0.2)


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_errors_and_disagreement_in_other_units_give_bars_in_those(factor):
    errors, disagreement, group = draw([40, 400], 3)
    plain = ErrorBars.fit(errors, disagreement, group, 2)
    scaled = ErrorBars.fit(factor * errors, factor * disagreement, group, 2)
    np.testing.assert_allclose(scaled.base, factor * plain.base, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(scaled.slope, plain.slope, rtol=1e-6, atol=1e-12)


def test_the_sign_and_order_of_errors_do_not_matter():
    errors, disagreement, group = draw([40, 400], 4)
    shuffled = np.random.default_rng(0).permutation(len(errors))
    plain, other = (
        ErrorBars.fit(errors, disagreement, group, 2),
        ErrorBars.fit(-errors[shuffled], disagreement[shuffled], group[shuffled], 2),
    )
    np.testing.assert_allclose(other.base, plain.base, rtol=1e-9)
    np.testing.assert_allclose(other.slope, plain.slope, rtol=1e-9)


def test_a_column_without_cells_gets_the_bars_of_the_average_column():
    errors, disagreement, group = draw([3000, 0, 0], 5)
    bars = ErrorBars.fit(errors, disagreement, group, 3)
    assert bars.base[1:] == pytest.approx(bars.base[0], rel=0.1)
    assert bars.slope[1:] == pytest.approx(bars.slope[0], rel=0.1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_cells_of_one_table_give_finite_bars_above_zero(n):
    bars = ErrorBars.fit(np.linspace(0.1, 1, n), np.linspace(1, 2, n), np.zeros(n, dtype=int), 2)
    std = bars.at(np.array([0.5, 0.5]), np.array([0, 1]))
    assert np.isfinite(std).all()
    assert (std > 0).all()


@pytest.mark.parametrize("disagreement", [0.0, 0.4])
def test_experts_that_always_disagree_alike_give_one_width(disagreement):
    errors = np.random.default_rng(6).normal(size=4000)
    bars = ErrorBars.fit(errors, np.full(4000, disagreement), np.zeros(4000, dtype=int), 1)
    assert bars.at(np.array([disagreement]), np.array([0]))[0] == pytest.approx(1, abs=0.06)


def test_without_any_evidence_a_value_may_be_off_by_as_much_as_values_differ():
    nothing = np.empty(0)
    bars = ErrorBars.fit(nothing, nothing, np.empty(0, dtype=int), 2)
    np.testing.assert_array_equal(bars.at(np.array([0.0, 0.3]), np.array([0, 1])), [1, 1])


def test_imputation_without_error_has_bars_next_to_zero():
    bars = ErrorBars.fit(np.zeros(50), np.zeros(50), np.zeros(50, dtype=int), 1)
    assert 0 <= bars.at(np.zeros(1), np.zeros(1, dtype=int))[0] < 1e-3
