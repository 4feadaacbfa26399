"""``otimpute inspect --write-plan``: draft a file for ``--plan`` from what a table shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .._files import appears_whole
from .._text import count
from .options import Replacing
from .plan import PlanError, TablePlan

if TYPE_CHECKING:
    from ..files import TableFile
    from ..table import ColumnSummary


def check_draft(path: Path, writing: Replacing) -> None:
    """Raise if the file could not be written."""
    if path.suffix.lower() != ".toml":
        raise PlanError(f"{path}: plans are drafted as TOML; give the file a name like table.toml")
    writing.check_model(path)


def write_draft(
    path: Path, table: TableFile, columns: Sequence[ColumnSummary], aside: Sequence[str], plan: TablePlan, command: str
) -> None:
    """Write a plan with what is known already, and proposals behind #; columns ``aside`` look like identifiers."""
    from .plan.draft import draft_plan
    from .plan.findings import find, likely_panel

    frame = table.frame
    found = find(frame, columns)
    names = [each.name for each in found]
    text = draft_plan(
        found,
        plan,
        title=f"What is known of {table.path}: {count(frame.num_rows, 'row')} × {count(frame.num_columns, 'column')}.",
        command=command,
        spelled={each.name: each.missing_as for each in table.columns if each.name in names},
        identifiers=aside,
        panel=likely_panel(frame, found),
    )
    with appears_whole(path) as part:
        part.write_text(text, encoding="utf-8")
