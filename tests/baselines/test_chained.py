"""Chained draws: their parts against closed forms, and which part is used for which column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from otimpute import SinkhornImputer
from otimpute.baselines import ChainedImputer
from otimpute.baselines.chained.column_draws import ColumnDraws, DonorRule
from otimpute.baselines.chained.donors import DonorTrees
from otimpute.baselines.chained.ridge import Regression
from otimpute.baselines.chained.shapes import Curves, ScaleKind, TargetScale
from otimpute.fitting import ColumnLayout

NO_BOUND = np.full(1, np.nan)


def line(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, (x @ [1.0, -0.5] + 0.3 + 0.7 * rng.normal(size=n))[:, None]


def test_a_regression_is_that_of_least_squares() -> None:
    x, y = line()
    found = Regression.fit(x, y)
    design = np.column_stack([np.ones(400), x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0][:, 0]
    np.testing.assert_allclose([*found.model.intercept, *found.model.slopes[:, 0]], expected, atol=2e-5)
    leverage = np.einsum("ij,ij->i", design @ np.linalg.inv(design.T @ design), design)
    residuals = (y[:, 0] - design @ expected) / np.sqrt(1 - leverage)
    np.testing.assert_allclose(found.residuals[:, 0], residuals, atol=1e-4)
    assert abs(found.n_free - 397) < 0.01


def test_drawn_parameters_vary_as_the_posterior_does() -> None:
    x, y = line(60)
    found, rng = Regression.fit(x, y), np.random.default_rng(1)
    drawn = [found.draw(rng) for _ in range(4000)]
    parameters = np.array([[*model.intercept, *model.slopes[:, 0]] for model, _ in drawn])
    design = np.column_stack([np.ones(60), x])
    variance = float((found.residuals**2).mean()) * 57 / 55  # of a t distribution with 57 degrees of freedom
    np.testing.assert_allclose(np.cov(parameters.T), variance * np.linalg.inv(design.T @ design), rtol=0.12, atol=5e-4)
    spreads = np.array([spread[0] for _, spread in drawn])
    assert abs(np.mean(spreads**2) / variance - 1) < 0.05


def test_where_rows_are_few_slopes_are_shrunk_by_what_left_out_rows_say() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(40, 20)), rng.normal(size=(40, 1))
    plain = np.linalg.lstsq(x - x.mean(axis=0), noise - noise.mean(), rcond=None)[0]
    assert np.abs(Regression.fit(x, noise).model.slopes).sum() < 0.5 * np.abs(plain).sum()


def test_donors_share_a_leaf_and_follow_weights() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 1.0], 50)
    inputs = group[:, None].astype(np.float32)
    trees = DonorTrees.grow(inputs, group[:, None], n_trees=4, leaf=5, rng=rng)
    chosen = trees.choose(inputs, rng.random(100), rng.random(100))
    assert (group[chosen] == group).all()
    weights = np.where(np.arange(100) % 2, 1.0, 1e-12)
    assert (trees.choose(inputs, rng.random(100), rng.random(100), weights) % 2 == 1).all()


@pytest.mark.parametrize("kind", list(ScaleKind))
def test_scales_go_there_and_back_and_stay_inside_bounds(kind: ScaleKind) -> None:
    values = np.linspace(0.01, 0.99, 50)[:, None]
    scale = TargetScale.fit(kind, values, 0.0, 1.0 if kind is ScaleKind.LOGIT else np.nan)
    np.testing.assert_allclose(scale.backward(scale.forward(values)), values, rtol=1e-12)
    if kind is not ScaleKind.IDENTITY:
        far = scale.backward(np.array([scale.forward(values).max() + 3]))
        assert far > 0.99 and (kind is not ScaleKind.LOGIT or far < 1)


def test_a_logarithm_of_counts_begins_a_little_below_zero() -> None:
    counts = np.array([[0.0], [1.0], [2.0], [5.0]])
    scale = TargetScale.fit(ScaleKind.LOG, counts, 0.0, np.nan)
    assert scale.low == -0.5 and np.isfinite(scale.forward(counts)).all()


def test_curves_contain_a_parabola_and_end_far_outside() -> None:
    x = np.random.default_rng(0).normal(size=(500, 1))
    curves = Curves.fit(x, x[:, 0] ** 2)
    terms = curves.expand(x)
    fitted = terms @ np.linalg.lstsq(terms, x[:, 0] ** 2, rcond=None)[0]
    np.testing.assert_allclose(fitted, x[:, 0] ** 2, atol=1e-8)
    far = curves.expand(np.array([[50.0], [60.0]]))
    np.testing.assert_array_equal(far[0, 1:], far[1, 1:])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, e: 0.5 * x + e, {"curved": False, "leaf": 0, "scale": "identity"}),
        (lambda x, e: x**2 + e, {"curved": True}),
        (lambda x, e: np.exp(x + 0.5 * e), {"scale": "log"}),
        (lambda x, e: np.where(x > 0, 0.05, 1.0) * e, {"leaf": True}),
        (lambda x, e: (3 * (e > 0.5) + (x > 0)).astype(float) + 0.5, {"adds_residual": False}),
    ],
    ids=["straight", "parabola", "exponential", "noise that depends on x", "few values"],
)
def test_the_rule_suits_the_column(make, expected) -> None:
    rng = np.random.default_rng(3)
    x, e = rng.normal(size=(2, 600))
    X = np.column_stack([x, make(x, e)])
    missing = np.zeros(X.shape, dtype=bool)
    missing[:100, 1] = True
    imputer = ChainedImputer()
    task = imputer.begin_fit(np.where(missing, np.nan, X))
    prepared = imputer.prepare_draws(task.values, task.missing, task.layout, seed=0)
    rule = next(target.rule for target in prepared.targets if target.place == 1)
    for name, value in expected.items():
        assert (bool(getattr(rule, name)) if name == "leaf" else getattr(rule, name)) == value


def test_draws_of_both_coordinates_of_a_parabola_do_not_run_away() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=150)
        X = np.column_stack([x, x**2 + rng.normal(size=150)])
        X[rng.random(X.shape) < 0.35] = np.nan
        drawn = ChainedImputer(random_state=seed, n_rounds=20).fit_transform(X)
        width = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
        assert (drawn <= np.nanmax(X, axis=0) + 1.01 * width).all() and (drawn >= np.nanmin(X, axis=0) - 1.01 * width).all()


def test_whole_numbers_are_drawn_whole_and_not_below_their_bound() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    X = pd.DataFrame({"x": x, "count": pd.array(rng.poisson(np.exp(0.3 + 0.5 * x)), dtype="Int64")})
    missing = rng.random(500) < 0.4
    truth = X["count"][missing].to_numpy(dtype=float)
    X.loc[missing, "count"] = pd.NA
    drawn = ChainedImputer(random_state=0).fit_transform(X)["count"][missing].to_numpy(dtype=float)
    assert drawn.min() >= 0 and abs(drawn.mean() - truth.mean()) < 0.35
    assert abs((drawn == 0).mean() - (truth == 0).mean()) < 0.1


def test_draws_of_a_donor_are_values_that_were_observed() -> None:
    x, y = line(50)
    table = np.column_stack([x, y])
    rng = np.random.default_rng(0)
    model = ColumnDraws.fit(
        table,
        np.array([2]),
        np.array([0, 1]),
        np.arange(50),
        DonorRule(False, 3),
        n_trees=3,
        rng=rng,
        low=NO_BOUND,
        high=NO_BOUND,
    )
    assert np.isin(model.draw(table, rng.random(50), rng.random(50)), y).all()


def test_draws_of_transport_vary_around_its_guesses() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    values = np.column_stack([x, x + 0.5 * rng.normal(size=300)])
    missing = np.zeros(values.shape, dtype=bool)
    missing[:60, 1] = True
    fit = SinkhornImputer(max_steps=200, device="cpu").fit_cells(values, missing, ColumnLayout.of_numbers("ab"), seed=0)
    guess = fit.model.impute_cells(values, missing)
    draws = np.array([fit.model.draw_cells(values, missing, np.arange(300, dtype=np.uint64) + 1000 * k) for k in range(50)])
    assert np.isfinite(draws).all() and draws.std(axis=0).mean() > 0.1
    assert np.abs(draws.mean(axis=0) - guess).mean() < 0.15
