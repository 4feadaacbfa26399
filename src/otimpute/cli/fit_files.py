"""``otimpute fit`` on many Parquet files, which may be larger than memory."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._optional import require
from .._text import count, duration
from .options import about
from .parse import named_as_set
from .show import collected_notes, console, tell, tell_json, tell_notes

if TYPE_CHECKING:
    from .method import ColumnChoice, Constraints, MethodChoice
    from .options import Replacing, Showing


def fit_files(
    source: str,
    model: Path,
    writing: Replacing,
    showing: Showing,
    choice: ColumnChoice,
    constraints: Constraints,
    method: MethodChoice,
) -> None:
    """Fit a model to the rows of all files, and save it."""
    from ..distributed import list_files
    from ..files import Column, kind_of
    from ..streams import scan
    from .impute import tell_verdict

    writing.check_model(model)
    imputer = replace(method, checkpoint=None).imputer()
    pa, ds = (require(name, "reading Parquet files", "cli") for name in ("pyarrow", "pyarrow.dataset"))
    begun, checkpoint = time.perf_counter(), method.checkpoint
    files = list_files(source)
    with about(source), named_as_set(method.settings), collected_notes() as notes:
        whole = ds.dataset([str(file) for file in files])
        used = choice.of(whole.schema.names)
        dataset = whole.replace_schema(pa.schema([whole.schema.field(name) for name in used]))
        columns = [Column(field.name, kind_of(field.type), field.type) for field in dataset.schema]
        imputer.set_params(constraints=constraints.of(columns))
        shown = not (showing.quiet or showing.json) and console(err=True).is_terminal
        try:
            imputer.fit(scan(dataset, checkpoint=checkpoint, verbose=int(shown)))
        except KeyboardInterrupt:
            saved = checkpoint is not None and checkpoint.exists()
            raise KeyboardInterrupt(f"run the same command to continue from {checkpoint}" if saved else "") from None
    imputer.file_gaps_ = [[] for _ in used]
    imputer.save(model)
    seconds, summary = time.perf_counter() - begun, imputer.scan_summary_
    if showing.json:
        told: dict[str, Any] = {
            "input": source, "model": model, "method": method.method, "seed": method.seed, "n_files": len(files),
            "seconds": round(seconds, 3), "rows": asdict(summary), "notes": notes,
        }  # fmt: skip
        tell_json(told, err=False)
        return
    tell_notes(notes)
    if not showing.quiet:
        size = f"{count(summary.n_rows, 'row')} × {count(len(used), 'column')} in {count(len(files), 'file')}"
        tell(f"{model}: {method.method} learned from {size} in {duration(seconds)}")
        tell(str(summary))
        tell_verdict(imputer)
        tell(f"to impute files: otimpute apply {model} '{source}' -o OUT", style="dim")
