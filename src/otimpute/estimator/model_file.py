"""Fitted imputers in files that hold data only (docs/guide/model-files.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._archive import archive_pieces, parse_archive, read_archive, write_archive
from .._stored import Arrays, IfThere, Kind, Place, Plain
from ..exceptions import StoredFileError

_MODEL = "model file"
_NEVER_STORED = {"callbacks", "checkpoint"}  # functions, and a place that belongs to one fit
_GIVEN = {"given": "at load"}  # stands for a parameter that is code
_PLAIN = Plain()
_FIELDS = {"imputer": str, "version": int, "parameters": dict, "state": dict}


class Storable:
    """What lets an imputer be saved: a class declares the kinds of the attributes that a fit leaves."""

    _stored: ClassVar[Mapping[str, Kind]] = {}  # of this class; those of its bases are added
    _state_version: ClassVar[int] = 3  # to be raised when what is stored changes
    _given_at_load: ClassVar[str] = ""  # the parameter that may be code, if there is one
    _parameter_kinds: ClassVar[Mapping[str, Kind]] = {}  # of parameters that are more than plain values

    def save(self, path: str | Path) -> None:
        """Write the fitted imputer to a file, to be read by ``otimpute.load``; an existing file is replaced.

        The file holds numbers and texts, no code. ``callbacks``, ``checkpoint``, a ``random_state`` that is a generator, and a
        torch ``model`` or ``completer`` (except for its weights) are not stored: see docs/guide/model-files.md.

        Parameters
        ----------
        path : str or Path
            Where to; ``.otimpute`` is a good ending.
        """
        write_archive(Path(path), _MODEL, *self._packed())

    def to_bytes(self) -> bytes:
        """Return the fitted imputer as bytes, to be sent elsewhere and read by ``otimpute.from_bytes``; see `save`.

        Equal imputers give equal bytes.
        """
        return b"".join(archive_pieces(_MODEL, *self._packed()))

    def _packed(self) -> tuple[dict[str, Any], Arrays]:
        check_is_fitted(self)
        arrays: Arrays = {}
        return {"otimpute": __version__, **_pack(self, Place.root("", arrays))}, arrays

    @classmethod
    def _kinds(cls) -> dict[str, Kind]:
        return {name: kind for base in reversed(cls.__mro__) for name, kind in vars(base).get("_stored", {}).items()}

    def _state(self) -> dict[str, Any]:
        """What is to be stored, by name: the declared attributes, unless a class knows better."""
        return {name: getattr(self, name) for name in self._kinds() if hasattr(self, name)}

    def _plain_parameter(self, name: str, value: Any) -> Any:  # noqa: ARG002
        """A parameter as files hold it, where that is not what was passed."""
        return value

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Take over what was stored; a class raises StoredFileError where its parts do not go together."""
        vars(self).update(state)


class Unfitted(Kind):
    """An imputer that is a parameter of another one, of one of some classes."""

    def __init__(self, classes: Sequence[type[Storable]]):
        self.classes = {cls.__name__: cls for cls in classes}

    def pack(self, value: Any, place: Place) -> Any:  # noqa: D102
        packed = _pack_parameters(value, place)
        if _GIVEN in packed.values():
            raise TypeError(f"{place.name} is made of code of your own ({value!r}), and model files hold none")
        return {type(value).__name__: packed}

    def unpack(self, tree: Any, place: Place) -> Any:  # noqa: D102
        name, parameters = next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
        if name not in self.classes or not isinstance(parameters, dict):
            place.fail(f"must be one of {', '.join(self.classes)}")
        cls = self.classes[name]
        if not parameters.keys() <= signature(cls).parameters.keys() - _NEVER_STORED:
            place.fail(f"has parameters that {name} has not got")
        return cls(**_unpack_parameters(cls, parameters, place, {}))


class Fitted(Kind):
    """A fitted imputer, of one of some classes, that is part of another one."""

    def __init__(self, classes: Sequence[type[Storable]]):
        self.classes = {cls.__name__: cls for cls in classes}

    def pack(self, value: Any, place: Place) -> Any:  # noqa: D102
        return _pack(value, place.inside())

    def unpack(self, tree: Any, place: Place) -> Any:  # noqa: D102
        return _unpack(tree, place.inside(), self.classes, {})


def _pack(imputer: Any, place: Place) -> dict[str, Any]:
    state, at = imputer._state(), place.at("state")
    parameters = _pack_parameters(imputer, place.at("parameters"))
    tree = {name: kind.pack(state[name], at.at(name)) for name, kind in imputer._kinds().items() if name in state}
    _unpack_state(type(imputer), tree, replace(at.inside(), arrays=dict(at.arrays)))  # what cannot be read is never written
    cls = type(imputer)
    return {"imputer": cls.__name__, "version": cls._state_version, "parameters": parameters, "state": tree}


def read_model(path: str | Path, classes: Mapping[str, type[Storable]], given: Mapping[str, Any]) -> Any:
    """The imputer in a file, if it is of one of ``classes``; ``given`` are parameters that files do not hold, by name."""
    path = Path(path)
    return _unpacked(read_archive(path, _MODEL), str(path), classes, given)


def model_of_bytes(data: bytes, classes: Mapping[str, type[Storable]], given: Mapping[str, Any]) -> Any:
    """The same of the bytes that such a file has."""
    name = "the model in these bytes"
    return _unpacked(parse_archive(data, _MODEL, name), name, classes, given)


def _unpacked(archive: tuple[Any, Arrays], name: str, classes: Mapping[str, type[Storable]], given: Mapping[str, Any]) -> Any:
    document, arrays = archive
    try:
        return _read(document, arrays, classes, given)
    except StoredFileError as error:
        raise StoredFileError(f"{name}: {error}") from error
    except RecursionError as error:
        raise StoredFileError(f"{name} is nested too deeply to be a model that otimpute wrote") from error


def _read(document: Any, arrays: Arrays, classes: Mapping[str, type[Storable]], given: Mapping[str, Any]) -> Any:
    if not isinstance(document, dict) or type(document.get("otimpute")) is not str:
        raise StoredFileError(f"the document must have {', '.join(['otimpute', *_FIELDS])}; save the imputer again")
    place = Place.root("", arrays)
    imputer = _unpack(document, place, classes, given, f" written by otimpute {document['otimpute']}")
    if arrays:
        place.fail(f"does not use the arrays {', '.join(sorted(arrays)[:5])}")
    return imputer


def _unpack(
    document: Any, place: Place, classes: Mapping[str, type[Storable]], given: Mapping[str, Any], writer: str = ""
) -> Any:
    if not isinstance(document, dict) or any(type(document.get(name)) is not kind for name, kind in _FIELDS.items()):
        place.fail(f"must have {', '.join(_FIELDS)}")
    name, version = document["imputer"], document["version"]
    origin = f"{place.name or 'it'} holds a {name}{writer}"
    if name not in classes:
        raise StoredFileError(f"{origin}, which otimpute {__version__} does not know; upgrade otimpute to read it")
    cls = classes[name]
    if version != cls._state_version:
        advice = "upgrade otimpute to read it" if version > cls._state_version else "fit and save it again"
        raise StoredFileError(
            f"{origin} in version {version}, and otimpute {__version__} reads version {cls._state_version}; {advice}"
        )
    unknown = sorted(document["parameters"].keys() - (signature(cls).parameters.keys() - _NEVER_STORED))
    if unknown:
        raise StoredFileError(f"{origin} with parameters that it has not got here, {unknown}; upgrade otimpute to read it")
    imputer = cls(**_unpack_parameters(cls, document["parameters"], place.at("parameters"), given))
    at = place.at("state")
    imputer._restore_state(_unpack_state(cls, document["state"], at), at.sizes)
    return imputer


def _pack_parameters(imputer: Any, place: Place) -> dict[str, Any]:
    if not type(imputer).__module__.startswith("otimpute."):
        raise TypeError(f"{type(imputer).__name__} is a class of your own, and model files hold otimpute's imputers only")
    packed = {}
    for name, value in imputer.get_params(deep=False).items():
        if name in _NEVER_STORED or isinstance(value, (np.random.Generator, np.random.RandomState)):
            continue
        is_code = name == imputer._given_at_load and callable(value)
        kind = imputer._parameter_kinds.get(name, _PLAIN)
        packed[name] = _GIVEN if is_code else kind.pack(imputer._plain_parameter(name, value), place.at(name))
    return packed


def _unpack_parameters(cls: type[Storable], tree: Mapping[str, Any], place: Place, given: Mapping[str, Any]) -> dict[str, Any]:
    code = {name for name, one in tree.items() if name == cls._given_at_load and one == _GIVEN}
    for name in code:
        if given.get(name) is None:
            raise StoredFileError(
                f"{cls.__name__} was fitted with a {name} of your own, whose weights only are in the file; "
                f"pass what makes it: otimpute.load(path, {name}=...)"
            )
    for name, value in given.items():
        if value is not None and name not in code:
            raise ValueError(f"{cls.__name__} in this file was fitted without a {name} of your own; load it without {name}")
    kinds = {name: cls._parameter_kinds.get(name, _PLAIN) for name in tree}
    return {name: given[name] if name in code else kinds[name].unpack(one, place.at(name)) for name, one in tree.items()}


def _unpack_state(cls: type[Storable], tree: Mapping[str, Any], place: Place) -> dict[str, Any]:
    kinds = cls._kinds()
    required = {name for name, kind in kinds.items() if not isinstance(kind, IfThere)}
    if not required <= tree.keys() <= kinds.keys():
        place.fail(f"must have {', '.join(sorted(required))}")
    state = {name: kinds[name].unpack(one, place.at(name)) for name, one in tree.items()}
    for check in place.at_the_end:
        check()
    return state
