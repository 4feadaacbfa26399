"""No test may find data sets by what the machine it runs on has."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _nothing_from_this_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTIMPUTE_DATA", raising=False)
    monkeypatch.setattr("otimpute.datasets.load.cache_folder", lambda: Path(tmp_path_factory.getbasetemp()) / "no-cache")
