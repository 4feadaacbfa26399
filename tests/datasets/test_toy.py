"""Toy clouds lie near the curves they are named after."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.datasets import list_toys, make_toy


def curve(name: str) -> np.ndarray:
    """Points all along the curve, written down apart from the generator."""
    half, full = np.linspace(0, np.pi, 2000), np.linspace(0, 2 * np.pi, 4000)
    moon, circle = (np.column_stack((np.cos(t), np.sin(t))) for t in (half, full))
    hook = np.linspace(0, 1.5 * np.pi, 4000)
    upper = np.column_stack((np.sin(hook), np.cos(hook) - 1))
    return {
        "half_moon": moon,
        "two_moons": np.vstack((moon, np.column_stack((1 - moon[:, 0], 0.5 - moon[:, 1])))),
        "circles": np.vstack((circle, circle / 2)),
        "s_curve": np.vstack((upper, -upper)),
    }[name]


@pytest.mark.parametrize("name", list_toys())
def test_points_are_near_the_curve_and_cover_it(name: str) -> None:
    points, line = make_toy(name, 2000, random_state=0), curve(name)
    distances = np.linalg.norm(points[:, None] - line[None, ::10], axis=2)
    assert 0.01 < distances.min(axis=1).mean() < 0.06
    assert distances.min(axis=1).max() < 0.25
    assert distances.min(axis=0).max() < 0.15


@pytest.mark.parametrize("name", list_toys())
def test_the_same_seed_or_generator_gives_the_same_points(name: str) -> None:
    seeded = make_toy(name, 50, random_state=7)
    drawn = [make_toy(name, 50, random_state=np.random.default_rng(7)) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
    np.testing.assert_array_equal(seeded, make_toy(name, 50, random_state=np.int64(7)))
    assert not np.array_equal(seeded, make_toy(name, 50, random_state=8))
    assert seeded.shape == (50, 2)
    assert seeded.dtype == np.float64


@pytest.mark.parametrize("name", list_toys())
def test_a_generator_moves_on(name: str) -> None:
    rng = np.random.default_rng(0)
    assert not np.array_equal(make_toy(name, 5, rng), make_toy(name, 5, rng))


def test_the_two_parts_have_half_of_the_points_each_in_mixed_order() -> None:
    radius = np.linalg.norm(make_toy("circles", 1001, random_state=0), axis=1)
    inner = radius < 0.75
    assert inner.sum() == 500
    assert 200 < inner[:500].sum() < 300


def test_the_shapes_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import make_circles, make_moons, make_s_curve

    theirs = {
        "s_curve": make_s_curve(4000, noise=0.05, random_state=0)[0][:, [0, 2]],
        "two_moons": make_moons(4000, noise=0.05, random_state=0)[0],
        "circles": make_circles(4000, noise=0.03, factor=0.5, random_state=0)[0],
    }
    for name, expected in theirs.items():
        ours = make_toy(name, 4000, random_state=1)
        np.testing.assert_allclose(ours.mean(axis=0), expected.mean(axis=0), atol=0.08)
        np.testing.assert_allclose(np.cov(ours.T), np.cov(expected.T), atol=0.12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("spiral", 5, 0), ValueError, "name must be one of 'circles', 'half_moon', 's_curve', 'two_moons', got 'spiral'"),
        (("circles", 0, 0), ValueError, "n must be a whole number >= 1, got 0"),
        (("circles", 2.5, 0), TypeError, "n must be a whole number >= 1, got 2.5"),
        (("circles", 5, "seed"), ValueError, "random_state must be None, .* got 'seed'"),
        (("circles", 5, -1), ValueError, "got -1"),
        (("circles", 5, True), ValueError, "got True"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_toy(*arguments)
