"""Hiding observed cells for validation."""

from __future__ import annotations

import numpy as np

from otimpute.estimator import hide_cells


def test_only_observed_cells_are_hidden_and_every_column_keeps_two() -> None:
    rng = np.random.default_rng(0)
    missing = rng.random((40, 6)) < 0.4
    missing[:, 5] = True
    missing[:3, 5] = False
    hidden = hide_cells(missing, 0.9, rng)
    assert not (hidden & missing).any()
    assert ((~missing & ~hidden).sum(axis=0) >= 2).all()
    assert hidden[:, 5].sum() == 1


def test_the_share_asked_for_is_hidden_in_every_column() -> None:
    missing = np.zeros((200, 3), dtype=bool)
    np.testing.assert_array_equal(hide_cells(missing, 0.25, np.random.default_rng(0)).sum(axis=0), 50)
