"""Exceptions and warnings of otimpute, and messages that can be reworded for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Term(NamedTuple):
    """Something that has another name outside Python: a parameter, alone or with a value, or a method.

    >>> print(Term("header", False), Term("max_seconds"))
    header=False max_seconds
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        return self.name if self.value is ... else f"{self.name}={self.value!r}"


class InPython(NamedTuple):
    """Text that makes sense in Python only, and the text to show elsewhere."""

    words: str
    elsewhere: str = ""

    def __str__(self) -> str:
        return self.words


Part = str | Term | InPython


class Message(str):
    """A text made of strings and terms; as a ``str`` it shows the terms as in Python.

    >>> said = Message("pass ", Term("header", False), " if there are no names")
    >>> print(said)
    pass header=False if there are no names
    >>> said.spelled(lambda term: f"--no-{term.name}")
    'pass --no-header if there are no names'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Message:
        """Join the parts."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = tuple(one for part in parts for one in (part.parts if isinstance(part, Message) else [part]))
        return message

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts

    def spelled(self, spell: Callable[[Term], str]) -> str:
        """Return the text with every term replaced by ``spell(term)``, for users outside Python."""

        def told(part: Part) -> str:
            if isinstance(part, InPython):
                return part.elsewhere
            return spell(part) if isinstance(part, Term) else part

        return "".join(map(told, self.parts))


class ParameterError(Exception):
    """Base class of the errors about parameters.

    Attributes
    ----------
    parameter : str
        Name of the parameter.
    received : object
        The value that was passed.
    accepted : str
        The accepted values, such as ``"a finite number > 0"``.
    advice : str
        A suggestion, possibly empty.
    """

    def __init__(self, parameter: str, received: Any, accepted: str, advice: str = "") -> None:
        super().__init__(parameter, received, accepted, advice)
        self.parameter, self.received, self.accepted, self.advice = parameter, received, accepted, advice

    def __str__(self) -> str:
        return self.said_of(self.parameter, self.advice)

    def said_of(self, parameter: str, advice: str) -> str:
        """Return the message with another name of the parameter and other advice."""
        return f"{parameter} must be {self.accepted}, got {self.received!r}" + (f"; {advice}" if advice else "")


class ParameterValueError(ParameterError, ValueError):
    """A parameter has an accepted type but an invalid value."""


class ParameterTypeError(ParameterError, TypeError):
    """A parameter has the wrong type."""


class NotInstalledError(ModuleNotFoundError):
    """An optional package is not installed; the message says how to install it."""


class OtimputeWarning(UserWarning):
    """Base class of all warnings of this package."""


class NotConvergedWarning(OtimputeWarning):
    """An iteration stopped before it converged; the result is usable but could still change."""


class EmptyColumnWarning(OtimputeWarning):
    """A column has no observed value, so it cannot be imputed from data."""


class FitStoppedWarning(OtimputeWarning):
    """A fit was stopped early by Ctrl-C or ``max_seconds``; the imputer keeps the state reached so far."""


class DivergedError(RuntimeError):
    """A computation diverged to NaN or infinity; the message says which parameter to change."""


class AnalysisError(ValueError):
    """An analysis failed in one of several completed tables, or what it returned there cannot be pooled.

    Attributes
    ----------
    table : int
        Position of the table, from 0.
    problem : str
        What went wrong there.
    """

    def __init__(self, table: int, problem: str) -> None:
        super().__init__(table, problem)
        self.table, self.problem = table, problem

    def __str__(self) -> str:
        return f"tables[{self.table}]: {self.problem}"


class StoredFileError(ValueError):
    """A model file or checkpoint is damaged, not from otimpute, of a later version, or of another kind than expected."""


class GpuError(RuntimeError):
    """The GPU failed or has too little memory; the table was not changed, and the message says what to do."""
