"""Benchmarks: hide values of complete tables, impute them, score the result, and keep a record per task.

>>> from otimpute.benchmark import load_suite
>>> load_suite("smoke").only(datasets=["iris"], methods=["mean"], seeds=[0]).tasks()[0].setting
'mcar-30'
"""

from .figures import draw_figures
from .outcome import Outcome
from .record import SCORES, Record
from .run import RunProgress, RunReport, run_suite
from .store import Store, outcomes_in
from .suite import Suite, list_suites, load_suite
from .summary import average_ranks, render_table, wins
from .task import Task

__all__ = [
    "SCORES",
    "Outcome",
    "Record",
    "RunProgress",
    "RunReport",
    "Store",
    "Suite",
    "Task",
    "average_ranks",
    "draw_figures",
    "list_suites",
    "load_suite",
    "outcomes_in",
    "render_table",
    "run_suite",
    "wins",
]
