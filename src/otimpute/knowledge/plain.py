"""What users said of their table, in the plain values that model files hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .names import is_frame
from .roles import ColumnRoles

_PLAIN = (type(None), str, int, list, tuple, dict)


def plain_columns(given: Any, meant: NDArray[np.bool_], names: Sequence[Any]) -> Any:
    """Names in place of a callable, a selector or an index, by which columns it ``meant``."""
    return given if isinstance(given, _PLAIN) else [name for name, is_meant in zip(names, meant, strict=True) if is_meant]


def plain_predictors(given: Any, roles: ColumnRoles, names: Sequence[Any]) -> Any:
    """A dictionary in place of a boolean frame."""
    if not is_frame(given):
        return given
    if roles.predictors is None:  # it limited nobody
        return None
    informs = {
        name: [names[j] for j in np.flatnonzero(row).tolist()] for name, row in zip(names, roles.predictors, strict=True)
    }
    return {name: own for name, own in informs.items() if own}
