"""What otimpute raises and warns, so that callers can tell cases apart, and say it in their own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Term(NamedTuple):
    """Something that is called differently outside Python: a parameter, alone or with a value, or a method.

    >>> print(Term("header", False), Term("max_seconds"))
    header=False max_seconds
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        return self.name if self.value is ... else f"{self.name}={self.value!r}"


class InPython(NamedTuple):
    """Words that make sense in Python only, and those that others are told instead."""

    words: str
    elsewhere: str = ""

    def __str__(self) -> str:
        return self.words


Part = str | Term | InPython


class Message(str):
    """A text made of words and terms; as a string it has the terms of Python.

    >>> said = Message("pass ", Term("header", False), " if there are no names")
    >>> print(said)
    pass header=False if there are no names
    >>> said.spelled(lambda term: f"--no-{term.name}")
    'pass --no-header if there are no names'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Message:
        """Put the parts together."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = tuple(one for part in parts for one in (part.parts if isinstance(part, Message) else [part]))
        return message

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts

    def spelled(self, spell: Callable[[Term], str]) -> str:
        """The text with the terms of somebody else, who does not use Python."""

        def told(part: Part) -> str:
            if isinstance(part, InPython):
                return part.elsewhere
            return spell(part) if isinstance(part, Term) else part

        return "".join(map(told, self.parts))


class ParameterError(Exception):
    """Base of what is raised about a parameter.

    Attributes
    ----------
    parameter : str
        Its name.
    received : object
        What it was.
    accepted : str
        What it must be, such as ``"a finite number > 0"``.
    advice : str
        What else to do; may be empty.
    """

    def __init__(self, parameter: str, received: Any, accepted: str, advice: str = "") -> None:
        super().__init__(parameter, received, accepted, advice)
        self.parameter, self.received, self.accepted, self.advice = parameter, received, accepted, advice

    def __str__(self) -> str:
        return self.said_of(self.parameter, self.advice)

    def said_of(self, parameter: str, advice: str) -> str:
        """The message about a parameter that has another name, with other advice."""
        return f"{parameter} must be {self.accepted}, got {self.received!r}" + (f"; {advice}" if advice else "")


class ParameterValueError(ParameterError, ValueError):
    """A parameter is of a type that is accepted, and its value is not."""


class ParameterTypeError(ParameterError, TypeError):
    """A parameter is of another type than those that are accepted."""


class NotInstalledError(ModuleNotFoundError):
    """An optional package is not there; the message says how to install it."""


class OtimputeWarning(UserWarning):
    """Base of all warnings of this package."""


class NotConvergedWarning(OtimputeWarning):
    """An iteration ended before it settled; the result is usable but may still be moving."""


class EmptyColumnWarning(OtimputeWarning):
    """A column has no observed value at all, so there is nothing to learn its values from."""


class FitStoppedWarning(OtimputeWarning):
    """A fit was stopped early by Ctrl-C or ``max_seconds``; the imputer holds what was reached."""


class DivergedError(RuntimeError):
    """The numbers left the finite range; the message says which parameter to change."""


class StoredFileError(ValueError):
    """A model file or checkpoint is damaged, foreign, of a later version, or not what was asked for."""


class GpuError(RuntimeError):
    """The GPU is too small or failed; the table was not changed, and the message says what to do."""
