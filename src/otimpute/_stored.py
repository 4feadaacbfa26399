"""What a class looks like in a file: JSON values and named arrays, checked by a schema that saving and loading share.

A file names no class to make: what a value becomes follows from its place. Everything is checked before it is used, for
compiled code reads arrays without looking at their bounds.

Shapes are written in names, such as ``"varying R"``: one name is one number everywhere it appears. Small letters name sizes of
the whole model (``table``: columns of the user's table; ``coordinates``: what they are encoded as; ``columns``: those of them
an imputer sees; ``varying``: those with more than one value), capitals sizes within one record, digits are themselves.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .exceptions import StoredFileError

Arrays = dict[str, NDArray[Any]]
_Class = TypeVar("_Class")
_PLAIN_SCALARS = (NoneType, bool, int, str)
_DATES: dict[str, Any] = {"date": dt.date, "datetime": dt.datetime}
_NOT_FINITE = ("nan", "inf", "-inf")


@dataclass(frozen=True)
class Place:
    """Where in a model a value stands, and what holds around it."""

    name: str
    arrays: Arrays  # saving adds to them, loading takes from them
    sizes: dict[str, int]  # of the whole model
    own_sizes: dict[str, int]  # of the record
    at_the_end: list[Callable[[], None]]  # checks that need all sizes

    @classmethod
    def root(cls, name: str, arrays: Arrays) -> Place:
        """Where a model begins."""
        return cls(name, arrays, {}, {}, [])

    def at(self, key: Any, *, record: bool = False) -> Place:
        """A place inside this one; a ``record`` has sizes of its own."""
        name = f"{self.name}.{key}" if self.name else str(key)
        return dataclasses.replace(self, name=name, own_sizes={} if record else self.own_sizes)

    def inside(self) -> Place:
        """The same place, as the beginning of a model with sizes of its own."""
        return dataclasses.replace(self, sizes={}, own_sizes={}, at_the_end=[])

    def fail(self, problem: str) -> NoReturn:
        """Say what is wrong here."""
        where = self.name or "the document"
        raise StoredFileError(f"{where} {problem}: not what imputer.save() writes; save the imputer again")

    def check_size(self, symbol: str, number: int) -> None:
        """One symbol, one number."""
        sizes = self.sizes if symbol.islower() else self.own_sizes
        expected = int(symbol) if symbol.isdigit() else sizes.setdefault(symbol, number)
        if expected != number:
            self.fail(f"has {number} {symbol} where {expected} are expected")

    def keep(self, array: NDArray[Any]) -> str:
        """Add an array to those of the file; returns its name there."""
        name = self.name if self.name not in self.arrays else f"{self.name}:{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def take(self, tree: Any) -> NDArray[Any]:
        """An array of the file; each is used once."""
        if not isinstance(tree, str) or tree not in self.arrays:
            self.fail("is an array that is not there")
        return self.arrays.pop(tree)


class Kind(ABC):
    """A kind of value."""

    @abstractmethod
    def pack(self, value: Any, place: Place) -> Any:
        """What JSON holds of the value; arrays are handed to ``place``."""

    @abstractmethod
    def unpack(self, tree: Any, place: Place) -> Any:
        """The value, or an error."""


@dataclass(frozen=True)
class Array(Kind):
    """An array. Its type comes from the annotation of its field where none is given."""

    shape: str
    dtype: Any = None
    at_least: float = -math.inf
    nan: bool = False  # may contain NaN; infinity never
    index_of: str = ""  # its values are places among what has this size
    or_empty: bool = False  # all sizes may be 0 instead

    def pack(self, value: Any, place: Place) -> Any:
        return place.keep(np.asarray(value))

    def unpack(self, tree: Any, place: Place) -> NDArray[Any]:
        array = place.take(tree)
        symbols = self.shape.split()
        if array.dtype != np.dtype(self.dtype) or array.ndim != len(symbols):
            place.fail(f"is {array.dtype} of shape {array.shape}, must be {np.dtype(self.dtype)} of shape [{self.shape}]")
        if not self.or_empty or any(array.shape):
            for symbol, number in zip(symbols, array.shape, strict=True):
                place.check_size(symbol, number)
        if array.dtype.kind == "f" and not (~np.isinf(array) if self.nan else np.isfinite(array)).all():
            place.fail("has values that are not finite")
        if self.at_least > -math.inf and array.size and array.min() < self.at_least:
            place.fail(f"has values below {self.at_least:g}")
        if self.index_of and array.size:
            place.at_the_end.append(lambda: self._check_index(array, place))
        return array

    def _check_index(self, array: NDArray[Any], place: Place) -> None:
        size = place.sizes.get(self.index_of, 0)
        if array.min() < 0 or array.max() >= size:
            place.fail(f"has places outside of the {size} {self.index_of}")


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number, perhaps one that is a size."""

    at_least: int = 0
    at_most: int = 2**63 - 1
    size: str = ""

    def pack(self, value: Any, place: Place) -> int:  # noqa: ARG002
        return int(value)

    def unpack(self, tree: Any, place: Place) -> int:
        if type(tree) is not int or not self.at_least <= tree <= self.at_most:
            place.fail(f"must be a whole number from {self.at_least} to {self.at_most}")
        if self.size:
            place.check_size(self.size, tree)
        return tree


@dataclass(frozen=True)
class Real(Kind):
    """A float. JSON has no word for those that are not finite, so they are text."""

    above: float | None = None
    finite: bool = True

    def pack(self, value: Any, place: Place) -> float | str:  # noqa: ARG002
        return float(value) if math.isfinite(value) else str(float(value))

    def unpack(self, tree: Any, place: Place) -> float:
        accepted = "must be a finite number" if self.finite else "must be a number"
        if tree not in _NOT_FINITE if isinstance(tree, str) else type(tree) is not float:
            place.fail(accepted)
        number = float(tree)
        if (self.finite and not math.isfinite(number)) or (self.above is not None and not number > self.above):
            place.fail(accepted + ("" if self.above is None else f" > {self.above:g}"))
        return number


@dataclass(frozen=True)
class Scalar(Kind):
    """A text or a truth value."""

    type: type[str] | type[bool]

    def pack(self, value: Any, place: Place) -> Any:  # noqa: ARG002
        return self.type(value)

    def unpack(self, tree: Any, place: Place) -> Any:
        if type(tree) is not self.type:
            place.fail(f"must be of type {self.type.__name__}, not {type(tree).__name__}")
        return tree


@dataclass(frozen=True)
class Word(Kind):
    """One of an enumeration's."""

    words: type[StrEnum]

    def pack(self, value: Any, place: Place) -> str:  # noqa: ARG002
        return str(value)

    def unpack(self, tree: Any, place: Place) -> StrEnum:
        if type(tree) is not str or tree not in list(self.words):
            place.fail(f"must be one of {', '.join(map(repr, map(str, self.words)))}")
        return self.words(tree)


@dataclass(frozen=True)
class Maybe(Kind):
    """A value or None."""

    kind: Kind

    def pack(self, value: Any, place: Place) -> Any:
        return None if value is None else self.kind.pack(value, place)

    def unpack(self, tree: Any, place: Place) -> Any:
        return None if tree is None else self.kind.unpack(tree, place)


class IfThere(Maybe):
    """An attribute that not every fit leaves, or a field that is left out where it is None, its default."""


@dataclass(frozen=True)
class ListOf(Kind):
    """A list or tuple of one kind."""

    kind: Kind
    type: type[list[Any]] | type[tuple[Any, ...]] = list

    def pack(self, value: Any, place: Place) -> Any:
        return [self.kind.pack(one, place.at(k)) for k, one in enumerate(value)]

    def unpack(self, tree: Any, place: Place) -> Any:
        if not isinstance(tree, list):
            place.fail("must be a list")
        return self.type(self.kind.unpack(one, place.at(k)) for k, one in enumerate(tree))


@dataclass(frozen=True)
class ByName(Kind):
    """Values of one kind, by name."""

    kind: Kind

    def pack(self, value: Any, place: Place) -> Any:
        return {name: self.kind.pack(one, place.at(name)) for name, one in value.items()}

    def unpack(self, tree: Any, place: Place) -> Any:
        if not isinstance(tree, dict):
            place.fail("must be values by name")
        return {name: self.kind.unpack(one, place.at(name)) for name, one in tree.items()}


@dataclass(frozen=True)
class Labels(Kind):
    """Names of columns: an array of texts (or whole numbers)."""

    size: str

    def pack(self, value: Any, place: Place) -> Any:  # noqa: ARG002
        return [label if isinstance(label, str) else int(label) for label in value]

    def unpack(self, tree: Any, place: Place) -> NDArray[Any]:
        if not isinstance(tree, list) or not all(type(label) in (str, int) for label in tree):
            place.fail("must be a list of names")
        place.check_size(self.size, len(tree))
        return np.array(tree, dtype=object)


class NamedArrays(Kind):
    """Arrays of any types and shapes by name, such as a module's weights; whoever uses them checks them."""

    def pack(self, value: Any, place: Place) -> Any:
        return {name: place.at(name).keep(array) for name, array in value.items()}

    def unpack(self, tree: Any, place: Place) -> Any:
        if not isinstance(tree, dict):
            place.fail("must be arrays by name")
        return {name: place.at(name).take(one) for name, one in tree.items()}


class Plain(Kind):
    """Whatever people pass as a parameter: numbers, texts, dates, arrays, and lists, tuples and dicts of such."""

    def pack(self, value: Any, place: Place) -> Any:
        if type(value) in _PLAIN_SCALARS or (type(value) is float and math.isfinite(value)):
            return value
        if isinstance(value, str):
            return str(value)
        if type(value) is float:
            return {"float": str(value)}
        if type(value) in _DATES.values():
            return {type(value).__name__: value.isoformat()}
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"scalar": place.keep(np.asarray(value))}
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "biuf":
                return {"array": place.keep(value)}
            return {"objects": [list(value.shape), self._items(value.ravel(), place)]}
        if type(value) is list:
            return self._items(value, place)
        if type(value) is tuple:
            return {"tuple": self._items(value, place)}
        if type(value) is dict:
            return {"dict": [self._items(value, place), self._items(value.values(), place)]}
        raise TypeError(
            f"{place.name} is of type {type(value).__name__}, and model files hold numbers, texts, dates, arrays, lists, "
            "tuples and dicts only; set it to one of these (set_params) before saving"
        )

    def _items(self, values: Any, place: Place) -> list[Any]:
        return [self.pack(one, place) for one in values]

    def unpack(self, tree: Any, place: Place) -> Any:
        if type(tree) in _PLAIN_SCALARS or type(tree) is float:
            return tree
        if isinstance(tree, list):
            return [self.unpack(one, place) for one in tree]
        tag, content = next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
        if tag == "float" and content in _NOT_FINITE:
            return float(content)
        if tag in _DATES and isinstance(content, str):
            try:
                return _DATES[tag].fromisoformat(content)
            except ValueError as error:
                place.fail(f"is no {tag} ({error})")
        if tag in ("array", "scalar"):
            return place.take(content)[... if tag == "array" else ()]
        if tag in ("tuple", "dict", "objects") and isinstance(content, list):
            try:
                return self._collect(tag, self.unpack(content, place))
            except (TypeError, ValueError, OverflowError) as error:  # keys without a hash, sizes that do not fit
                if isinstance(error, StoredFileError):
                    raise
                place.fail(f"is no {tag} ({error})")
        return place.fail("is no plain value")

    def _collect(self, tag: str, content: list[Any]) -> Any:
        if tag == "tuple":
            return tuple(content)
        first, second = content
        if tag == "dict":
            return dict(zip(first, second, strict=True))
        cells = np.empty(len(second), dtype=object)
        for k, one in enumerate(second):  # a list in a cell stays one
            cells[k] = one
        return cells.reshape(first)


@dataclass(frozen=True)
class RecordOf(Kind):
    """One of some classes declared by `stored`; several are told apart by their names."""

    classes: tuple[type, ...]

    def pack(self, value: Any, place: Place) -> Any:
        tree = {
            name: kind.pack(getattr(value, name), place.at(name))
            for name, kind in fields_of(value.__class__).items()
            if not isinstance(kind, IfThere) or getattr(value, name) is not None
        }
        return tree if len(self.classes) == 1 else {type(value).__name__: tree}

    def unpack(self, tree: Any, place: Place) -> Any:
        cls = self.classes[0]
        if len(self.classes) > 1:
            by_name = {each.__name__: each for each in self.classes}
            if not isinstance(tree, dict) or len(tree) != 1 or next(iter(tree)) not in by_name:
                place.fail(f"must be one of {', '.join(by_name)}")
            (name, tree) = next(iter(tree.items()))
            cls = by_name[name]
        kinds, place = fields_of(cls), place.at(cls.__name__, record=True)
        required = {name for name, kind in kinds.items() if not isinstance(kind, IfThere)}
        if not isinstance(tree, dict) or not required <= tree.keys() <= kinds.keys():
            place.fail(f"must have the fields {', '.join(kinds)}")
        values = {name: kind.unpack(tree[name], place.at(name)) for name, kind in kinds.items() if name in tree}
        try:
            return cls(**values)
        except ValueError as error:  # a class refuses what makes no sense to it
            place.fail(f"is no {cls.__name__}: {error}")


def stored(**kinds: Kind | str) -> Callable[[type[_Class]], type[_Class]]:
    """Let models hold instances of a dataclass or NamedTuple; fields are of the kind their annotation says.

    For arrays a text gives the shape; a `Kind` overrides the annotation. Invariants are checked in ``__post_init__``, which
    raises ValueError.

    >>> @stored(weights="N 2", tolerance=Real(above=0))
    ... @dataclass
    ... class Example:
    ...     weights: NDArray[np.float64]
    ...     tolerance: float
    ...     names: list[str]
    >>> place = Place.root("model", {})
    >>> tree = RecordOf((Example,)).pack(Example(np.ones((3, 2)), 0.5, ["a"]), place)
    >>> tree
    {'weights': 'model.weights', 'tolerance': 0.5, 'names': ['a']}
    >>> RecordOf((Example,)).unpack(tree, place).names
    ['a']
    """

    def declare(cls: type[_Class]) -> type[_Class]:
        cls.__stored_kinds__ = kinds  # type: ignore[attr-defined]
        return cls

    return declare


@cache
def fields_of(cls: type) -> Mapping[str, Kind]:
    """The stored fields of a class."""
    kinds, hints = vars(cls)["__stored_kinds__"], get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else cls._fields  # type: ignore[attr-defined]
    return {name: _kind_of(hints[name], kinds.get(name)) for name in names}


def _kind_of(hint: Any, given: Kind | str | None) -> Kind:
    if isinstance(given, str):
        given = Array(given)
    if isinstance(given, Array) and given.dtype is None:
        return dataclasses.replace(given, dtype=get_args(get_args(hint)[1])[0])
    if given is not None:
        return given
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        others = tuple(one for one in arguments if one is not NoneType)
        kind = _kind_of(others[0], None) if len(others) == 1 else RecordOf(others)
        return kind if len(others) == len(arguments) else Maybe(kind)
    if origin in (list, tuple):
        return ListOf(_kind_of(arguments[0], None), origin)
    if origin is dict and arguments[0] is str:
        return ByName(_kind_of(arguments[1], None))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Word(hint)
    if hint in (str, bool):
        return Scalar(hint)
    if hint in (int, float):
        return Whole(at_least=-(2**63)) if hint is int else Real()
    if hint is Any:
        return Plain()
    if hasattr(hint, "__stored_kinds__"):
        return RecordOf((hint,))
    raise TypeError(f"no kind of stored value for {hint!r}; declare it with stored(), or give the field a Kind")
