"""What every transport kernel promises, compared with the reference kernel run to a far smaller error."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from kernels import KERNELS
from otimpute.transport.cost import half_squared_distances
from otimpute.transport.kernels import cpu
from otimpute.transport.kernels.contract import Potentials, annealed_epsilons, precision
from otimpute.transport.kernels.select import select_kernel

MAX_ITERATIONS = 2000
LOOSE, TIGHT = 1e-4, 1e-9  # marginal errors; the cpu kernel runs in float32 for the first where it can, else in float64
# A kernel may project in float32 if that moves the weights of the plan by less than this (`_similarity` says so).
PROJECTION_ERROR = 1e-4
# Below this weight a point has no say in the marginal error, and its potential none in value and gradient.
NO_WEIGHT = 1e-12


class Problem(NamedTuple):
    """Two weighted clouds and the entropic strength, as a batch of one."""

    x: np.ndarray
    y: np.ndarray
    a: np.ndarray
    b: np.ndarray
    epsilon: float

    @property
    def spread(self) -> float:
        return float(np.ptp(np.concatenate([self.x, self.y], axis=1), axis=1).max())

    @property
    def cost(self) -> np.ndarray:
        return half_squared_distances(self.x, self.y)


class Solution(NamedTuple):
    """All a kernel has to say about a problem."""

    cross: Potentials
    self_x: Potentials
    self_y: Potentials
    gradient_x: np.ndarray
    gradient_y: np.ndarray


def _cloud(n: int, d: int, seed: int, centre: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, 1.0, size=(n, d))


def _weights(n: int, seed: int, without: tuple[int, ...] = ()) -> np.ndarray:
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, size=n)
    weights[list(without)] = 0.0
    return weights / weights.sum()


def _problem(x, y, a=None, b=None, *, share: float = 0.1, epsilon: float | None = None) -> Problem:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    a = np.full(len(x), 1 / len(x)) if a is None else np.asarray(a, dtype=float)
    b = np.full(len(y), 1 / len(y)) if b is None else np.asarray(b, dtype=float)
    epsilon = share * float(np.median(half_squared_distances(x, y))) if epsilon is None else epsilon
    return Problem(x[None], y[None], a[None], b[None], epsilon)


def _shape(n: int, m: int) -> Problem:
    return _problem(_cloud(n, 3, seed=n), _cloud(m, 3, seed=m + 100, centre=0.5), _weights(n, 1), _weights(m, 2))


def _with_an_outlier() -> tuple[np.ndarray, np.ndarray]:
    points = _cloud(7, 1, seed=1)
    points[0] = 1e3
    return points[:4], points[4:]


def _far_points_without_weight() -> Problem:
    x, y = _cloud(30, 3, seed=3), _cloud(17, 3, seed=4, centre=0.3)
    x[[0, 3]] += 50.0
    y[5] += 50.0
    return _problem(x, y, _weights(30, 5, without=(0, 3, 29)), _weights(17, 6, without=(5,)))


PROBLEMS = {
    **{f"{n}x{m}": _shape(n, m) for n, m in [(1, 1), (1, 7), (7, 1), (5, 3), (4, 5), (6, 4), (7, 10), (129, 64)]},
    "uniform weights": _problem(_cloud(30, 3, seed=3), _cloud(17, 3, seed=4, centre=0.3)),
    "some points without weight": _problem(
        _cloud(30, 3, seed=3), _cloud(17, 3, seed=4), _weights(30, 5, without=(0, 3, 29)), _weights(17, 6, without=(5,))
    ),
    "far points without weight": _far_points_without_weight(),
    "a point without weight nearer to a target than all others": _problem(
        [[0.0], [10.0], [11.0]], [[0.0], [1.0], [20.0]], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], epsilon=0.1
    ),
    "a point of next to no weight nearer to a target than all others": _problem(
        [[0.0], [10.0], [11.0]], [[0.0], [1.0], [20.0]], [0.5, 0.5, 1e-60], [0.5, 0.5, 1e-60], epsilon=0.1
    ),
    "duplicated points": _problem(_cloud(6, 3, seed=1).repeat(4, axis=0), _cloud(5, 3, seed=2).repeat(3, axis=0)),
    "all points equal": _problem(np.ones((5, 2)), np.ones((4, 2)), epsilon=0.1),
    "tiny epsilon": _problem(_cloud(5, 2, seed=1), _cloud(3, 2, seed=2), _weights(5, 1), _weights(3, 2), share=1e-3),
    "huge epsilon": _problem(_cloud(12, 2, seed=1), _cloud(9, 2, seed=2, centre=0.5), share=1e3),
    "outlier in x": _problem(*_with_an_outlier(), epsilon=0.1),
    "outlier in y": _problem(*_with_an_outlier()[::-1], epsilon=0.1),
    "large common offset": _problem(_cloud(20, 2, seed=1, centre=1e6), _cloud(15, 2, seed=2, centre=1e6)),
    "exp(-cost/epsilon) is zero in float64": _problem(_cloud(20, 2, seed=1), _cloud(15, 2, seed=2, centre=100.0), epsilon=1.0),
}


def _solve(kernel: str, problem: Problem, tolerance: float, max_iterations: int = MAX_ITERATIONS) -> Solution:
    solver = select_kernel(kernel)
    x, y, a, b, epsilon = problem
    cross = solver.cross(x, y, a, b, epsilon, tolerance, max_iterations)
    self_x = solver.itself(x, a, epsilon, tolerance, max_iterations)
    self_y = solver.itself(y, b, epsilon, tolerance, max_iterations)
    to_x = solver.project(x, x, a, self_x.f, epsilon), solver.project(y, x, a, cross.f, epsilon)
    to_y = solver.project(x, y, b, cross.g, epsilon), solver.project(y, y, b, self_y.f, epsilon)
    return Solution(cross, self_x, self_y, a[..., None] * (to_x[0] - to_y[0]), b[..., None] * (to_y[1] - to_x[1]))


@cache
def _solution(kernel: str, name: str, tolerance: float) -> Solution:
    return _solve(kernel, PROBLEMS[name], tolerance)


@cache
def _exact(name: str) -> Solution:
    solution = _solve("reference", PROBLEMS[name], 1e-12, 2 * MAX_ITERATIONS)
    assert max(part.error.max() for part in solution[:3]) <= TIGHT / 10, "the oracle itself has not converged"
    return solution


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


@pytest.fixture(params=(LOOSE, TIGHT), ids=("loose", "tight"))
def tolerance(request):
    return request.param


@pytest.fixture(params=PROBLEMS)
def name(request):
    return request.param


def test_the_error_asked_for_is_reached(kernel, name, tolerance):
    solution = _solution(kernel, name, tolerance)
    for part in (solution.cross, solution.self_x, solution.self_y):
        assert part.error <= tolerance


def test_marginals_of_the_plan_are_the_prescribed_weights(kernel, name, tolerance):
    problem, (cross, self_x, _, _, _) = PROBLEMS[name], _solution(kernel, name, tolerance)
    cases = [
        (cross.f, cross.g, problem.cost, problem.a, problem.b),
        (self_x.f, self_x.g, half_squared_distances(problem.x, problem.x), problem.a, problem.a),
    ]
    for f, g, cost, a, b in cases:
        # What float64 can know of potentials as large as the cost, in units of epsilon.
        rounding = 1e-14 * cost.max() / problem.epsilon
        with np.errstate(over="ignore", invalid="ignore"):  # the plan between points without weight does not matter
            plan = np.exp((f[:, :, None] + g[:, None, :] - cost) / problem.epsilon)
        plan = np.where((a[:, :, None] > NO_WEIGHT) & (b[:, None, :] > NO_WEIGHT), plan, 0.0) * a[:, :, None] * b[:, None, :]
        assert np.abs(plan.sum(axis=2) - a).sum() <= 1.1 * tolerance + rounding
        assert np.abs(plan.sum(axis=1) - b).sum() <= 1.1 * tolerance + rounding


def test_values_are_those_of_the_reference(kernel, name, tolerance):
    problem, solution, exact = PROBLEMS[name], _solution(kernel, name, tolerance), _exact(name)
    slack = tolerance * problem.epsilon + 1e-13 * problem.cost.max()
    weights = ((problem.a, problem.b), (problem.a, problem.a), (problem.b, problem.b))
    for part, expected, (a, b) in zip(solution[:3], exact[:3], weights, strict=True):
        value = (a * part.f).sum() + (b * part.g).sum()
        np.testing.assert_allclose(value, (a * expected.f).sum() + (b * expected.g).sum(), rtol=0, atol=slack)


def test_potentials_are_those_of_the_reference(kernel, name, tolerance):
    problem, solution, exact = PROBLEMS[name], _solution(kernel, name, tolerance), _exact(name)
    slack = 100 * tolerance * problem.epsilon + 1e-13 * problem.cost.max()
    _assert_same_potentials(solution, exact, problem.a[0] > NO_WEIGHT, problem.b[0] > NO_WEIGHT, slack)


def _assert_same_potentials(solution: Solution, expected: Solution, on_x, on_y, slack: float, member: int = 0) -> None:
    f, g, self_f, self_g = (potential[member] for potential in (*solution.cross[:2], solution.self_x.f, solution.self_y.f))
    assert np.isfinite(np.concatenate([f, g, self_f, self_g])).all()
    # Of the cross term only f + g is determined: a constant may move from one to the other.
    constant = (f - expected.cross.f[0])[on_x].mean()
    np.testing.assert_allclose((f - constant)[on_x], expected.cross.f[0, on_x], rtol=0, atol=slack)
    np.testing.assert_allclose((g + constant)[on_y], expected.cross.g[0, on_y], rtol=0, atol=slack)
    np.testing.assert_allclose(self_f[on_x], expected.self_x.f[0, on_x], rtol=0, atol=slack)
    np.testing.assert_allclose(self_g[on_y], expected.self_y.f[0, on_y], rtol=0, atol=slack)


def test_gradients_are_those_of_the_reference(kernel, name, tolerance):
    problem, solution, exact = PROBLEMS[name], _solution(kernel, name, tolerance), _exact(name)
    relative = 100 * tolerance + (0.0 if kernel == "reference" else PROJECTION_ERROR)
    for weights, gradient, expected in (
        (problem.a, solution.gradient_x, exact.gradient_x),
        (problem.b, solution.gradient_y, exact.gradient_y),
    ):
        assert (np.abs(gradient - expected) <= relative * problem.spread * weights[..., None] + 1e-15).all()


@pytest.mark.parametrize(
    ("name", "tolerance", "kind"),
    [
        ("5x3", LOOSE, np.float32),
        ("129x64", LOOSE, np.float32),
        ("5x3", TIGHT, np.float64),
        ("129x64", TIGHT, np.float64),
        ("tiny epsilon", LOOSE, np.float64),
        ("exp(-cost/epsilon) is zero in float64", LOOSE, np.float64),
    ],
)
def test_the_problems_above_run_the_cpu_kernel_in_both_precisions(name, tolerance, kind):
    x, y, _, _, epsilon = PROBLEMS[name]
    _, x_norms, y_norms, largest = cpu._similarity(x[0], y[0], epsilon)
    assert precision(x_norms, y_norms, largest, tolerance) == kind


def test_a_batch_is_its_members_one_by_one(kernel, tolerance):
    members = [_shape(9, 6)._replace(x=_cloud(9, 3, seed=s)[None], a=_weights(9, s)[None]) for s in range(3)]
    members[1] = members[1]._replace(y=members[1].y + 3.0)
    together = Problem(*(np.concatenate([member[k] for member in members]) for k in range(4)), members[0].epsilon)
    batch = _solve(kernel, together, tolerance)
    everywhere = slice(None)
    # The GPU kernel has one precision for the batch as a whole, which may be another for a member alone.
    rounding = PROJECTION_ERROR if kernel == "cuda" else 0.0
    for position, member in enumerate(members):
        alone = _solve(kernel, member, tolerance)
        # The reference anneals and stops for the batch as a whole, so that members may end nearer than alone.
        slack = 100 * tolerance * member.epsilon
        _assert_same_potentials(batch, alone, everywhere, everywhere, slack, member=position)
        for gradient, expected in zip(batch[3:], alone[3:], strict=True):
            np.testing.assert_allclose(gradient[position], expected[0], rtol=0, atol=100 * tolerance + rounding)


def test_results_have_the_shapes_and_types_of_the_contract(kernel):
    problem = Problem(*(np.repeat(part, 2, axis=0) for part in PROBLEMS["5x3"][:4]), PROBLEMS["5x3"].epsilon)
    cross, self_x, _, gradient_x, _ = _solve(kernel, problem, LOOSE)
    assert cross.f.shape == (2, 5)
    assert cross.g.shape == (2, 3)
    assert cross.error.shape == cross.n_iterations.shape == (2,)
    assert {part.dtype for part in (cross.f, cross.g, cross.error, self_x.f, gradient_x)} == {np.dtype(np.float64)}
    assert cross.n_iterations.dtype == np.int64
    assert (cross.n_iterations >= 1).all()
    np.testing.assert_array_equal(self_x.f, self_x.g)


def test_a_kernel_leaves_its_inputs_alone(kernel):
    before = PROBLEMS["7x10"]
    after = Problem(*(part.copy() for part in before[:4]), before.epsilon)
    _solve(kernel, after, LOOSE)
    for part, expected in zip(after[:4], before[:4], strict=True):
        np.testing.assert_array_equal(part, expected)


def test_sweeps_end_at_max_iterations_and_the_error_says_so(kernel):
    problem = PROBLEMS["129x64"]
    short = select_kernel(kernel).cross(*problem[:4], problem.epsilon, 0.0, 2)
    long = select_kernel(kernel).cross(*problem[:4], problem.epsilon, 0.0, 12)
    assert long.n_iterations[0] - short.n_iterations[0] == 10
    assert short.error > long.error > 0


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3])
def test_project_is_the_softmax_average_for_any_potential(kernel, size):
    x, y, _, b, epsilon = PROBLEMS["some points without weight"]
    g = np.random.default_rng(0).normal(size=b.shape) * size * epsilon
    weights = np.exp((g[:, None, :] - half_squared_distances(x, y) - g.max()) / epsilon) * b[:, None, :]
    expected = (weights / weights.sum(axis=2, keepdims=True)) @ y
    np.testing.assert_allclose(select_kernel(kernel).project(x, y, b, g, epsilon), expected, rtol=0, atol=1e-3)


def test_project_sends_a_point_without_weight_to_the_points_that_have_some(kernel):
    x, b = np.array([[[0.0], [100.0]]]), np.array([[1.0, 0.0]])
    projected = select_kernel(kernel).project(x, x, b, np.zeros((1, 2)), 0.1)
    np.testing.assert_allclose(projected, [[[0.0], [0.0]]], atol=1e-12)


@pytest.mark.parametrize(("name", "module"), [("reference", "reference"), ("cpu", "cpu"), ("cuda", "cuda"), ("auto", "cpu")])
def test_a_kernel_is_chosen_by_name(name, module):
    assert select_kernel(name).name == module


@pytest.mark.parametrize(("largest_cost", "epsilon"), [(0.0, 1.0), (0.5, 1.0), (1e6, 0.3), (1.0, 1e-300)])
def test_annealing_halves_from_the_largest_cost_to_epsilon(largest_cost, epsilon):
    levels = annealed_epsilons(largest_cost, epsilon)
    assert levels[-1] == epsilon
    assert levels[0] <= max(largest_cost, epsilon)
    assert levels[0] * 2 > largest_cost or len(levels) == 60
    assert [level / 2 for level in levels[:-1]] == levels[1:]
