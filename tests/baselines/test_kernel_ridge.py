"""Kernel ridge regression against its definition, and with landmarks in place of rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from otimpute.baselines import KernelRidgeImputer
from otimpute.fitting import ColumnLayout

LAYOUT = ColumnLayout.of_numbers(range(4))


def curved(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four related columns, and which of their entries are missing."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n, 2))
    rows = np.column_stack([u, np.sin(2 * u[:, 0]) + u[:, 1], u[:, 0] * u[:, 1]]) + 0.1 * rng.normal(size=(n, 4))
    return rows, rng.random(rows.shape) < 0.2


def by_definition(rows: np.ndarray, missing: np.ndarray, ridge: float) -> np.ndarray:
    """One round from the mean."""
    known = np.where(missing, np.nan, rows)
    mean, sd = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    z = np.where(missing, 0.0, (rows - mean) / sd)
    result, p = z.copy(), z.shape[1] - 1

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(-((x[:, None] - y) ** 2).sum(axis=2) / (2 * p)) + x @ y.T / p

    for j, lost in enumerate(missing.T):
        x, y = np.delete(z, j, axis=1), z[~lost, j]
        weights = KernelRidge(alpha=ridge, kernel="precomputed").fit(kernel(x[~lost], x[~lost]), y - y.mean()).dual_coef_
        result[lost, j] = np.clip(y.mean() + kernel(x[lost], x[~lost]) @ weights, y.min(), y.max())
    return (result * sd + mean)[missing]


def fitted(imputer: KernelRidgeImputer, rows: np.ndarray, missing: np.ndarray):
    start = np.broadcast_to(np.nanmean(np.where(missing, np.nan, rows), axis=0), rows.shape)[missing]
    return imputer.fit_cells(np.where(missing, 0, rows), missing, LAYOUT, seed=0, start=start)


def test_short_tables_are_imputed_by_the_definition():
    rows, missing = curved(200)
    cells = fitted(KernelRidgeImputer(n_rounds=1), rows, missing).cells
    np.testing.assert_allclose(cells, by_definition(rows, missing, 0.1), rtol=0, atol=1e-3)


@pytest.mark.parametrize("n_landmarks", [128, 256])
def test_landmarks_do_nearly_as_well_as_all_rows(n_landmarks):
    rows, missing = curved(700)
    cells = fitted(KernelRidgeImputer(n_rounds=1, n_landmarks=n_landmarks), rows, missing).cells
    error, exact = (np.sqrt(np.mean((each - rows[missing]) ** 2)) for each in (cells, by_definition(rows, missing, 0.1)))
    assert error < 1.02 * exact


@pytest.mark.parametrize("n", [200, 700])
def test_a_row_is_imputed_alike_to_the_last_bit_alone_and_among_others(n):
    rows, missing = curved(n)
    fit = fitted(KernelRidgeImputer(), rows, missing)
    new, lost = curved(50, seed=1)
    lost[:, 0] = True
    start = np.zeros(lost.sum())
    together = fit.model.impute_cells(new, lost, start)
    alone = [fit.model.impute_cells(new[[i]], lost[[i]], np.zeros(lost[i].sum())) for i in range(len(new))]
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_rows_of_the_fit_are_imputed_as_in_the_fit_though_they_come_in_another_order():
    rows, missing = curved(700)
    fit = fitted(KernelRidgeImputer(max_rows=600), rows, missing)
    start = np.broadcast_to(np.nanmean(np.where(missing, np.nan, rows), axis=0), rows.shape)[missing]
    again = fit.model.impute_cells(np.asfortranarray(rows), np.asfortranarray(missing), start)
    np.testing.assert_array_equal(fit.cells, again)
