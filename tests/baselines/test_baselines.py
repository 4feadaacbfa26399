"""Each classical method against its definition or against scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.impute import KNNImputer as ScikitLearnKNN

from otimpute.baselines import (
    GaussianEMImputer,
    ICEImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
    SoftImputer,
)
from otimpute.fitting import ColumnLayout
from otimpute.metrics import rmse
from otimpute.trees import Forest


def gaussian(n: int = 300, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def punch(X: np.ndarray, rate: float = 0.2, seed: int = 1) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < rate, np.nan, X)


def standardise(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return (X - mean) / sd, mean, sd


def test_the_mean_is_the_mean_of_observed_values() -> None:
    X = punch(gaussian())
    imputed = MeanImputer().fit_transform(X)
    holes = np.isnan(X)
    np.testing.assert_allclose(imputed[holes], np.broadcast_to(np.nanmean(X, axis=0), X.shape)[holes], rtol=1e-14)


def test_an_outlier_counts_in_the_mean() -> None:
    X = np.array([[0.0], [0.0], [1e6 + 0.5], [np.nan]] + [[0.0]] * 30)
    assert MeanImputer().fit_transform(X)[3, 0] == pytest.approx((1e6 + 0.5) / 33)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (KNNImputer(n_neighbors=3, weights="distance"), ScikitLearnKNN(n_neighbors=3, weights="distance")),
        (ICEImputer(max_iter=4), IterativeImputer(max_iter=4, random_state=0)),
    ],
    ids=["knn", "ice"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_knn_and_ice_are_scikit_learns_on_standardised_columns(ours, theirs) -> None:
    X = punch(gaussian() * [1, 10, 100, 1e3, 1e4])
    X[7, 2] = 1e5  # far out: it counts, as it does in scikit-learn
    Z, mean, sd = standardise(X)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(Z) * sd + mean, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X[:50]), theirs.transform(Z[:50]) * sd + mean, rtol=1e-6)


def test_ice_gives_a_row_without_values_the_same_in_any_company() -> None:
    X = gaussian()
    imputer = ICEImputer(max_iter=2).fit(punch(X))
    empty = np.full((1, X.shape[1]), np.nan)
    np.testing.assert_allclose(imputer.transform(empty), imputer.transform(np.vstack([empty, X[:3]]))[:1])


def test_gaussian_em_fills_with_the_conditional_expectation_of_its_gaussian() -> None:
    X = punch(gaussian())
    imputer = GaussianEMImputer(tol=1e-8, max_iter=1000)
    imputed = imputer.fit_transform(X)
    assert imputer.converged_
    Z, mean, sd = standardise(X)
    for z, x in zip(Z[:30], imputed[:30], strict=True):
        m = np.isnan(z)
        if m.any() and not m.all():
            S, mu = imputer.covariance_, imputer.mean_
            expected = mu[m] + S[np.ix_(m, ~m)] @ np.linalg.solve(S[np.ix_(~m, ~m)], z[~m] - mu[~m])
            np.testing.assert_allclose(x[m], expected * sd[m] + mean[m], rtol=1e-6)


def test_gaussian_em_recovers_the_covariance_of_gaussian_data() -> None:
    X = gaussian(5000, 4)
    imputer = GaussianEMImputer(max_iter=500, tol=1e-6).fit(punch(X))
    np.testing.assert_allclose(imputer.covariance_, np.corrcoef(X.T), atol=0.05)


def test_more_prior_rows_shrink_a_gaussian_towards_independent_columns() -> None:
    X = punch(gaussian(30, 6))
    correlation = [np.abs(np.tril(GaussianEMImputer(prior_rows=k).fit(X).covariance_, -1)).sum() for k in (0.1, 10, 1000)]
    assert correlation[0] > correlation[1] > correlation[2]


def test_softimpute_solves_its_convex_problem() -> None:
    """Optimality: the residual on observed entries is the penalty times a subgradient of the nuclear norm at M."""
    X = punch(gaussian(60, 6))
    penalty = 4.0
    imputer = SoftImputer(penalty=penalty, tol=1e-10, max_iter=5000)
    Z, mean, sd = standardise(X)
    completed = (imputer.fit_transform(X) - mean) / sd
    U, s, Vt = np.linalg.svd(completed, full_matrices=False)
    M = (U * np.maximum(s - penalty, 0)) @ Vt
    holes = np.isnan(X)
    np.testing.assert_allclose(completed[holes], M[holes], atol=1e-6)
    residual = np.where(holes, 0, Z - M)
    rank = int((s > penalty).sum())
    assert imputer.rank_ == rank
    assert np.linalg.norm(residual, 2) <= penalty * (1 + 1e-6)
    np.testing.assert_allclose(U[:, :rank].T @ residual @ Vt[:rank].T, penalty * np.eye(rank), atol=1e-5)


def test_softimpute_completes_new_rows_as_it_completed_the_same_rows_in_training() -> None:
    X = punch(gaussian(80, 6))
    imputer = SoftImputer(penalty=3.0, tol=1e-10, max_iter=5000)
    np.testing.assert_allclose(imputer.fit_transform(X), imputer.transform(X), atol=1e-5)


def test_softimpute_agrees_on_tall_and_wide_tables() -> None:
    X = gaussian(40, 40)
    Z = X - X.mean(axis=0)
    from otimpute.baselines.softimpute import _shrink

    U, s, Vt = np.linalg.svd(Z[:, :10], full_matrices=False)
    expected = (U * np.maximum(s - 2, 0)) @ Vt
    np.testing.assert_allclose(_shrink(Z[:, :10], 2.0), expected, atol=1e-8)
    np.testing.assert_allclose(_shrink(Z[:, :10].T, 2.0), expected.T, atol=1e-8)


def test_softimpute_chooses_a_strong_penalty_on_noise_and_a_weak_one_on_structure() -> None:
    rng = np.random.default_rng(0)
    noise = SoftImputer(random_state=0).fit(punch(rng.normal(size=(200, 8))))
    signal = SoftImputer(random_state=0).fit(punch(rng.normal(size=(200, 1)) @ rng.normal(size=(1, 8))))
    assert noise.penalty_ > 3 * signal.penalty_


def test_missforest_beats_linear_methods_on_a_curve() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=400)
    X = np.column_stack([x, x**2, np.sin(3 * x)])
    X_incomplete = punch(X)
    missing = np.isnan(X_incomplete)
    forest = rmse(X, MissForestImputer(n_estimators=30, random_state=0).fit_transform(X_incomplete), missing)
    assert forest < 0.8 * rmse(X, GaussianEMImputer().fit_transform(X_incomplete), missing)


def test_missforest_does_not_depend_on_the_number_of_threads() -> None:
    X = punch(gaussian(100, 4))
    one, two = (MissForestImputer(n_estimators=8, n_jobs=j, random_state=3).fit_transform(X) for j in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_missforest_stops_by_its_rule_and_keeps_the_round_before() -> None:
    X = punch(gaussian(100, 4))
    free = MissForestImputer(n_estimators=8, max_iter=30, random_state=3)
    imputed = free.fit_transform(X)
    assert free.converged_
    cut = MissForestImputer(n_estimators=8, max_iter=free.n_iter_, random_state=3)
    np.testing.assert_array_equal(cut.fit_transform(X), imputed)
    assert not cut.converged_


def test_missforest_begins_with_the_column_that_has_fewest_holes() -> None:
    X = gaussian(100, 3)
    X[:30, 0] = X[:10, 1] = X[5:25, 2] = np.nan
    forests = MissForestImputer(n_estimators=3, max_iter=1, random_state=0).fit(X).model_.method.forests
    assert [forest.columns.tolist() for forest in forests] == [[1], [2], [0]]


def test_missforest_takes_new_rows_through_all_its_rounds() -> None:
    X = punch(gaussian(100, 4), 0.4)
    imputer = MissForestImputer(n_estimators=8, random_state=3).fit(X)
    assert imputer.n_iter_ > 1
    new = punch(gaussian(20, 4, seed=5), 0.5)
    model, missing = imputer.model_, np.isnan(new)
    once = replace(model, method=replace(model.method, n_rounds=1))
    assert (once.impute_cells(new, missing) != model.impute_cells(new, missing)).any()


@pytest.mark.parametrize("change", [{"max_features": None}, {"min_samples_leaf": 20}, {"n_estimators": 3}])
def test_missforest_parameters_reach_the_forests(change: dict[str, object]) -> None:
    X = punch(gaussian(100, 6))
    plain = {"n_estimators": 5, "max_iter": 1, "random_state": 0}
    assert (MissForestImputer(**{**plain, **change}).fit_transform(X) != MissForestImputer(**plain).fit_transform(X)).any()


@pytest.mark.parametrize("kind", [ICEImputer, MissForestImputer, GaussianEMImputer, SoftImputer, KNNImputer])
def test_a_fit_without_a_column_that_varies_keeps_nothing_of_the_fit_before(kind) -> None:
    imputer = kind().fit(punch(gaussian(40, 3)))
    imputer.fit([[1.0, 2.0], [1.0, np.nan], [np.nan, 2.0]])
    assert not {"n_iter_", "converged_", "mean_", "penalty_"} & set(vars(imputer))
    assert imputer.transform([[np.nan, np.nan]]).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("kind", [ICEImputer, MissForestImputer, GaussianEMImputer, SoftImputer, KNNImputer])
def test_new_values_of_any_size_are_borne(kind) -> None:
    imputer = kind().fit(punch(gaussian(40, 3)))
    assert np.isfinite(imputer.transform([[1.5e308, np.nan, -1.5e308]])).all()


@pytest.mark.parametrize(
    ("imputer", "message"),
    [
        (KNNImputer(n_neighbors=0), "n_neighbors must be a whole number >= 1, got 0"),
        (KNNImputer(weights="near"), "weights must be one of"),
        (ICEImputer(max_iter=0), "max_iter"),
        (MissForestImputer(n_estimators=0), "n_estimators"),
        (GaussianEMImputer(prior_rows=0), "prior_rows"),
        (SoftImputer(penalty=-1), 'penalty must be a finite number > 0, got -1; pass "cv"'),
        (SoftImputer(hidden_fraction=1.0), "hidden_fraction"),
        (SoftImputer(n_penalties=1), "n_penalties must be a whole number >= 2"),
        (MissForestImputer(random_state="x"), "random_state"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_wrong_parameters_are_refused(imputer, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imputer.fit(gaussian(20))


def one_hot_table(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two numbers that say which of three categories a row has, its one-hot columns, and which rows lack it."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, 3, n)
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    values = np.hstack([corners[category] + 0.1 * rng.normal(size=(n, 2)), np.eye(3)[category]])
    missing = np.zeros(values.shape, dtype=bool)
    missing[rng.random(n) < 0.3, 2:] = True
    return values, missing, np.array([0, 1, 2, 2, 2])


def layout_of(groups: np.ndarray) -> ColumnLayout:
    return replace(ColumnLayout.of_numbers(np.unique(groups)), groups=groups, scaled=np.zeros(len(groups), dtype=bool))


def errors_with(imputer, groups: np.ndarray) -> float:
    """The larger mean error of fitted and of new rows, as a share of that of the mean."""
    values, missing, _ = one_hot_table()
    fit = imputer.fit_cells(np.where(missing, 0, values), missing, layout_of(groups), seed=0)
    filled = fit.cells, fit.model.impute_cells(values, missing)
    at_the_mean = float(np.abs(values[missing] - 1 / 3).mean())
    return max(float(np.abs(cells - values[missing]).mean()) for cells in filled) / at_the_mean


@pytest.mark.parametrize("kind", [ICEImputer, MissForestImputer])
def test_a_category_is_predicted_from_the_columns_it_depends_on(kind) -> None:
    assert errors_with(kind(), one_hot_table()[2]) < 0.2


def test_coordinates_that_see_their_siblings_would_stay_at_their_start() -> None:
    assert errors_with(ICEImputer(), np.arange(5)) > 0.9


@pytest.mark.parametrize("kind", [ICEImputer, MissForestImputer])
def test_a_category_without_other_columns_stays_at_its_mean(kind) -> None:
    values, missing, _ = one_hot_table()
    imputer = kind()
    values, missing = values[:, 2:], missing[:, 2:]
    means = np.where(missing, np.nan, values)
    expected = np.broadcast_to(np.nanmean(means, axis=0), values.shape)[missing]
    fit = imputer.fit_cells(values, missing, layout_of(np.zeros(3, dtype=np.int64)), seed=0)
    for filled in (fit.cells, fit.model.impute_cells(values, missing)):
        np.testing.assert_allclose(filled, expected, atol=1e-12)


def test_constant_coordinates_of_a_category_are_passed_over() -> None:
    values, missing, groups = one_hot_table()
    values, groups = np.insert(values, 3, 5.0, axis=1), np.insert(groups, 3, 2)
    missing = np.insert(missing, 3, missing[:, 2], axis=1)
    imputer = MissForestImputer(n_estimators=5, random_state=0)
    forests = imputer.fit_cells(values, missing, layout_of(groups), seed=0).model.method.forests
    assert sorted(forest.columns.tolist() for forest in forests) == [[0], [1], [2, 3, 4]]
    assert sorted(forest.inputs.tolist() for forest in forests) == [[0, 1], [0, 2, 3, 4], [1, 2, 3, 4]]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_forest_of_arrays_predicts_as_scikit_learns_in_single_precision(n_outputs: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=(200, n_outputs))
    fitted = RandomForestRegressor(30, random_state=0).fit(X, y if n_outputs > 1 else y[:, 0])
    rows = np.insert(rng.normal(size=(500, 4)), 0, 7.0, axis=1)
    forest = Forest.of(fitted, np.arange(n_outputs), np.arange(1, 5))
    np.testing.assert_allclose(forest.predict(rows), fitted.predict(rows[:, 1:]).reshape(500, n_outputs), rtol=0, atol=2e-7)


def test_the_chain_of_ice_is_scikit_learns() -> None:
    X, new = punch(gaussian(100, 6)), punch(gaussian(80, 6, seed=4), 0.4)
    imputer = ICEImputer(max_iter=5).fit(X)
    theirs = IterativeImputer(max_iter=5, random_state=0)
    zeros = np.zeros((len(new), 6), dtype=bool)
    rows, holes = imputer.model_.columns.standardise(X, np.isnan(X))
    theirs.fit(np.where(holes, np.nan, rows))
    rows, holes = imputer.model_.columns.standardise(new, np.isnan(new))
    expected = theirs.transform(np.where(holes, np.nan, rows))  # whose products round by how many rows there are
    np.testing.assert_allclose(imputer.model_.method.fill(rows, holes), expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(imputer.model_.method.fill(rows, zeros), rows)
