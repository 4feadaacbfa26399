"""Where data sets are looked for, in which order, and what happens to bad files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from otimpute.datasets import DatasetUnavailableError, load_dataset
from otimpute.datasets.card import Card
from otimpute.datasets.download import Patience
from otimpute.datasets.folders import cache_folder
from otimpute.datasets.load import find
from otimpute.datasets.source import Source
from otimpute.datasets.text import read_csv, write_csv
from otimpute.exceptions import OtimputeWarning

GOOD = "height,weight\n1.5,0.1\n-2.0,1e-05\n0.0,3.0\n"
WRONG = "height,weight\n1.5,0.1\n-2.0,1e-05\n0.0,3.5\n"


@pytest.fixture
def online(site, card: Card, table: bytes) -> Card:
    return replace(card, downloads=(Source(site.put("/tiny", table)),))


@pytest.fixture
def cached() -> Path:
    cache_folder().mkdir(parents=True)
    return cache_folder() / "tiny.csv"


def test_a_download_is_kept_and_used_when_the_server_is_gone(online: Card, site, patience: Patience) -> None:
    first = find(online, patience)
    assert [path.name for path in cache_folder().iterdir()] == ["tiny.csv"]
    site.stop()
    again = find(online, patience, download=False)
    np.testing.assert_array_equal(again.values, first.values)
    assert site.asked == ["/tiny"]


@pytest.mark.parametrize("reply", [{"status": 404}, b"1,2\n", {"body": b"1.5,", "announced": 99}, {"status": 500}])
def test_a_failed_download_leaves_nothing_behind(reply, site, card: Card, patience: Patience, tmp_path: Path) -> None:
    online = replace(card, downloads=(Source(site.put("/tiny", reply)),))
    with pytest.raises(DatasetUnavailableError):
        find(online, patience)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_corrupt_file_in_the_cache_is_fetched_again_with_a_warning(
    online: Card, site, cached: Path, patience: Patience
) -> None:
    cached.write_text(WRONG)
    with pytest.warns(
        OtimputeWarning, match=r"tiny\.csv is not the data set 'tiny': the checksum .* downloaded again"
    ) as caught:
        dataset = find(online, patience)
    assert caught[0].filename == __file__
    online.check(dataset.values)
    assert cached.read_text() == GOOD
    find(online, patience, download=False)
    assert site.asked == ["/tiny"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"height,weight\n1.5"], ids=["empty", "binary", "cut"])
def test_a_file_cut_or_garbled_in_the_cache_is_fetched_again(
    content: bytes, online: Card, cached: Path, patience: Patience
) -> None:
    cached.write_bytes(content)
    with pytest.warns(OtimputeWarning):
        find(online, patience)
    assert cached.read_text() == GOOD


def test_loads_at_the_same_time_agree_and_leave_one_whole_file(online: Card, patience: Patience) -> None:
    together = threading.Barrier(6)

    def load(_: int) -> np.ndarray:
        together.wait()
        return find(online, patience).values

    with ThreadPoolExecutor(6) as pool:
        for values in pool.map(load, range(6)):
            online.check(values)
    assert [path.name for path in cache_folder().iterdir()] == ["tiny.csv"]
    assert (cache_folder() / "tiny.csv").read_text() == GOOD


def test_a_cache_that_cannot_be_written_only_warns(
    online: Card, patience: Patience, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(blocked))
    with pytest.warns(OtimputeWarning, match="cannot be written .* downloaded each time"):
        online.check(find(online, patience).values)


def test_a_named_folder_comes_before_the_cache_and_the_web(
    online: Card, site, cached: Path, patience: Patience, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached.write_text(WRONG)  # would warn, which is an error in tests
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "tiny.csv").write_text(GOOD)
    find(online, patience, folder)
    find(online, patience, str(folder), download=False)
    monkeypatch.setenv("OTIMPUTE_DATA", str(folder))
    find(online, patience)
    assert site.asked == []


def test_the_argument_comes_before_the_environment_variable(
    card: Card, patience: Patience, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder, content in ((good, GOOD), (bad, WRONG)):
        folder.mkdir()
        (folder / "tiny.csv").write_text(content)
    monkeypatch.setenv("OTIMPUTE_DATA", str(bad))
    find(card, patience, good, download=False)
    with pytest.raises(ValueError, match="bad"):
        find(card, patience, download=False)


def test_a_named_folder_without_the_file_is_passed_over(online: Card, site, patience: Patience, tmp_path: Path) -> None:
    find(online, patience, tmp_path)
    assert site.asked == ["/tiny"]
    assert not (tmp_path / "tiny.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WRONG, "the checksum of its values must be"),
        ("height,weight\n1.5,0.1\n", "3 rows and 2 columns, got 1 and 2"),
        ("height,mass\n1.5,0.1\n", "column 2 must be 'weight', got 'mass'; its header must be height,weight"),
        ("height\n1.5\n", "column 2 must be 'weight', got None"),
        ("height,weight,age\n1,2,3\n", "column 3 must be None, got 'age'"),
        ("height,weight\n1.5,\n", "could not convert"),
    ],
)
def test_a_wrong_file_in_a_named_folder_is_an_error_that_names_it(
    content: str, message: str, online: Card, site, patience: Patience, tmp_path: Path
) -> None:
    (tmp_path / "tiny.csv").write_text(content)
    with pytest.raises(ValueError, match=message) as raised:
        find(online, patience, tmp_path)
    assert str(tmp_path / "tiny.csv") in str(raised.value)
    assert "remove or replace that file" in str(raised.value)
    assert site.asked == []


@pytest.mark.parametrize(
    "content",
    [
        GOOD.replace("\n", "\r\n").encode(),
        b'\xef\xbb\xbf"height","weight"\n1.50,1e-1\n-2, 0.00001 \n-0.0,3\n\n',
    ],
    ids=["windows", "spreadsheet"],
)
def test_a_file_with_the_right_values_is_accepted_however_it_is_written(
    content: bytes, card: Card, patience: Patience, tmp_path: Path
) -> None:
    (tmp_path / "tiny.csv").write_bytes(content)
    card.check(find(card, patience, tmp_path, download=False).values)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotADirectoryError, match=r"data_home must be an existing folder, got .*nowhere"):
        load_dataset("iris", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("OTIMPUTE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="the environment variable OTIMPUTE_DATA must be an existing folder"):
        load_dataset("iris")


def test_without_download_the_error_comes_at_once_and_tells_what_to_do() -> None:
    with pytest.raises(DatasetUnavailableError) as raised:
        load_dataset("ecoli", download=False)
    message = str(raised.value)
    for part in (
        "download=False",
        "ecoli.csv",
        str(cache_folder()),
        "OTIMPUTE_DATA",
        "mcg,gvh,lip,chg,aac,alm1,alm2",
        "dataset/39",
    ):
        assert part in message
    assert isinstance(raised.value, OSError)


def test_a_scikit_learn_with_other_values_is_passed_over(online: Card, site, patience: Patience) -> None:
    find(replace(online, scikit_learn="load_iris"), patience)
    assert site.asked == ["/tiny"]


@pytest.mark.parametrize("argument", ["download", "progress"])
def test_switches_must_be_booleans(argument: str) -> None:
    with pytest.raises(TypeError, match=f"{argument} must be True or False, got 'no'"):
        load_dataset("iris", **{argument: "no"})  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.just(2)), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_a_written_file_gives_back_the_same_numbers(tmp_path: Path, values: np.ndarray) -> None:
    path = tmp_path / "deep" / "table.csv"
    write_csv(path, ("a", "b"), values)
    np.testing.assert_array_equal(read_csv(path, ("a", "b")), values)
    assert [p.name for p in path.parent.iterdir()] == ["table.csv"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_csv(path, ("\ud800",), np.zeros((1, 1)))
    assert [p.read_text() for p in tmp_path.iterdir() if p.is_file()] == ["old"]


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/cache"}, "/x/cache"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/x/home/.cache"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/x/home/.cache"),
        ("darwin", {}, "/x/home/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/x/local"}, "/x/local"),
        ("win32", {"LOCALAPPDATA": ""}, "/x/home/AppData/Local"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths are written as on Unix")
def test_the_cache_is_where_the_platform_keeps_caches(
    platform: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for variable, value in {"HOME": "/x/home", **environment}.items():
        monkeypatch.setenv(variable, value)
    assert cache_folder() == Path(expected) / "otimpute" / "datasets"


def test_values_need_neither_pandas_nor_rich() -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "rich", "polars", "matplotlib"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from otimpute.datasets import load_dataset
dataset = load_dataset("wine", download=False)
print(dataset.values.shape)
try:
    dataset.data
except ModuleNotFoundError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        "(178, 13)",
        """a data set as a DataFrame needs the package 'pandas': pip install "otimpute[bench]\"""",
    ]
