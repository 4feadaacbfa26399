"""Impute tables that are spread over files, processes or machines; a fitted imputer travels as bytes.

What runs where the rows are is one pure function, `impute_batches`; each engine that it runs on has a module here, which is
imported when a frame of that engine is passed.
"""

from __future__ import annotations

from .contract import impute, impute_batches
from .files import FileOutcome, FilesFailedError, FileTask, JobSummary, impute_files, list_files

__all__ = [
    "FileOutcome",
    "FileTask",
    "FilesFailedError",
    "JobSummary",
    "impute",
    "impute_batches",
    "impute_files",
    "list_files",
]
