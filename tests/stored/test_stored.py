"""Values of declared classes and plain ones become JSON and arrays, and come back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from otimpute._stored import Array, Place, Plain, Real, Record, fields_of, stored
from otimpute.exceptions import StoredFileError


@stored(width=Real(above=0, finite=False))
@dataclass(frozen=True)
class Number:
    width: float
    shift: float


@stored(corners="K C")
@dataclass(frozen=True)
class Category:
    labels: list[str]
    corners: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.corners):
            raise ValueError("as many labels as corners")


@stored(places=Array("columns", index_of="table"))
class Encoding(NamedTuple):
    name: str | None
    count: int
    ordered: bool
    kinds: list[Number | Category]
    places: NDArray[np.int64]
    limits: tuple[float, float]
    anything: Any


KIND = Record((Encoding,))
ENCODING = Encoding(
    None,
    -3,
    True,
    [Number(math.inf, -0.5), Category(["a", "b"], np.eye(2)), Category(["c"], np.zeros((1, 0)))],
    np.array([0, 2]),
    (0.0, 1.5),
    {1: (None, [2.5])},
)


def packed(value: Any = ENCODING, kind: Any = KIND) -> tuple[Any, dict[str, Any]]:
    arrays: dict[str, Any] = {}
    tree = kind.pack(value, Place.root("model", arrays))
    return json.loads(json.dumps(tree, allow_nan=False)), arrays


def unpacked(tree: Any, arrays: dict[str, Any], kind: Any = KIND, **sizes: int) -> Any:
    place = Place.root("model", dict(arrays))
    place.sizes.update(sizes)
    value = kind.unpack(tree, place)
    for check in place.at_the_end:
        check()
    assert not place.arrays
    return value


def test_a_record_comes_back_with_its_parts_by_their_annotations() -> None:
    found = unpacked(*packed(), table=3)
    assert found._replace(kinds=[], places=None) == ENCODING._replace(kinds=[], places=None)
    assert found.kinds[0] == ENCODING.kinds[0]
    assert [type(kind) for kind in found.kinds] == [Number, Category, Category]
    np.testing.assert_array_equal(found.kinds[1].corners, np.eye(2))
    assert found.places.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("keys", "to", "message"),
    [
        (["count"], 1.0, "model.Encoding.count must be a whole number"),
        (["count"], True, "count must be a whole number"),
        (["ordered"], 1, "ordered must be of type bool, not int"),
        (["name"], 5, "name must be of type str"),
        (["limits"], 5, "limits must be a list"),
        (["limits", 0], "inf", "limits.0 must be a finite number"),
        (["limits", 0], 10**400, "limits.0 must be a finite number"),
        (["kinds", 0], {"Path": {}}, "kinds.0 must be one of Number, Category"),
        (["kinds", 0, "Number", "width"], 0.0, "width must be a number > 0"),
        (["kinds", 0, "Number", "width"], "nan", "width must be a number > 0"),
        (["kinds", 0, "Number"], {"width": 1.0}, "must have the fields width, shift"),
        (["kinds", 1, "Category", "labels"], ["a"], "is no Category: as many labels as corners"),
        (["anything"], {"code": "x"}, "anything is no plain value"),
        (["anything"], {"dict": [[["list"]], [1]]}, "anything is no dict"),
    ],
)
def test_what_is_not_of_its_kind_is_refused_by_name(keys: list[Any], to: Any, message: str) -> None:
    tree, arrays = packed()
    place = tree
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = to
    with pytest.raises(StoredFileError, match=message):
        unpacked(tree, arrays, table=3)


def test_sizes_in_small_letters_are_those_of_all_and_in_capitals_those_of_one() -> None:
    unpacked(*packed(), table=3, columns=2)  # two categories, of two labels and of one
    with pytest.raises(StoredFileError, match="has 2 columns where 5 are expected"):
        unpacked(*packed(), table=3, columns=5)
    with pytest.raises(StoredFileError, match="places outside of the 2 table"):
        unpacked(*packed(), table=2)


def test_an_array_is_used_once() -> None:
    tree, arrays = packed()
    tree["kinds"][2] = tree["kinds"][1]
    with pytest.raises(StoredFileError, match="an array that is not there"):
        unpacked(tree, arrays, table=3)


def test_a_class_that_is_not_declared_is_refused_by_the_schema() -> None:
    @dataclass
    class Unknown:
        values: dict[int, int]

    with pytest.raises(TypeError, match=r"no kind of stored value for dict\[int, int\]"):
        fields_of(stored()(Unknown))


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"roof": "green"}, "must be one of 'red', 'blue'"),
        ({"roof": ["red"]}, "must be one of 'red', 'blue'"),
        (["red"], "must be values by name"),
    ],
)
def test_words_are_those_of_their_enumeration(tree: Any, said: str) -> None:
    @stored()
    @dataclass
    class House:
        colours: dict[str, Colour]

    house, place = House({"roof": Colour.RED}), Place.root("house", {})
    packed_house = Record((House,)).pack(house, place)
    assert packed_house == {"colours": {"roof": "red"}}
    assert Record((House,)).unpack(packed_house, place).colours["roof"] is Colour.RED
    with pytest.raises(StoredFileError, match=said):
        Record((House,)).unpack({"colours": tree}, place)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NUMPY = npst.arrays(st.sampled_from([np.float32, np.int64, np.bool_]), npst.array_shapes(min_dims=0, min_side=0))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(SCALARS, inner), max_leaves=8
)


@given(VALUES)
def test_plain_values_come_back_with_their_types(value: Any) -> None:
    found = unpacked(*packed(value, Plain()), Plain())
    assert found == value
    assert repr(found) == repr(value)


@given(st.lists(NUMPY))
def test_arrays_and_numpy_scalars_come_back_to_the_bit(arrays: list[np.ndarray]) -> None:
    value = [each for array in arrays for each in (array, array.dtype.type(3))]
    for found, expected in zip(unpacked(*packed(value, Plain()), Plain()), value, strict=True):
        assert (type(found), found.dtype, found.tobytes()) == (type(expected), expected.dtype, expected.tobytes())


def test_nan_and_texts_in_arrays_come_back() -> None:
    found = unpacked(*packed([math.nan, np.array([["a", None], [1, [2]]], dtype=object)], Plain()), Plain())
    assert math.isnan(found[0])
    assert found[1].tolist() == [["a", None], [1, [2]]]


@pytest.mark.parametrize(
    "value", [print, {1, 2}, object(), b"bytes", 1j, [lambda: None]], ids=lambda value: type(value).__name__
)
def test_other_values_are_refused_when_saved(value: Any) -> None:
    with pytest.raises(TypeError, match="model is of type"):
        packed(value, Plain())
