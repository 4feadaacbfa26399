"""The Sinkhorn divergence against oracles from outside: finite differences, closed forms, POT and geomloss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.linalg import sqrtm

from kernels import KERNELS
from otimpute import sinkhorn_divergence
from otimpute.exceptions import NotConvergedWarning
from otimpute.transport.cost import half_squared_distances

TIGHT = {"tol": 1e-9, "max_iter": 5000}


def _clouds(n: int = 9, m: int = 6, d: int = 2, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Two clouds and their weights."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(0.7, 1.3, size=(m, d))
    a, b = rng.uniform(0.2, 2.0, size=n), rng.uniform(0.2, 2.0, size=m)
    return x, y, a / a.sum(), b / b.sum()


def _plan(result, x, y, a, b, epsilon: float) -> np.ndarray:
    exponent = (result.f[:, None] + result.g[None, :] - half_squared_distances(x, y)) / epsilon
    return a[:, None] * b[None, :] * np.exp(exponent)


def _close(actual, expected, relative: float = 0.0, absolute: float = 0.0) -> None:
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute)


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


# --- Oracles from outside ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("moved", [0, 1], ids=["x", "y"])
def test_gradients_are_the_finite_differences_of_the_value(moved, epsilon):
    clouds = _clouds(n=4, m=3)

    def value(points: np.ndarray) -> float:
        moved_clouds = [points if k == moved else part for k, part in enumerate(clouds)]
        return sinkhorn_divergence(*moved_clouds, epsilon=epsilon, kernel="reference", tol=1e-11, max_iter=10_000).value

    result = sinkhorn_divergence(*clouds, epsilon=epsilon, kernel="reference", tol=1e-11, max_iter=10_000)
    gradient = (result.gradient_x, result.gradient_y)[moved]
    step = 1e-4
    for index in np.ndindex(gradient.shape):
        direction = np.zeros_like(gradient)
        direction[index] = step
        difference = (value(clouds[moved] + direction) - value(clouds[moved] - direction)) / (2 * step)
        _close(gradient[index], difference, absolute=1e-7)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_plan_and_cost_are_those_of_pot(kernel, epsilon):
    ot = pytest.importorskip("ot")
    x, y, a, b = _clouds()
    cost = half_squared_distances(x, y)
    expected = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", stopThr=1e-10, numItermax=5000)
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(_plan(result, x, y, a, b, epsilon), expected, absolute=1e-8)
    # POT's regulariser is the entropy of the plan, which has the same minimiser; the value needs ours.
    divergence = (expected * np.log(expected / (a[:, None] * b[None, :]))).sum()
    _close(a @ result.f + b @ result.g, (expected * cost).sum() + epsilon * divergence, relative=1e-8)


@pytest.mark.parametrize("epsilon", [0.8, 2.0, 10.0])
def test_value_is_that_of_three_kl_regularised_problems_of_pot(kernel, epsilon):
    ot = pytest.importorskip("ot")
    x, y, a, b = _clouds(seed=1)

    def transport(x, y, a, b) -> float:
        cost = half_squared_distances(x, y)
        return ot.solve(cost, a, b, reg=epsilon, reg_type="KL", tol=1e-10, max_iter=5000).value

    expected = transport(x, y, a, b) - transport(x, x, a, a) / 2 - transport(y, y, b, b) / 2
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(result.value, expected, relative=1e-6)


@pytest.mark.parametrize(("epsilon", "relative"), [(0.5, 2e-2), (2.0, 1e-3), (5.0, 2e-4)])
def test_value_and_gradient_are_those_of_geomloss(kernel, epsilon, relative):
    torch = pytest.importorskip("torch")
    geomloss = pytest.importorskip("geomloss")
    x, y, a, b = _clouds(n=20, m=15, seed=2)
    # geomloss anneals epsilon once and stops there: its gradient is as far from the limit as 1 - scaling is from zero.
    loss = geomloss.SamplesLoss("sinkhorn", p=2, blur=epsilon**0.5, scaling=0.999, debias=True, backend="tensorized")
    points = torch.tensor(x, requires_grad=True)
    value = loss(torch.tensor(a), points, torch.tensor(b), torch.tensor(y))
    gradient = torch.autograd.grad(value, [points])[0].numpy()
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(result.value, value.item(), relative=1e-5)
    _close(result.gradient_x, gradient, absolute=relative * np.abs(gradient).max())


def _entropic_transport_of_gaussians(shift, A, B, epsilon: float) -> float:
    """Minimum of E ½‖X − Y‖² + ε I(X, Y) over Gaussian couplings of covariances A and B, the means ``shift`` apart.

    In one dimension, with variances s² and t², the covariance c of the coupling minimises
    ½(shift² + s² + t²) − c − ε/2 log(1 − c²/(st)²), hence c² + εc = (st)². In more, c and st become the singular values
    of the whitened cross-covariance and of A^½ B^½, and the terms add up.
    """
    root = np.real(sqrtm(A))
    st = np.sqrt(np.linalg.eigvalsh(root @ B @ root))
    c = (np.sqrt(epsilon**2 + 4 * st**2) - epsilon) / 2
    cost = 0.5 * (shift @ shift + np.trace(A) + np.trace(B)) - c.sum()
    return cost - epsilon / 2 * np.log1p(-((c / st) ** 2)).sum()


def _gaussian_on_a_grid(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian as weights on a regular grid: the trapezoid rule is exact to rounding for smooth integrands."""
    axis = np.linspace(-6.0, 6.0, 25)
    grid = np.stack(np.meshgrid(*[axis] * len(mean), indexing="ij"), axis=-1).reshape(-1, len(mean))
    weights = np.exp(-0.5 * (grid**2).sum(axis=1))
    heavy = weights > 1e-7
    points = mean + grid[heavy] @ np.linalg.cholesky(covariance).T
    return points, weights[heavy] / weights[heavy].sum()


_TILTED = (np.array([[1.0, 0.6], [0.6, 1.5]]), np.array([[0.8, -0.3], [-0.3, 0.5]]))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 20.0])
@pytest.mark.parametrize(("A", "B"), [(np.array([[1.0]]), np.array([[4.0]])), _TILTED], ids=["one dimension", "two dimensions"])
def test_value_and_gradient_between_gaussians_have_the_closed_form(kernel, A, B, epsilon):
    mean_x, mean_y = np.arange(len(A)) * 0.5, np.arange(len(A)) * -1.0 + 0.3
    x, a = _gaussian_on_a_grid(mean_x, A)
    y, b = _gaussian_on_a_grid(mean_y, B)
    nothing = np.zeros(len(A))
    expected = (
        _entropic_transport_of_gaussians(mean_x - mean_y, A, B, epsilon)
        - _entropic_transport_of_gaussians(nothing, A, A, epsilon) / 2
        - _entropic_transport_of_gaussians(nothing, B, B, epsilon) / 2
    )
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, tol=1e-6)
    _close(result.value, expected, absolute=1e-4 * epsilon)
    # All conditional means are linear and those of a cloud to itself keep the mean: the total pull is mean to mean.
    _close(result.gradient_x.sum(axis=0), mean_x - mean_y, absolute=1e-4)
    if len(A) == 1:
        slope = [(np.sqrt(epsilon**2 + 4 * A[0, 0] * S[0, 0]) - epsilon) / (2 * A[0, 0]) for S in (A, B)]
        map_x, map_y = mean_x + slope[0] * (x - mean_x), mean_y + slope[1] * (x - mean_x)
        _close(result.gradient_x, a[:, None] * (map_x - map_y), absolute=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_value_at_small_epsilon_is_the_exact_transport_cost(kernel, weighted):
    ot = pytest.importorskip("ot")
    x, y, a, b = _clouds(n=7, m=7 if not weighted else 5, d=3, seed=3)
    if not weighted:
        y, a, b = x[::-1] + 0.3 * y, np.full(7, 1 / 7), np.full(7, 1 / 7)
    exact = 0.5 * ot.emd2(a, b, ot.dist(x, y, metric="sqeuclidean"))
    epsilon = 0.01 * float(np.median(half_squared_distances(x, y)))
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, max_iter=20_000)
    _close(result.value, exact, absolute=epsilon)


# --- Facts that hold for any clouds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_divergence_of_two_diracs_is_half_their_squared_distance(kernel, epsilon):
    result = sinkhorn_divergence([[1.0, 2.0]], [[4.0, -2.0]], epsilon=epsilon, kernel=kernel)
    _close(result.value, 12.5, absolute=1e-6 * max(epsilon, 12.5))
    rounding = 1e-6 if kernel == "cuda" else 1e-9  # it projects in float32 where that is enough
    _close(result.gradient_x, [[-3.0, 4.0]], absolute=rounding)
    _close(result.gradient_y, [[3.0, -4.0]], absolute=rounding)


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_divergence_of_a_cloud_with_itself_is_zero(kernel, epsilon):
    x, _, a, _ = _clouds()
    result = sinkhorn_divergence(x, x, a, a, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(result.value, 0.0, absolute=1e-6 * epsilon)
    _close(result.gradient_x, np.zeros_like(x), absolute=1e-5)
    _close(result.gradient_y, np.zeros_like(x), absolute=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
@pytest.mark.parametrize("length", [1e-3, 1.0, 100.0])
def test_divergence_of_a_cloud_and_its_translate_is_half_the_squared_length(kernel, length, epsilon):
    x, _, a, _ = _clouds()
    shift = np.array([0.6, -0.8]) * length
    result = sinkhorn_divergence(x, x + shift, a, a, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(result.value, length**2 / 2, relative=1e-9, absolute=1e-7 * epsilon)
    _close(result.gradient_x, -a[:, None] * shift, relative=1e-9, absolute=1e-5)


def test_divergence_is_symmetric(kernel):
    x, y, a, b = _clouds()
    there = sinkhorn_divergence(x, y, a, b, epsilon=0.3, kernel=kernel, **TIGHT)
    back = sinkhorn_divergence(y, x, b, a, epsilon=0.3, kernel=kernel, **TIGHT)
    _close(there.value, back.value, relative=1e-8)
    _close(there.gradient_x, back.gradient_y, absolute=1e-5)
    _close(there.gradient_y, back.gradient_x, absolute=1e-5)


def test_order_of_the_points_does_not_matter(kernel):
    x, y, a, b = _clouds()
    i, j = np.random.default_rng(1).permutation(len(x)), np.random.default_rng(2).permutation(len(y))
    result = sinkhorn_divergence(x, y, a, b, epsilon=0.3, kernel=kernel, **TIGHT)
    shuffled = sinkhorn_divergence(x[i], y[j], a[i], b[j], epsilon=0.3, kernel=kernel, **TIGHT)
    _close(shuffled.value, result.value, relative=1e-8)
    _close(shuffled.gradient_x, result.gradient_x[i], absolute=1e-5)
    _close(shuffled.gradient_y, result.gradient_y[j], absolute=1e-5)


def test_a_point_twice_is_a_point_of_twice_the_weight(kernel):
    x, y, a, b = _clouds()
    twice = np.concatenate([x, x[:1]]), y, np.concatenate([a[:1] / 2, a[1:], a[:1] / 2]), b
    result = sinkhorn_divergence(x, y, a, b, epsilon=0.3, kernel=kernel, **TIGHT)
    doubled = sinkhorn_divergence(*twice, epsilon=0.3, kernel=kernel, **TIGHT)
    _close(doubled.value, result.value, relative=1e-8)
    _close(doubled.gradient_x[0] + doubled.gradient_x[-1], result.gradient_x[0], absolute=1e-5)


@pytest.mark.parametrize("unit", [1e-25, 1e-3, 1e3, 1e25])
def test_divergence_has_the_square_of_the_unit_of_the_points(kernel, unit):
    x, y, a, b = _clouds()
    result = sinkhorn_divergence(x, y, a, b, epsilon=0.3, kernel=kernel)
    scaled = sinkhorn_divergence(x * unit, y * unit, a, b, epsilon=0.3 * unit**2, kernel=kernel)
    _close(scaled.value / unit**2, result.value, relative=1e-5)
    _close(scaled.gradient_x / unit, result.gradient_x, absolute=1e-4)


def test_divergence_at_huge_epsilon_is_half_the_squared_distance_of_the_means(kernel):
    x, y, a, b = _clouds()
    means = a @ x - b @ y
    epsilon = 1e3 * float(np.median(half_squared_distances(x, y)))
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel, **TIGHT)
    _close(result.value, means @ means / 2, relative=2e-3)
    _close(result.gradient_x, a[:, None] * means, relative=1e-2)


@st.composite
def _any_clouds(draw):
    d = draw(st.integers(1, 3))
    coordinates = st.floats(-10, 10, allow_subnormal=False)
    x, y = (draw(hnp.arrays(float, (draw(st.integers(1, 6)), d), elements=coordinates)) for _ in range(2))
    a, b = (draw(hnp.arrays(float, len(points), elements=st.floats(0.01, 1.0))) for points in (x, y))
    return x, y, a / a.sum(), b / b.sum(), draw(st.floats(0.1, 10.0))


@pytest.mark.parametrize("kernel_name", KERNELS)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(clouds=_any_clouds())
def test_divergence_is_never_negative(kernel_name, clouds):
    x, y, a, b, share = clouds
    epsilon = share * float(half_squared_distances(x, y).max()) + 1e-3
    result = sinkhorn_divergence(x, y, a, b, epsilon=epsilon, kernel=kernel_name, max_iter=20_000)
    assert result.value >= -1e-4 * epsilon
    assert result.marginal_error <= 1e-4


@pytest.mark.parametrize("shared_weights", [True, False])
def test_a_batch_is_its_members_one_by_one(kernel, shared_weights):
    members = [_clouds(seed=seed) for seed in range(3)]
    x, y, a, b = (np.stack(parts) for parts in zip(*members, strict=True))
    if shared_weights:
        a, b = a[0], b[0]
    batch = sinkhorn_divergence(x, y, a, b, epsilon=0.5, kernel=kernel, **TIGHT)
    assert batch.value.shape == (3,)
    assert batch.gradient_x.shape == x.shape
    assert batch.gradient_y.shape == y.shape
    for k, (x_k, y_k, a_k, b_k) in enumerate(members):
        weights = (a, b) if shared_weights else (a_k, b_k)
        alone = sinkhorn_divergence(x_k, y_k, *weights, epsilon=0.5, kernel=kernel, **TIGHT)
        assert isinstance(alone.value, float)
        _close(batch.value[k], alone.value, relative=1e-8)
        _close(batch.gradient_x[k], alone.gradient_x, absolute=1e-7)


def test_weights_are_uniform_if_not_given(kernel):
    x, y, _, _ = _clouds()
    implied = sinkhorn_divergence(x, y, epsilon=0.5, kernel=kernel)
    given_weights = sinkhorn_divergence(x, y, np.full(9, 1 / 9), np.full(6, 1 / 6), epsilon=0.5, kernel=kernel)
    assert implied.value == pytest.approx(given_weights.value, rel=1e-12)


# --- How it ends, and what it accepts ---------------------------------------------------------------------------------


def test_a_converged_result_says_so(kernel):
    x, y, a, b = _clouds()
    result = sinkhorn_divergence(x, y, a, b, epsilon=0.5, kernel=kernel, tol=1e-3)
    assert result.converged
    assert result.marginal_error <= 1e-3
    assert result.status.startswith(f"converged in {result.n_iterations} sweeps")


def test_not_converged_warns_and_names_the_parameters_to_change(kernel):
    x, y, a, b = _clouds()
    with pytest.warns(NotConvergedWarning) as warned:
        result = sinkhorn_divergence(x, y, a, b, epsilon=0.05, kernel=kernel, max_iter=3)
    assert not result.converged
    assert result.marginal_error > 1e-4
    assert "after 3 sweeps; raise max_iter, or epsilon (now 0.05), or tol" in result.status
    assert [str(warning.message) for warning in warned] == [result.status]
    assert warned[0].filename == __file__


def test_costs_beyond_the_largest_float_are_named_as_the_cause(kernel):
    with (
        pytest.warns(NotConvergedWarning, match="left the finite range at epsilon=1; rescale the points"),
        np.errstate(all="ignore"),
    ):
        result = sinkhorn_divergence([[0.0], [1e160]], [[0.0], [3e160]], epsilon=1.0, kernel=kernel)
    assert not result.converged


_X, _Y = [[0.0], [1.0], [2.0]], [[0.5], [1.5]]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"x": [0.0, 1.0]}, ValueError, r"x and y must both be \[n_points.*got shapes \(2,\) and \(2, 1\)"),
        ({"x": [_X]}, ValueError, r"must both be .* got shapes \(1, 3, 1\) and \(2, 1\)"),
        ({"x": [[[_X]]], "y": [[[_Y]]]}, ValueError, "must both be"),
        ({"x": [[0.0, 1.0]]}, ValueError, r"same number of columns.* got shapes \(1, 2\) and \(2, 1\)"),
        ({"x": [_X, _X], "y": [_Y]}, ValueError, r"\(and batches\).* got shapes \(2, 3, 1\) and \(1, 2, 1\)"),
        ({"y": np.empty((0, 1))}, ValueError, r"at least one point, got shapes \(3, 1\) and \(0, 1\)"),
        ({"x": np.empty((3, 0)), "y": np.empty((2, 0))}, ValueError, "at least one point"),
        ({"x": [[0.0], [np.nan], [1.0]]}, ValueError, "x must be finite, got NaN or infinity"),
        ({"y": [[0.0], [np.inf]]}, ValueError, "y must be finite"),
        ({"x": [["a"], ["b"], ["c"]]}, TypeError, "x must be numeric, got dtype <U1"),
        ({"y": [[1j], [2.0]]}, TypeError, "y must be numeric, got dtype complex128"),
        ({"x": [[None], [1.0], [2.0]]}, TypeError, "x must be numeric, got dtype object"),
        ({"a": [0.5, 0.6, -0.1]}, ValueError, "a must be non-negative and sum to 1; divide it by its sum"),
        ({"a": [1.0, 1.0, 1.0]}, ValueError, "a must be non-negative and sum to 1"),
        ({"b": [0.5, 0.4]}, ValueError, "b must be non-negative and sum to 1"),
        ({"a": [0.5, 0.5]}, ValueError, "a must have one weight per point"),
        ({"b": [[0.5], [0.5]]}, ValueError, "b must have one weight per point"),
        ({"b": [0.5, np.nan]}, ValueError, "b must be finite"),
        ({"a": ["1", "0", "0"]}, TypeError, "a must be numeric"),
        ({"epsilon": 0.0}, ValueError, r"epsilon must be a finite number > 0, got 0\.0"),
        ({"epsilon": -1}, ValueError, "epsilon must be a finite number > 0, got -1"),
        ({"epsilon": float("nan")}, ValueError, "epsilon must be a finite number > 0, got nan"),
        ({"epsilon": float("inf")}, ValueError, "epsilon must be a finite number > 0, got inf"),
        ({"epsilon": "auto"}, TypeError, "epsilon must be a finite number > 0, got 'auto'"),
        ({"epsilon": None}, TypeError, "epsilon must be a finite number > 0, got None"),
        ({"epsilon": True}, (TypeError, ValueError), "epsilon must be a finite number > 0, got True"),
        ({"tol": -1e-3}, ValueError, r"tol must be a finite number >= 0, got -0\.001"),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number >= 1, got 0"),
        ({"max_iter": 2.5}, TypeError, r"max_iter must be a whole number >= 1, got 2\.5"),
        ({"kernel": "gpu"}, ValueError, "kernel must be one of 'auto', 'cpu', 'cuda', 'reference', got 'gpu'"),
        ({"kernel": None}, ValueError, "kernel must be one of .* got None"),
    ],
)
def test_bad_input_is_refused_with_what_was_received(changed, error, message):
    arguments = {"x": _X, "y": _Y, "epsilon": 0.5, **changed}
    with pytest.raises(error, match=message):
        sinkhorn_divergence(**arguments)


def test_inputs_are_left_alone(kernel):
    inputs = _clouds()
    copies = [part.copy() for part in inputs]
    for part in inputs:
        part.flags.writeable = False
    sinkhorn_divergence(*inputs, epsilon=0.5, kernel=kernel)
    for part, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize(
    "convert",
    [
        lambda points: points.astype(np.int64),
        lambda points: points.astype(np.float32),
        lambda points: points.astype(np.uint8),
        lambda points: points.tolist(),
        np.asfortranarray,
        lambda points: np.repeat(points, 2, axis=0)[::2],
    ],
    ids=["integers", "float32", "bytes", "lists", "fortran order", "strided"],
)
def test_any_real_numbers_in_any_layout_are_accepted(kernel, convert):
    x, y = np.array([[0.0, 1.0], [3.0, 2.0], [5.0, 5.0]]), np.array([[1.0, 1.0], [4.0, 2.0]])
    expected = sinkhorn_divergence(x, y, epsilon=0.5, kernel=kernel)
    result = sinkhorn_divergence(convert(x), convert(y), epsilon=0.5, kernel=kernel)
    assert result.value == expected.value
    assert result.gradient_x.dtype == np.float64
    np.testing.assert_array_equal(result.gradient_x, expected.gradient_x)
