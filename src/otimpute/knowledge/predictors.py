"""Which columns inform which: as people say it, as a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..exceptions import ParameterTypeError, ParameterValueError
from .names import find_column, find_columns, is_frame, names_of

AUTO = "auto"
_NOT = "not"
_ACCEPTED = 'a dict such as {"income": ["age", "job"]} or {"not": ["outcome"]}, a boolean frame, or "auto"'


def read_predictors(predictors: Any, read: Any, unseen: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The matrix ``[d, d]``, row by row which columns inform one, from what a user wrote; None where nobody is limited.

    ``unseen`` are columns that inform nobody because they pass through. What "auto" stands for is found from the values.

    >>> read_predictors({"b": ["a"], "not": ["c"]}, nw.from_dict({"a": [1], "b": [2], "c": [3]}, backend="pyarrow"),
    ...     np.zeros(3, dtype=bool)).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [1, 1, 0]]
    """
    if predictors is None or (isinstance(predictors, str) and predictors == AUTO):
        return None
    names = names_of(read)
    matrix = ~np.eye(len(names), dtype=bool)
    if is_frame(predictors):
        _from_frame(predictors, names, matrix, unseen)
    elif isinstance(predictors, Mapping):
        _from_mapping(predictors, names, read, matrix, unseen)
    else:
        raise ParameterTypeError("predictors", predictors, _ACCEPTED)
    np.fill_diagonal(matrix, False)
    matrix[:, unseen] = False
    open_to_all = ~np.eye(len(names), dtype=bool)
    open_to_all[:, unseen] = False
    return None if np.array_equal(matrix, open_to_all) else matrix


def named_in(predictors: Any, read: Any) -> NDArray[np.bool_]:
    """Columns that a user named as informed or informing, which are therefore no identifiers."""
    names = names_of(read)
    found = np.zeros(len(names), dtype=bool)
    if isinstance(predictors, Mapping):
        for target, wanted in predictors.items():
            if target in names:
                found[names.index(target)] = True
            if not isinstance(wanted, Mapping) and target != _NOT:
                found |= find_columns(f"predictors of {target!r}", wanted, read)[0]
    return found


def _from_mapping(
    given: Mapping[Any, Any], names: list[Any], read: Any, matrix: NDArray[np.bool_], unseen: NDArray[np.bool_]
) -> None:
    if _NOT in given and _NOT in names:
        raise ParameterValueError(
            "predictors",
            dict(given),
            'without "not" where a column has that name',
            "pass a boolean frame, or rename the column",
        )
    mute = np.zeros(len(names), dtype=bool)
    if _NOT in given:
        mute, _ = find_columns("predictors", given[_NOT], read)
        matrix[:, mute] = False
    for target, wanted in given.items():
        if target == _NOT:
            continue
        k, said = find_column("predictors", target, names), f"predictors of {target!r}"
        if isinstance(wanted, Mapping):
            if set(wanted) != {_NOT}:
                raise ParameterValueError(said, wanted, f'a list of columns, or {{"{_NOT}": [...]}} for all others')
            informs = ~find_columns(said, wanted[_NOT], read)[0] & ~mute
        else:
            informs, _ = find_columns(said, wanted, read)
            _refuse(informs & unseen, names, said, "seen by imputers", "leave it out, or keep it in the table")
        informs[k] = False
        if not (informs & ~unseen).any():
            raise ParameterValueError(
                said, wanted, "such that some column is left", "leave the column out of columns if it is not to be imputed"
            )
        matrix[k] = informs


def _from_frame(given: Any, names: list[Any], matrix: NDArray[np.bool_], unseen: NDArray[np.bool_]) -> None:
    """As mice has it: a row for each imputed column, a column for each predictor; rows are named by the index, or all there."""
    frame = nw.from_native(given, eager_only=True)
    index = [name for name in getattr(given, "index", []) if name in names]
    rows = list(given.index) if hasattr(given, "iloc") and len(index) == len(frame) else list(names)
    if len(rows) != len(frame):
        accepted = f"a row for each of the {len(names)} columns of X in their order, or an index that names them"
        raise ParameterValueError("predictors", f"{frame.shape[0]} rows", accepted)
    informing = [find_column("predictors", name, names) for name in frame.columns]
    flags = np.column_stack([column.to_numpy() for column in frame.iter_columns()])
    if flags.dtype.kind not in "biuf" or not np.isin(flags, (0, 1)).all():
        raise ParameterValueError("predictors", "other values", "a frame of booleans, or of 0 and 1")
    for row, target in enumerate(rows):
        k = find_column("predictors", target, names)
        matrix[k] = False
        matrix[k, informing] = flags[row].astype(bool)
        matrix[k, k] = False
        if not (matrix[k] & ~unseen).any():
            matrix[k] = False  # mice leaves such columns alone; whether that is an error depends on who is imputed


def _refuse(which: NDArray[np.bool_], names: list[Any], parameter: str, accepted: str, advice: str) -> None:
    if which.any():
        raise ParameterValueError(parameter, names[int(np.flatnonzero(which)[0])], accepted, advice)


def check_informed(matrix: NDArray[np.bool_] | None, imputed: NDArray[np.bool_], read: Any) -> None:
    """Raise where a column is to be imputed that no column may inform."""
    if matrix is None:
        return
    alone = np.flatnonzero(imputed & ~matrix.any(axis=1))
    if len(alone) and matrix.shape[0] > 1:
        name = names_of(read)[int(alone[0])]
        raise ParameterValueError(
            "predictors", f"nothing for {name!r}", "such that every imputed column has one", f"leave {name!r} out of columns"
        )
