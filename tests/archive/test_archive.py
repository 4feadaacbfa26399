"""Files of arrays and a document: what goes in comes out, and what did not go in does not."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from otimpute._archive import read_archive, write_archive
from otimpute.exceptions import StoredFileError

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
ARRAYS = st.dictionaries(
    st.text(),
    st.sampled_from(KINDS).flatmap(lambda kind: npst.arrays(kind, npst.array_shapes(min_dims=0, min_side=0))),
    max_size=4,
)
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(document=JSON, arrays=ARRAYS)
def test_documents_and_arrays_come_back_to_the_bit(document: Any, arrays: dict[str, Any], tmp_path: Path) -> None:
    write_archive(tmp_path / "file", "thing", document, arrays)
    found, found_arrays = read_archive(tmp_path / "file", "thing")
    assert json.dumps(found) == json.dumps(document)
    assert list(found_arrays) == list(arrays)
    for name, array in arrays.items():
        found_array = found_arrays[name]
        assert (found_array.dtype, found_array.shape) == (array.dtype, array.shape)
        assert found_array.tobytes() == array.tobytes()
        assert found_array.flags.writeable and found_array.flags.aligned


@pytest.mark.parametrize("array", [np.arange(12.0).reshape(3, 4).T, np.arange(10)[::3], np.arange(4, dtype=">i4")])
def test_other_layouts_and_byte_orders_hold_the_same_values(array: np.ndarray, tmp_path: Path) -> None:
    write_archive(tmp_path / "file", "thing", None, {"a": array})
    found = read_archive(tmp_path / "file", "thing")[1]["a"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j]), np.array(["2020-01-01"], "M8[D]")])
def test_arrays_of_other_types_are_refused_by_name_and_leave_no_file(array: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="array 'weights' has dtype"):
        write_archive(tmp_path / "file", "thing", None, {"weights": array})
    assert not list(tmp_path.iterdir())


def test_numbers_that_json_cannot_hold_are_refused_and_leave_the_old_file(tmp_path: Path) -> None:
    write_archive(tmp_path / "file", "thing", "old", {})
    with pytest.raises(ValueError, match="JSON"):
        write_archive(tmp_path / "file", "thing", float("nan"), {})
    assert read_archive(tmp_path / "file", "thing")[0] == "old"


def forged(header: Any, body: bytes = b"", version: int = 1, text: bytes | None = None) -> bytes:
    """A file whose checksum and lengths are right, whatever its header says."""
    text = json.dumps(header).encode() if text is None else text
    content = struct.pack("<8sIQQ", b"OTIMPUTE", version, 28 + len(text) + len(body) + 32, len(text)) + text + body
    return content + hashlib.sha256(content).digest()


def arrays(**entries: Any) -> dict[str, Any]:
    return {"kind": "thing", "document": None, "arrays": entries}


FORGED = {
    "no object": forged([]),
    "nothing": forged({}),
    "no JSON": forged(None, text=b"{"),
    "no UTF-8": forged(None, text=b"\xff"),
    "depth": forged(None, text=b'{"kind": ' + b"[" * 100_000),
    "long number": forged(None, text=b'{"kind": "thing", "document": ' + b"9" * 10_000 + b', "arrays": {}}'),
    "arrays that are a list": forged({"kind": "thing", "document": None, "arrays": [1]}),
    "unknown type": forged(arrays(a={"dtype": "object", "shape": [1]}), bytes(64)),
    "type without a hash": forged(arrays(a={"dtype": [], "shape": [1]}), bytes(64)),
    "no shape": forged(arrays(a={"dtype": "int8"}), bytes(64)),
    "negative size": forged(arrays(a={"dtype": "int8", "shape": [-1, -1]}), bytes(64)),
    "size that is no number": forged(arrays(a={"dtype": "int8", "shape": [True]}), bytes(64)),
    "size in text": forged(arrays(a={"dtype": "int8", "shape": "1"}), bytes(64)),
    "more than there is": forged(arrays(a={"dtype": "int8", "shape": [65]}), bytes(64)),
    "much more than there is": forged(arrays(a={"dtype": "int8", "shape": [2**40, 2**40]}), bytes(64)),
    "huge and empty": forged(arrays(a={"dtype": "int8", "shape": [0, 10**30]})),
    "too many dimensions": forged(arrays(a={"dtype": "int8", "shape": [1] * 100}), bytes(64)),
    "one array's bytes for two": forged(
        arrays(a={"dtype": "int8", "shape": [64]}, b={"dtype": "int8", "shape": [64]}), bytes(64)
    ),
    "bytes left over": forged(arrays(), bytes(64)),
    "a boolean of two": forged(arrays(a={"dtype": "bool", "shape": [1]}), b"\x02" + bytes(63)),
    "version 0": forged(arrays(), version=0),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_files_are_refused_though_the_checksum_is_right(what: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(FORGED[what])
    with pytest.raises(StoredFileError, match=r"makes? no sense"):
        read_archive(tmp_path / "file", "thing")


def test_the_forger_of_these_tests_can_write_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(forged(arrays(a={"dtype": "int8", "shape": [64]}), bytes(range(64))))
    assert read_archive(tmp_path / "file", "thing")[1]["a"].tolist() == list(range(64))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"OTIM", "is truncated"),
        (forged(arrays())[:40], "is truncated"),
        (forged(arrays())[:-1], "is truncated"),
        (forged(arrays()) + b"x", "changed or damaged"),
        (forged(arrays(), version=2), "has format version 2.*upgrade"),
        (b"PK\x03\x04...", "looks like a zip archive"),
        (b"hello", "no file of otimpute's"),
        (forged({"kind": "checkpoint", "document": None, "arrays": {}}), "is a checkpoint of otimpute, not a thing"),
    ],
)
def test_each_refusal_gives_its_reason(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(StoredFileError, match=message):
        read_archive(tmp_path / "file", "thing")


@MANY
@given(data=st.data())
def test_no_change_of_a_byte_goes_unnoticed(data: st.DataObject, tmp_path: Path) -> None:
    write_archive(tmp_path / "file", "thing", {"a": [1, 2]}, {"x": np.arange(5.0), "y": np.zeros(3, dtype=bool)})
    content = bytearray((tmp_path / "file").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(StoredFileError):
        read_archive(tmp_path / "file", "thing")
