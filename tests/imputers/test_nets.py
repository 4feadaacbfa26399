"""Compiled networks and the gradient in one column, against definitions that are slow and plain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from otimpute.gaussian import fit_gaussian
from otimpute.imputers.batches.divergence import (
    SELF,
    BatchPlan,
    Geometry,
    collect_rows,
    column_gradient,
    draw_pair,
    make_cells,
    make_gradients,
    make_workspace,
    pair_gradient,
)
from otimpute.imputers.batches.pairs import ALL_ROWS
from otimpute.imputers.preparation.working_copy import padded_width
from otimpute.imputers.round_robin.net_models import (
    NetModels,
    gaussian_regressions,
    layer_sizes,
    linear_parameters,
    random_parameters,
)
from otimpute.imputers.round_robin.nets import Nets, Target, backward, begin_update, finish_update, forward, n_parameters
from otimpute.transport import sinkhorn_divergence

MODELS = ["linear", "mlp"]


def naive(sizes: np.ndarray, parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Predictions ``[R]`` for ``inputs [R, d_in]``."""
    units, p = inputs, 0
    for layer, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        weights = parameters[p : p + n_in * n_out].reshape(n_out, n_in)
        bias = parameters[p + n_in * n_out : p + (n_in + 1) * n_out]
        p += (n_in + 1) * n_out
        units = units @ weights.T + bias
        if layer < len(sizes) - 2:
            units = np.maximum(units, 0)
    return units[:, 0]


def units_for(sizes: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    units = np.empty((int(sizes.sum()), len(inputs)), inputs.dtype)
    units[: sizes[0]] = inputs.T
    return units


@pytest.mark.parametrize("n_inputs", [0, 1, 3, 6, 9])
@pytest.mark.parametrize("model", MODELS)
def test_predictions_are_those_of_the_formula(model: str, n_inputs: int) -> None:
    rng = np.random.default_rng(0)
    sizes = layer_sizes(model, n_inputs)
    parameters = rng.normal(size=n_parameters(sizes))
    inputs = rng.normal(size=(37, n_inputs))
    units = units_for(sizes, inputs)
    forward(sizes, parameters, units)
    np.testing.assert_allclose(units[-1], naive(sizes, parameters, inputs), atol=1e-12)


@pytest.mark.parametrize("n_inputs", [1, 3, 6])
@pytest.mark.parametrize("model", MODELS)
def test_parameter_gradients_are_finite_differences(model: str, n_inputs: int) -> None:
    rng = np.random.default_rng(1)
    sizes = layer_sizes(model, n_inputs)
    parameters = rng.normal(size=n_parameters(sizes))
    inputs, weights = rng.normal(size=(11, n_inputs)), rng.normal(size=11)
    units = units_for(sizes, inputs)
    forward(sizes, parameters, units)
    deltas, gradient = np.zeros_like(units), np.empty_like(parameters)
    deltas[-1] = weights
    backward(sizes, parameters, units, deltas, gradient)
    step = 1e-6
    for k in range(len(parameters)):
        moved = np.eye(len(parameters))[k] * step
        difference = naive(sizes, parameters + moved, inputs) - naive(sizes, parameters - moved, inputs)
        assert gradient[k] == pytest.approx(weights @ difference / (2 * step), abs=1e-6)


def test_a_row_is_predicted_alike_in_any_company() -> None:
    rng = np.random.default_rng(2)
    sizes = layer_sizes("mlp", 7)
    models = NetModels(sizes, random_parameters(sizes, 8, rng), np.arange(8))
    values = rng.normal(size=(100, 16)).astype(np.float32)
    together = models.predict(values, np.arange(100), 3)
    for rows in (np.array([41]), np.arange(100)[::-1].copy(), rng.permutation(100)[:29]):
        np.testing.assert_array_equal(models.predict(values, rows, 3), together[rows])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("d", [2, 3, 6])
def test_both_models_can_start_as_the_regressions_of_a_gaussian_model(model: str, d: int) -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(size=(200, d)) @ rng.normal(size=(d, d)) + 1
    gaussian = fit_gaussian(table, np.zeros(table.shape, dtype=bool), prior_rows=0.01)
    sizes = layer_sizes(model, d - 1)
    groups = np.arange(d)
    models = NetModels(sizes, linear_parameters(sizes, *gaussian_regressions(gaussian, groups), rng), groups)
    for column in range(d):
        hole = np.zeros(table.shape, dtype=bool)
        hole[:, column] = True
        expected = gaussian.fill(table, hole)[:, column]
        inside = expected > -9  # what an MLP's offset leaves linear
        found = models.predict(table.astype(np.float32), np.arange(200), column)
        np.testing.assert_allclose(found[inside], expected[inside], atol=1e-3)


def problem(d: int = 3, n: int = 30, metric: str = "covariance", seed: int = 4):
    """A float64 table under training, its geometry (A or the identity) and batches of 8."""
    rng = np.random.default_rng(seed)
    width = padded_width(d)
    values = np.zeros((n, width))
    values[:, :d], values[:, d] = rng.normal(size=(n, d)), 1
    A = np.eye(d) if metric == "euclidean" else np.eye(d) + 0.3 * np.abs(np.subtract.outer(range(d), range(d))) / d
    padded = np.zeros((0, 0) if metric == "euclidean" else (width, width))
    precision = padded.copy()
    if metric == "covariance":
        padded[:d, :d], precision[:d, :d] = A, A @ A
    missing = rng.random((n, d)) < 0.4
    return make_cells(values, missing), Geometry(padded, precision, 1 / 0.5, d), A, missing


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize("metric", ["covariance", "euclidean"])
def test_the_gradient_in_one_column_is_that_column_of_the_whole_gradient(metric: str, both_sides: bool) -> None:
    cells, geometry, _, _ = problem(metric=metric)
    plan = BatchPlan(1, ALL_ROWS, ALL_ROWS, 300, 100)
    work = make_workspace(8, cells.values.shape[1], np.float64)
    whole, one = (make_gradients(2, 8, width, np.float64) for width in (cells.values.shape[1], 1))
    for pair in range(2):
        for found in (whole, one):
            draw_pair(plan, len(cells.values), 5, pair, found.rows)
        pair_gradient(cells, geometry, plan, work, pair, whole)
        for column in range(3):
            column_gradient(cells, geometry, plan, work, column, both_sides, pair, one)
            first = 0 if both_sides else 1
            np.testing.assert_allclose(one.gradient[pair, first:, :, 0], whole.gradient[pair, first:, :, column], atol=1e-10)
            np.testing.assert_allclose(one.cross_potential[pair], whole.cross_potential[pair], atol=1e-10)


@pytest.mark.parametrize("batches", ["all", "observed-all", "observed-missing"])
@pytest.mark.parametrize("metric", ["covariance", "euclidean"])
@pytest.mark.parametrize("model", MODELS)
def test_the_gradient_through_the_loss_is_its_finite_difference(model: str, metric: str, batches: str) -> None:
    cells, geometry, A, missing = problem(metric=metric)
    column, d, m, n_pairs = 1, 3, 8, 2
    free = missing[:, column].copy()
    both_sides = batches == "all"
    first = ALL_ROWS if both_sides else np.flatnonzero(~free)
    plan = BatchPlan(7, first, np.flatnonzero(free) if batches == "observed-missing" else ALL_ROWS, 2000, 500)
    target = Target(column, free, both_sides, -100.0, 100.0)
    rng = np.random.default_rng(5)
    sizes = layer_sizes(model, d - 1)
    parameters = rng.normal(size=(d, n_parameters(sizes)))
    nets = Nets(sizes, parameters.copy(), np.zeros((2, *parameters.shape)), np.zeros(d, np.int64), np.arange(d))
    work, found = make_workspace(m, cells.values.shape[1], np.float64), make_gradients(n_pairs, m, 1, np.float64)
    buffer, gradient = np.empty((2, int(sizes.sum()) * 32)), np.empty(parameters.shape[1])
    n_listed = begin_update(cells, plan, found, target, nets, 3, np.empty(32, np.int64), buffer)
    for pair in range(n_pairs):
        column_gradient(cells, geometry, plan, work, column, both_sides, pair, found)
    rows = found.rows.copy()
    table = cells.values[:, :d].copy()
    finish_update(cells, found, target, nets, n_listed, buffer, gradient, 1e-3, 0.0)

    def loss(theta: np.ndarray) -> float:
        completed = table.copy()
        completed[free, column] = naive(sizes, theta, np.delete(table[free], column, axis=1))
        batches = [(completed[x] @ A, completed[y] @ A) for x, y in rows]
        solve = {"epsilon": 0.5, "tol": 1e-10, "max_iter": 5000, "kernel": "reference"}
        return float(np.mean([sinkhorn_divergence(x, y, **solve).value for x, y in batches]))

    start, step = parameters[column], 1e-5
    for k in range(len(start)):
        moved = np.eye(len(start))[k] * step
        difference = (loss(start + moved) - loss(start - moved)) / (2 * step)
        assert gradient[k] == pytest.approx(difference, abs=2e-5)
    # Adam's first step goes by the rate, against the sign of the gradient.
    moved = nets.parameters[column] - start
    felt = np.abs(gradient) > 1e-6
    np.testing.assert_allclose(moved[felt], -1e-3 * np.sign(gradient[felt]), rtol=0.02)
    np.testing.assert_array_equal(np.delete(nets.parameters, column, axis=0), np.delete(parameters, column, axis=0))


def test_a_batch_that_was_not_compared_with_itself_leaves_the_potentials_of_its_rows() -> None:
    cells, *_ = problem()
    free = np.zeros(len(cells.values), dtype=bool)
    found = make_gradients(2, 4, 1, np.float64)
    found.rows[:] = np.arange(4)  # the same rows in all four batches
    found.self_potential[:, 0], found.self_potential[:, 1] = 99.0, 7.0
    collect_rows(cells, found, free, False, np.empty((0, 1)))
    np.testing.assert_array_equal(cells.potentials[:4, SELF], 7.0)
