"""The rules for epsilon, by medians computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.transport import EPSILON_RULES, epsilon_from_rule


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Three points on a line: distances 1, 2, 3 and costs 1/2, 2, 9/2, so medians 2 and 2. Four points: distances
# 1, 2, 3, 4, 6, 7 with median 7/2 and costs 1/2, 2, 9/2, 8, 18, 49/2 with median 25/4.
THREE, FOUR = [[0.0], [1.0], [3.0]], [[0.0], [1.0], [3.0], [7.0]]
# A right triangle in the plane with sides 3, 4, 5: medians 4 and 8.
TRIANGLE = [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize(
    ("points", "rule", "expected"),
    [
        (THREE, "auto", 0.02),
        (THREE, "cost", 0.1),
        (THREE, "authors", 0.01),
        (THREE, "distance", 0.1),
        (FOUR, "auto", 0.0625),
        (FOUR, "cost", 0.3125),
        (FOUR, "authors", 0.09765625),
        (FOUR, "distance", 0.175),
        (TRIANGLE, "auto", 0.08),
        (TRIANGLE, "cost", 0.4),
        (TRIANGLE, "authors", 0.16),
        (TRIANGLE, "distance", 0.2),
    ],
)
def test_epsilon_is_a_share_of_the_median_over_pairs(points, rule, expected):
    assert epsilon_from_rule(np.array(points), rule, _rng()) == pytest.approx(expected, rel=1e-12)


def test_authors_is_the_square_of_cost():
    points = _rng(1).normal(size=(150, 4))
    cost = epsilon_from_rule(points, "cost", _rng())
    assert epsilon_from_rule(points, "authors", _rng()) == pytest.approx(cost**2, rel=1e-12)


def test_median_is_over_all_pairs_of_different_rows():
    points = _rng(2).normal(size=(150, 3))  # more rows than one block of the computation holds
    difference = points[:, None] - points[None, :]
    costs = 0.5 * (difference**2).sum(axis=2)[np.triu_indices(150, k=1)]
    assert epsilon_from_rule(points, "cost", _rng()) == pytest.approx(0.05 * np.median(costs), rel=1e-12)


@pytest.mark.parametrize(("rule", "power"), [("auto", 2), ("cost", 2), ("authors", 4), ("distance", 1)])
def test_epsilon_grows_with_the_unit_of_the_points(rule, power):
    points = _rng(3).normal(size=(40, 3))
    scaled = epsilon_from_rule(10 * points + 1e3, rule, _rng())
    assert scaled == pytest.approx(10**power * epsilon_from_rule(points, rule, _rng()), rel=1e-9)


@pytest.mark.parametrize("rule", EPSILON_RULES)
@pytest.mark.parametrize(
    "points", [np.full((6, 2), 3.5), np.array([[1.0, 2.0]]), np.empty((0, 3))], ids=["copies", "one point", "no point"]
)
def test_epsilon_of_a_cloud_without_spread_is_one(points, rule):
    assert epsilon_from_rule(points, rule, _rng()) == 1.0


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("auto", 0.002), ("cost", 0.01), ("authors", 0.0001), ("distance", 0.02)],
)
def test_epsilon_of_mostly_copies_comes_from_the_mean(rule, expected):
    points = np.array([[0.0], [0.0], [0.0], [0.0], [1.0]])  # 4 of 10 pairs cost ½ at distance 1: medians 0, means 1/5 and 2/5
    assert epsilon_from_rule(points, rule, _rng()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("convert", [np.float32, np.int64, np.float64])
def test_epsilon_does_not_depend_on_the_type_of_the_numbers(convert):
    epsilon = epsilon_from_rule(np.array(FOUR).astype(convert), "cost", _rng())
    assert type(epsilon) is float
    assert epsilon == 0.3125


def test_epsilon_of_many_points_is_that_of_a_sample_drawn_by_the_generator():
    points = _rng(4).normal(size=(3000, 2))
    first, again, other = (epsilon_from_rule(points, "cost", _rng(seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    # E ½‖x − y‖² over the plane has median 2 log 2 for standard Gaussians (an exponential law of mean 2).
    assert first == pytest.approx(0.05 * 2 * np.log(2), rel=0.05)


@pytest.mark.parametrize(("n", "draws"), [(1000, False), (1001, True)])
def test_only_more_than_a_thousand_points_use_the_generator(n, draws):
    points, rng = _rng(7).normal(size=(n, 1)), _rng(8)
    before = rng.bit_generator.state
    epsilon_from_rule(points, "auto", rng)
    assert (rng.bit_generator.state != before) is draws


@pytest.mark.parametrize("rule", ["median", "", None])
def test_an_unknown_rule_is_refused_with_the_known_ones(rule):
    message = "epsilon must be a number > 0 or one of 'auto', 'cost', 'authors', 'distance', got "
    with pytest.raises(ValueError, match=message + repr(rule)):
        epsilon_from_rule(np.array(THREE), rule, _rng())
