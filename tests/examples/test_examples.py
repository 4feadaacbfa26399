"""Every script of the gallery runs, as a reader would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
RUN = """
import runpy, sys, warnings
from otimpute.exceptions import OtimputeWarning
warnings.simplefilter("error", OtimputeWarning)
runpy.run_path(sys.argv[1], run_name="__main__")
import matplotlib.pyplot as plt
print("figures", len(plt.get_fignums()))
"""


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_it_runs_and_draws(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra bench")
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(script)],
        cwd=tmp_path, env={**os.environ, "MPLBACKEND": "Agg"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[-1]) > 0
    assert list(tmp_path.iterdir()) == []  # it leaves nothing where it was started


def test_every_script_begins_with_a_title_and_a_sentence() -> None:
    for script in EXAMPLES:
        title, underline, empty, *text = script.read_text(encoding="utf-8").split('"""')[1].strip().split("\n")
        assert underline == "=" * len(title), script
        assert not empty and text, script
