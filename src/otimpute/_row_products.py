"""Products of matrices in which no row depends on how many others there are: BLAS rounds by the shape of what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compile import compiled


def row_products(rows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[np.float64]:
    """``rows [n, p] @ matrix [p, k]``: each row has the same bits in any company.

    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]])).tolist()
    [[21.0], [43.0]]
    """
    products = np.empty((len(rows), matrix.shape[1]))
    _multiply(*(np.ascontiguousarray(each, dtype=np.float64) for each in (rows, matrix)), products)
    return products


@compiled
def _multiply(rows, matrix, products):  # type: ignore[no-untyped-def]
    n, p = rows.shape
    k = matrix.shape[1]
    for i in range(n):
        for c in range(k):
            products[i, c] = 0.0
        for r in range(p):
            factor = rows[i, r]
            for c in range(k):
                products[i, c] += factor * matrix[r, c]
