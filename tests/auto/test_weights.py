"""How experts are weighed: against a general optimiser, and where evidence is wild, scarce or missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from otimpute.auto._weights import learn_weights

LARGE = 0.7  # where Huber's loss turns, in root mean squared errors of the best expert


def huber(errors: np.ndarray, weights: np.ndarray) -> float:
    best = np.sqrt((errors**2).mean(axis=0).min())
    size = np.abs(errors @ weights) / best
    return float(np.where(size <= LARGE, size**2 / 2, LARGE * size - LARGE**2 / 2).mean())


def best_weights(errors: np.ndarray) -> np.ndarray:
    n_experts = errors.shape[1]
    found = minimize(
        lambda weights: huber(errors, weights),
        np.full(n_experts, 1 / n_experts),
        method="SLSQP",
        bounds=[(0, 1)] * n_experts,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return np.asarray(found.x)


def one_column(errors: np.ndarray) -> np.ndarray:
    return learn_weights(errors, np.zeros(len(errors), dtype=int), np.ones(1, dtype=int))[0]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_weights_are_not_negative_and_sum_to_one(data):
    n_experts, n_groups = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    n = data.draw(st.integers(0, 12))
    sizes = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1e-12, 1e12, -1e12]))
    errors = data.draw(hnp.arrays(float, (n, n_experts), elements=sizes))
    group = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, n_groups - 1)))
    weights = learn_weights(errors, group, np.ones(n_groups, dtype=int))
    assert weights.shape == (n_groups, n_experts)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert ((weights == 0) | (weights >= 0.0099)).all()  # crumbs are dropped


@pytest.mark.parametrize("heavy", [False, True], ids=["normal errors", "heavy tails"])
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_one_column_are_those_of_a_general_optimiser(seed, heavy):
    rng = np.random.default_rng(seed)
    noise = rng.standard_t(3, size=(800, 4)) if heavy else rng.normal(size=(800, 4))
    errors = noise @ (rng.uniform(0.2, 0.8, size=(4, 4)) + np.diag(rng.uniform(0.3, 1.5, size=4)))
    expected, weights = best_weights(errors), one_column(errors)
    assert huber(errors, weights) <= huber(errors, expected) * 1.001
    np.testing.assert_allclose(weights, expected, rtol=0, atol=0.02)


def test_independent_experts_count_by_the_inverse_of_their_variance():
    errors = np.random.default_rng(0).normal(size=(40_000, 3)) * [1.0, 1.0, 2.0]
    np.testing.assert_allclose(one_column(errors), np.array([4, 4, 1]) / 9, rtol=0, atol=0.02)


def test_an_expert_that_only_repeats_another_with_noise_gets_next_to_nothing():
    rng = np.random.default_rng(1)
    good = rng.normal(size=20_000)
    assert one_column(np.column_stack([good, good + 0.5 * rng.normal(size=20_000)]))[1] < 0.03


def test_an_expert_that_explodes_in_a_few_cells_gets_next_to_nothing():
    rng = np.random.default_rng(2)
    errors = rng.normal(size=(1000, 3))
    errors[:, 2] *= 0.5  # the best elsewhere
    errors[::100, 2] = 1e3
    weights = one_column(errors)
    assert weights[2] < 0.03
    np.testing.assert_allclose(weights[:2], 0.5, rtol=0, atol=0.05)


def test_one_wild_cell_in_all_experts_does_not_decide():
    rng = np.random.default_rng(3)
    errors = rng.normal(size=(1000, 2)) * [1.0, 2.0]
    spoiled = np.vstack([errors, [[60.0, 50.0]]])  # squared, this cell alone would outweigh the others
    np.testing.assert_allclose(one_column(spoiled), one_column(errors), rtol=0, atol=0.05)


def test_columns_borrow_from_the_others_as_far_as_they_say_little_themselves():
    rng = np.random.default_rng(4)
    # Two long columns prefer the first expert. So would not the others: one of 3 cells, one of 5000, and one without any.
    sizes, preferred = [4000, 4000, 3, 5000, 0], [0, 0, 1, 1, 0]
    group = np.repeat(np.arange(5), sizes)
    spread = np.where(np.arange(2) == np.repeat(preferred, sizes)[:, None], 1.0, 3.0)
    weights = learn_weights(rng.normal(size=(len(group), 2)) * spread, group, np.ones(5, dtype=int))
    own = 0.9  # by inverse variance
    np.testing.assert_allclose(weights[[0, 1], 0], own, rtol=0, atol=0.02)
    assert weights[3, 1] == pytest.approx(own, abs=0.02)
    together = weights[4]  # nothing but what is borrowed
    assert 0.5 < together[0] < own
    np.testing.assert_allclose(weights[2], together, rtol=0, atol=0.12)


def test_columns_count_alike_whatever_their_errors_are():
    """What is borrowed is measured in errors of a column's best expert: a hopeless column does not drown the others."""
    rng = np.random.default_rng(5)
    errors = rng.normal(size=(2000, 2)) * [1.0, 2.0]
    group = np.repeat([0, 1], 1000)
    scaled = np.where(group[:, None] == 1, 1e6 * errors, errors)
    np.testing.assert_allclose(
        learn_weights(scaled, group, np.ones(2, dtype=int)),
        learn_weights(errors, group, np.ones(2, dtype=int)),
        rtol=0,
        atol=1e-6,
    )


def test_no_evidence_gives_equal_weights():
    np.testing.assert_array_equal(
        learn_weights(np.empty((0, 4)), np.empty(0, dtype=int), np.ones(3, dtype=int)), np.full((3, 4), 0.25)
    )


def test_experts_without_any_error_share_the_weight():
    weights = learn_weights(np.zeros((10, 2)), np.zeros(10, dtype=int), np.ones(1, dtype=int))
    np.testing.assert_allclose(weights, [[0.5, 0.5]])
