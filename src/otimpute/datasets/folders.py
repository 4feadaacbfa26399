"""Folders of data sets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "OTIMPUTE_DATA"


def named_folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder given by the argument or else by the environment variable; None if there is neither."""
    named = data_home if data_home is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        name = "data_home" if data_home is not None else f"the environment variable {VARIABLE}"
        raise NotADirectoryError(f"{name} must be an existing folder, got {str(folder)!r}")
    return folder


def cache_folder() -> Path:
    """Return the user's cache folder, where downloads are kept."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not base.is_absolute():  # the XDG standard says to ignore relative paths
            base = Path.home() / ".cache"
    return base / "otimpute" / "datasets"
