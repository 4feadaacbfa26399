"""How many times each row counts in a fit, on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._row_weights import check_row_weights
from ..fitting import ColumnLayout


def read_row_weights(
    sample_weight: Any, missing: NDArray[np.bool_], layout: ColumnLayout, imputer: Any
) -> NDArray[np.float64] | None:
    """Weights ``[n]`` of the rows of a table, 1 on average over the rows that count; None where all rows count alike.

    >>> layout = ColumnLayout.of_numbers(["height"])
    >>> from otimpute.baselines import MeanImputer
    >>> read_row_weights([3, 0, 9], np.zeros((3, 1), dtype=bool), layout, MeanImputer()).tolist()
    [0.5, 0.0, 1.5]
    """
    if sample_weight is None:
        return None
    weight = check_row_weights(sample_weight, len(missing))
    if weight.min() == weight.max():
        return None
    if not imputer.weighs_rows:
        raise ValueError(
            f"sample_weight cannot be used by {type(imputer).__name__}, whose rows all count alike; leave it out, or take an "
            "imputer that weighs rows: AutoImputer, GaussianEMImputer, GaussianMixtureImputer, ExtraTreesImputer, "
            "KernelRidgeImputer, MissForestImputer or MeanImputer"
        )
    empty = np.flatnonzero(missing[weight > 0].all(axis=0))
    if len(empty):
        raise ValueError(
            f"sample_weight is 0 in all rows in which {layout.describe(empty)} is observed, so that nothing is known about it; "
            "give such a row a weight, or drop the column"
        )
    return np.asarray(weight / weight[weight > 0].mean())
