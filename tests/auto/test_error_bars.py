"""Error bars: what share of fresh errors they cover, in which units, and from how little they can be learned."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.auto._error_bars import COVERED, HALF_WIDTH, ErrorBars, describe_cells


def draw(n_per_column: list[int], seed: int, *, heavy: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors that grow with the experts' disagreement and with a Gaussian's spread, more so in some columns than in others."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(n_per_column)), n_per_column)
    disagreement, spread = rng.gamma(2.0, 0.3, size=len(group)), rng.uniform(0.2, 1, size=len(group))
    noise = rng.standard_t(4, size=len(group)) if heavy else rng.normal(size=len(group))
    scale = np.array([0.2, 1.0, 3.0, 0.5])[group % 4]
    return noise * scale * (0.3 + 1.5 * disagreement + spread), describe_cells(disagreement, spread), group


def share_covered(bars: ErrorBars, errors, described, group) -> np.ndarray:
    inside = np.abs(errors) <= HALF_WIDTH * bars.at(described, group)
    return np.bincount(group, inside) / np.bincount(group)


@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy tails"])
def test_nine_of_ten_fresh_errors_are_covered_in_every_column(heavy):
    bars = ErrorBars.fit(*draw([2000, 2000, 2000], 0, heavy=heavy), 3)
    np.testing.assert_allclose(share_covered(bars, *draw([20_000] * 3, 1, heavy=heavy)), COVERED, rtol=0, atol=0.025)


def test_from_few_cells_bars_are_rather_too_wide_than_too_narrow():
    covered = [
        share_covered(ErrorBars.fit(*draw([8, 15, 60, 30], seed), 4), *draw([500] * 4, 1000 + seed)) for seed in range(60)
    ]
    assert (np.abs(np.mean(covered, axis=0) - 0.93) < 0.05).all()


def test_bars_follow_whatever_errors_follow():
    bars = ErrorBars.fit(*draw([20_000], 2), 1)
    cells = describe_cells(np.array([0.1, 2.0, 0.1]), np.array([0.2, 0.2, 1.0]))
    narrow, apart, wide = bars.at(cells, np.zeros(3, dtype=int))
    assert apart / narrow == pytest.approx((0.5 + 3.0) / (0.5 + 0.15), rel=0.25)
    assert wide / narrow == pytest.approx((1.3 + 0.15) / (0.5 + 0.15), rel=0.25)


def test_cells_count_as_much_as_the_missing_values_they_stand_for():
    errors, described, group = draw([3000], 3)
    large = np.arange(3000) < 600
    errors[large] *= 4
    plain = ErrorBars.fit(errors, described, group, 1)
    tilted = ErrorBars.fit(errors, described, group, 1, np.where(large, 4.0, 0.25))
    inside = np.abs(errors[large]) <= HALF_WIDTH * tilted.at(described, group)[large]
    assert inside.mean() == pytest.approx(COVERED, abs=0.03)
    assert plain.at(described, group).mean() < 0.8 * tilted.at(described, group).mean()


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_errors_in_other_units_give_bars_in_those(factor):
    errors, described, group = draw([40, 400], 3)
    in_units = described * [1, factor, factor]
    plain = ErrorBars.fit(errors, described, group, 2).at(described, group)
    np.testing.assert_allclose(
        ErrorBars.fit(factor * errors, in_units, group, 2).at(in_units, group), factor * plain, rtol=1e-6
    )


def test_the_sign_and_order_of_errors_do_not_matter():
    errors, described, group = draw([40, 400], 4)
    shuffled = np.random.default_rng(0).permutation(len(errors))
    plain = ErrorBars.fit(errors, described, group, 2)
    other = ErrorBars.fit(-errors[shuffled], described[shuffled], group[shuffled], 2)
    np.testing.assert_allclose(other.weights, plain.weights, rtol=1e-6, atol=1e-9)


def test_a_column_without_cells_gets_the_bars_of_the_average_column():
    bars = ErrorBars.fit(*draw([3000, 0, 0], 5), 3)
    np.testing.assert_allclose(bars.weights[1:], bars.weights[[0, 0]], rtol=0.1, atol=0.01)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_cells_of_one_table_give_finite_bars_above_zero(n):
    described = describe_cells(np.linspace(1, 2, n), np.ones(n))
    bars = ErrorBars.fit(np.linspace(0.1, 1, n), described, np.zeros(n, dtype=int), 2)
    std = bars.at(describe_cells(np.array([0.5, 0.5]), np.ones(2)), np.array([0, 1]))
    assert np.isfinite(std).all()
    assert (std > 0).all()


@pytest.mark.parametrize("disagreement", [0.0, 0.4])
def test_experts_that_always_disagree_alike_give_one_width(disagreement):
    errors = np.random.default_rng(6).normal(size=4000)
    described = describe_cells(np.full(4000, disagreement), np.zeros(4000))
    bars = ErrorBars.fit(errors, described, np.zeros(4000, dtype=int), 1)
    assert bars.at(described[:1], np.array([0]))[0] == pytest.approx(1, abs=0.06)


def test_without_any_evidence_a_value_may_be_off_by_as_much_as_values_differ():
    bars = ErrorBars.fit(np.empty(0), np.empty((0, 3)), np.empty(0, dtype=int), 2)
    np.testing.assert_array_equal(bars.at(describe_cells(np.array([0.0, 0.3]), np.zeros(2)), np.array([0, 1])), [1, 1])


def test_imputation_without_error_has_bars_next_to_zero():
    described = describe_cells(np.zeros(50), np.zeros(50))
    bars = ErrorBars.fit(np.zeros(50), described, np.zeros(50, dtype=int), 1)
    assert 0 <= bars.at(described[:1], np.zeros(1, dtype=int))[0] < 1e-3
