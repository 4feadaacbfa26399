"""One file of named arrays and a JSON document: nothing in it can run, and any damage is noticed before it is used.

Layout: ``OTIMPUTE``, format version (u32), length of the whole file (u64), length of the header (u64), the header (JSON),
the arrays' bytes in the header's order, each filled up to a multiple of 64, and the SHA-256 of everything before it. The
checksum finds damage, it proves no origin: whoever reads a document must check what it says.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import appears_whole
from .exceptions import Message, StoredFileError, Term

_MAGIC = b"OTIMPUTE"
_VERSION = 1
_PREAMBLE = struct.Struct("<8sIQQ")
_CHECKSUM = 32
_WRITER = Term("imputer.save()")
_ALIGNMENT = 64
_DTYPES = {
    name: np.dtype(code)
    for name, code in {
        "bool": "?", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "u1", "uint16": "<u2",
        "uint32": "<u4", "uint64": "<u8", "float16": "<f2", "float32": "<f4", "float64": "<f8",
    }.items()
}  # fmt: skip
_FOREIGN = {  # what people mistake for one of ours, by its first bytes
    b"\x80": "a Python pickle",
    b"PK\x03\x04": "a zip archive (a torch, skops or Excel file?)",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"\x1f\x8b": "a gzip archive",
}


def write_archive(path: Path, kind: str, document: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file that appears whole or not at all; ``kind`` says what for, ``document`` is anything JSON can hold."""
    with appears_whole(path) as part, part.open("wb") as file:
        for piece in archive_pieces(kind, document, arrays):
            file.write(piece)


def archive_pieces(kind: str, document: Any, arrays: Mapping[str, NDArray[Any]]) -> Iterator[Any]:
    """What is in such a file, piece by piece."""
    plain = {name: np.asarray(array).astype(_stored_dtype(name, array), copy=False) for name, array in arrays.items()}
    directory = {name: {"dtype": array.dtype.name, "shape": list(array.shape)} for name, array in plain.items()}
    header = json.dumps({"kind": kind, "document": document, "arrays": directory}, allow_nan=False).encode()
    header += b" " * (_aligned(_PREAMBLE.size + len(header)) - _PREAMBLE.size - len(header))
    length = _PREAMBLE.size + len(header) + sum(_aligned(array.nbytes) for array in plain.values()) + _CHECKSUM
    checksum = hashlib.sha256()

    def pieces() -> Iterator[Any]:
        yield _PREAMBLE.pack(_MAGIC, _VERSION, length, len(header))
        yield header
        for array in plain.values():
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            yield b"\0" * (_aligned(array.nbytes) - array.nbytes)

    for piece in pieces():
        checksum.update(piece)
        yield piece
    yield checksum.digest()


def is_archive(path: Path) -> bool:
    """Whether a file begins as those written here do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_archive(path: Path, kind: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The document and the arrays of a file that is whole, unchanged, and of this ``kind``."""
    if path.is_dir():
        raise StoredFileError(Message(f"{path} is a folder; pass a file written by ", _WRITER, " or as a checkpoint"))
    return parse_archive(path.read_bytes(), kind, str(path))


def parse_archive(data: bytes, kind: str, name: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The same of the bytes of a file; ``name`` is what errors call it."""
    content = memoryview(data)
    header_end = _check_frame(name, content)
    try:
        header = json.loads(bytes(content[_PREAMBLE.size : header_end]))
        found, document, directory = header["kind"], header["document"], header["arrays"]
        if found != kind:
            raise StoredFileError(f"{name} is a {found} of otimpute, not a {kind}")
        return document, _read_arrays(content[header_end:-_CHECKSUM], directory)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, StoredFileError):
            raise
        raise StoredFileError(f"{name} has a header that makes no sense ({error}); write the file anew") from error


def _check_frame(name: str, content: memoryview) -> int:
    """Is this ours, of a version we know, whole and unchanged? Returns where the header ends."""
    start = bytes(content[:8])
    if start != _MAGIC:
        looks = next((f"; it looks like {what}" for first, what in _FOREIGN.items() if start.startswith(first)), "")
        what = "is empty" if not start else f"is no file of otimpute's{looks}"
        if start and _MAGIC.startswith(start):
            what = "is truncated: only its first bytes are there"
        raise StoredFileError(Message(f"{name} {what}; pass a file written by ", _WRITER, " or as a checkpoint"))
    if len(content) < _PREAMBLE.size + _CHECKSUM:
        raise StoredFileError(f"{name} is truncated: {len(content)} bytes are left; copy or write it again")
    _, version, length, header_length = _PREAMBLE.unpack(content[: _PREAMBLE.size])
    if version > _VERSION:
        raise StoredFileError(
            f"{name} has format version {version}, this otimpute reads up to {_VERSION}; upgrade otimpute to read it"
        )
    if len(content) < length:
        raise StoredFileError(f"{name} is truncated: {len(content)} of {length} bytes are there; copy or write it again")
    if hashlib.sha256(content[:-_CHECKSUM]).digest() != bytes(content[-_CHECKSUM:]):
        raise StoredFileError(f"{name} was changed or damaged after it was written (its checksum differs); write it again")
    header_end = _PREAMBLE.size + header_length
    if version < 1 or len(content) != length or header_end > length - _CHECKSUM:
        raise StoredFileError(f"{name} has lengths that make no sense; write the file anew")
    return int(header_end)


def _read_arrays(body: memoryview, directory: Any) -> dict[str, NDArray[Any]]:
    """The arrays, which lie one after the other: none can share its bytes with another, or need more memory than the file."""
    arrays, begin = {}, 0
    for name, entry in directory.items():
        dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"an array of shape {shape}")
        count = math.prod(shape)
        if begin + count * dtype.itemsize > len(body):
            raise ValueError(f"an array of {count} values in {len(body) - begin} bytes")
        if dtype.kind == "b" and np.frombuffer(body, np.uint8, count, begin).max(initial=0) > 1:
            raise ValueError("a boolean that is neither 0 nor 1")
        # A copy, for the buffer is read-only and nobody else should hold the whole file in memory.
        array = np.frombuffer(body, dtype, count, begin).reshape(shape).astype(dtype.newbyteorder("="), copy=True)
        arrays[name], begin = array, begin + _aligned(array.nbytes)
    if begin != len(body):
        raise ValueError(f"arrays of {begin} bytes in {len(body)}")
    return arrays


def _stored_dtype(name: str, array: NDArray[Any]) -> np.dtype[Any]:
    kind = np.asarray(array).dtype.newbyteorder("=").name
    if kind not in _DTYPES:
        raise TypeError(f"array {name!r} has dtype {np.asarray(array).dtype}, files hold {', '.join(_DTYPES)}")
    return _DTYPES[kind]


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
