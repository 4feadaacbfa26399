"""What importing costs, and what must not be needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installation import Block, run_blocks


def run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_otimpute_loads_none_of_its_dependencies() -> None:
    heavy = "{'numpy', 'sklearn', 'numba', 'pandas', 'polars', 'torch', 'scipy', 'narwhals', 'rich'}"
    assert run(f"import sys, otimpute; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_public_names_are_listed_and_others_refused() -> None:
    import otimpute

    assert {"SinkhornImputer", "sinkhorn_divergence"} <= set(dir(otimpute))
    for name in otimpute.__all__:
        assert getattr(otimpute, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = otimpute.no_such_name


SOLVE = """
from otimpute import sinkhorn_divergence
print(sinkhorn_divergence([[0.0]], [[1.0]], epsilon=0.1).converged)
"""
FIT = """
import numpy as np
from otimpute import RoundRobinImputer, SinkhornImputer
X = np.random.default_rng(0).normal(size=(40, 3)); X[::4, 1] = np.nan
imputers = SinkhornImputer(max_steps=5, random_state=0), RoundRobinImputer("mlp", max_cycles=1, random_state=0)
print(all(np.isfinite(imputer.fit_transform(X)).all() for imputer in imputers))
"""


def test_algorithms_1_and_3_need_no_optional_package(tmp_path: Path) -> None:
    assert run_blocks([Block(FIT)], tmp_path).printed == ["True\n"]


def test_machine_code_is_kept_elsewhere_when_the_install_is_read_only(tmp_path: Path) -> None:
    import otimpute

    install, home = tmp_path / "install", tmp_path / "home"
    shutil.copytree(Path(otimpute.__file__).parent, install / "otimpute", ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    # Tests may run as root, who may write anywhere: a file where numba would make its folder stops root as well.
    for folder in [install / "otimpute", *(p for p in (install / "otimpute").rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("not a folder")
    environment = {"PYTHONPATH": str(install), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["NUMBA_CACHE_DIR"] = ""
    where = "import otimpute; print(otimpute.__file__)"
    assert run(where, **environment).startswith(str(install))
    assert run(SOLVE, **environment) == "True"
    assert list(home.rglob("*.nbi")), "machine code was not kept"
    # And with no folder at all, it compiles in memory.
    nowhere = {**environment, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    assert run(SOLVE, **nowhere) == "True"
