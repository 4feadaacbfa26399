"""Read fitted imputers from files, or from the bytes of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .catalogue import imputer_classes
from .estimator import model_of_bytes, read_model
from .inference import MultipleImputer


def load(path: str | Path, *, model: Any = None, completer: Any = None) -> Any:
    """The fitted imputer that ``imputer.save(path)`` wrote; it imputes as before, to the bit.

    Nothing in a file is run, and everything in it is checked: what is damaged, foreign, inconsistent or of a later version
    raises `StoredFileError` (docs/guide/model-files.md).

    Parameters
    ----------
    path : str or Path
        The file.
    model : function, default=None
        For a `RoundRobinImputer` fitted with a ``model`` of your own: that function. Files hold the weights only.
    completer : torch module or function, default=None
        For a `MetaSinkhornImputer` fitted with a ``completer`` of your own: one made alike, or a function that returns it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import otimpute
    >>> path = Path(tempfile.mkdtemp()) / "table.otimpute"
    >>> otimpute.baselines.MeanImputer().fit([[1.0, 2.0], [3.0, np.nan]]).save(path)
    >>> otimpute.load(path).transform([[np.nan, np.nan]]).tolist()
    [[2.0, 2.0]]
    """
    return read_model(path, _classes(), {"model": model, "completer": completer})


def from_bytes(data: bytes, *, model: Any = None, completer: Any = None) -> Any:
    """The fitted imputer that ``imputer.to_bytes()`` made; bytes are checked as files are, see `load`.

    Parameters
    ----------
    data : bytes
        What ``to_bytes`` returned, or what is in a file that ``save`` wrote.
    model, completer
        See `load`.

    Examples
    --------
    >>> import numpy as np
    >>> import otimpute
    >>> data = otimpute.baselines.MeanImputer().fit([[1.0, 2.0], [3.0, np.nan]]).to_bytes()
    >>> otimpute.from_bytes(data).transform([[np.nan, np.nan]]).tolist()
    [[2.0, 2.0]]
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, got {type(data).__name__}; a file is read by otimpute.load(path)")
    return model_of_bytes(bytes(data), _classes(), {"model": model, "completer": completer})


def _classes() -> dict[str, Any]:
    """Only these can come out of a file, whatever it says."""
    return {**imputer_classes(), "MultipleImputer": MultipleImputer}
