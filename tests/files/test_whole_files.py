"""Files appear whole, where links lead, and no one else may read them who could not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from otimpute._files import appears_whole


def write(path: Path, text: str = "new") -> None:
    with appears_whole(path) as part:
        part.write_text(text)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    path.chmod(mode)
    with appears_whole(path) as part:
        part.write_text("new")
        assert part.stat().st_mode & 0o777 == 0o600
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "data" / "table.csv", tmp_path / "link.csv"
    link.symlink_to(Path("data") / "table.csv")
    for text in ("first", "second"):  # at first it leads nowhere
        write(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


def test_errors_name_the_file_and_not_the_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with pytest.raises(FileNotFoundError) as caught, appears_whole(path) as part:
        part.read_text()
    assert caught.value.filename == str(path)
