"""Read fitted imputers from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .catalogue import imputer_classes
from .estimator import read_model
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
    # Only these classes can come out of a file, whatever it says.
    return read_model(path, {**imputer_classes(), "MultipleImputer": MultipleImputer}, {"model": model, "completer": completer})
