"""The input of the tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The result of a task on one part of its table."""

    dataset: str
    setting: str  # mechanism and rate: "mcar-30"
    method: str
    seed: int
    part: str  # "train": rows the method was fitted on; "test": rows passed only to transform
    scores: Mapping[str, float]  # by metric; absent if not computed, NaN if the task failed
    seconds: float  # fit for "train", transform for "test"; NaN if the task failed
    added_mib: float  # memory that imputing added to its process; NaN if the task failed
    n: int  # 0 if the task failed before its table was read
    d: int
