"""Parse values of the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from .._text import listed
from ..exceptions import ParameterError

_WORDS = {"true": True, "false": False, "null": None, "none": None}


def parse_value(text: str) -> Any:
    """Parse a number, true, false or null; anything else is a string.

    >>> [parse_value(text) for text in ("20", "1e-3", "true", "None", "auto")]
    [20, 0.001, True, None, 'auto']
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float)) else text


def parse_settings(settings: Iterable[str], accepted: Iterable[str], elsewhere: dict[str, str], whose: str) -> dict[str, Any]:
    """Parse parameters from ``key=value``; ``elsewhere`` are those with a separate option.

    >>> parse_settings(["max_step=20"], ["max_steps", "tol"], {}, "knn")
    Traceback (most recent call last):
    otimpute.exceptions.ParameterValueError: --set of knn must be one of 'max_steps', 'tol', got 'max_step'; did you mean ...
    """
    from .._checks import check_choice

    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes key=value, such as max_steps=2000, got {setting!r}")
        if key in elsewhere:
            raise ValueError(f"--set {setting}: use {elsewhere[key]} instead")
        parameters[check_choice(f"--set of {whose}", key.strip(), accepted)] = parse_value(value.strip())
    return parameters


@contextmanager
def named_as_set(settings: Iterable[str] | None) -> Iterator[None]:
    """Name ``--set`` in errors about parameters set by it."""
    try:
        yield
    except ParameterError as error:
        if error.parameter in {setting.partition("=")[0].strip() for setting in settings or []}:
            error.parameter = f"--set {error.parameter}"
        raise


def parse_columns(option: str, texts: Iterable[str], names: Sequence[str]) -> list[str]:
    """Parse columns from names and comma-separated lists of names; an existing name with commas takes precedence.

    >>> parse_columns("--columns", ["a, b", "c"], ["a", "b", "c", "a, b"])
    ['a, b', 'c']
    """
    chosen = []
    for text in texts:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        chosen += [_known(option, part, names) for part in parts]
    return chosen


def parse_column(option: str, text: str, names: Sequence[str]) -> str:
    """Check the name of one column."""
    return _known(option, text, names)


def parse_predictors(texts: Sequence[str], names: Sequence[str]) -> str | dict[str, Any]:
    """Parse which columns may inform others, from ``column=a,b``, ``column=not:a,b``, ``not:a,b`` for all, or ``auto``.

    >>> parse_predictors(["x=y", "y=not:z", "not:w"], ["w", "x", "y", "z"])
    {'x': ['y'], 'y': {'not': ['z']}, 'not': ['w']}
    """
    if list(texts) == ["auto"]:
        return "auto"
    chosen: dict[str, Any] = {}
    for text in texts:
        if text.startswith("not:"):
            chosen["not"] = parse_columns("--predictors", [text.removeprefix("not:")], names)
            continue
        column, others = _split("--predictors", "income=age,job, income=not:tax_code, not:outcome or auto", text, names)
        denied = others.removeprefix("not:")
        parsed = parse_columns("--predictors", [denied], names)
        chosen[column] = {"not": parsed} if denied != others else parsed
    return chosen


def parse_wishes(option: str, example: str, texts: Sequence[str] | None, names: Sequence[str]) -> dict[str, str] | None:
    """Parse a column and a text for it from ``column=text``, each column once.

    >>> parse_wishes("--methods", "age=knn", ["age = knn"], ["age"])
    {'age': 'knn'}
    """
    wishes: dict[str, str] = {}
    for text in texts or []:
        column, wish = _split(option, example, text, names)
        if column in wishes:
            raise ValueError(f"{option} is given twice for column {column!r}; give it once")
        wishes[column] = wish.strip()
    return wishes or None


def parse_methods(texts: Sequence[str] | None, names: Sequence[str]) -> dict[str, str | list[str]] | None:
    """Parse the methods of columns, one or several each.

    >>> parse_methods(["age=knn", "job=ice,knn"], ["age", "job"])
    {'age': 'knn', 'job': ['ice', 'knn']}
    """
    wishes = parse_wishes("--methods", "age=gaussian_em or age=gaussian_em,knn", texts, names) or {}
    parts = {name: [part.strip() for part in wish.split(",")] for name, wish in wishes.items()}
    return {name: several if len(several) > 1 else several[0] for name, several in parts.items()} or None


def parse_bounds(text: str, names: Sequence[str]) -> tuple[str, tuple[Any, Any]]:
    """Parse a column and its bounds from ``column=low:high``.

    >>> parse_bounds("age=0:120", ["age"])
    ('age', (0, 120))
    """
    column, range_ = _split("--bounds", "age=0:120 or when=2020-01-01:", text, names)
    try:
        return column, parse_range(range_)
    except ValueError as error:
        raise ValueError(f"--bounds takes column={error}, got {text!r}") from None


def parse_range(text: str) -> tuple[Any, Any]:
    """Parse a range of numbers or dates from ``low:high``; either may be left out.

    >>> parse_range("0:120"), parse_range("2020-01-01T10:00:")
    ((0, 120), (datetime.datetime(2020, 1, 1, 10, 0), None))
    """
    for place, character in enumerate(text):  # times have colons of their own: the one with bounds on both sides counts
        if character == ":":
            try:
                return _bound(text[:place]), _bound(text[place + 1 :])
            except ValueError:
                continue
    raise ValueError("low:high with numbers or dates such as 2020-01-31, or one of both")


def parse_categories(option: str, text: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """Parse a column and its categories from ``column=A,B,C``; a category with a comma needs double quotes.

    >>> parse_categories("--categories", 'size=small,"large, very"', ["size"])
    ('size', ['small', 'large, very'])
    """
    column, labels = _split(option, "grade=A,B,C", text, names)
    try:
        return column, [label.strip() for label in next(csv.reader([labels], skipinitialspace=True, strict=True))]
    except csv.Error:
        raise ValueError(f"{option}: a quote is not closed, or text follows it, in {text!r}") from None


def parse_delta(text: str, names: Sequence[str]) -> tuple[str, str, float | None]:
    """Parse a column and by how much its missing values differ: a shift or factor, or a category and its odds.

    >>> parse_delta("income=.5 sd", ["income"]), parse_delta("smoker=yes:2", ["smoker"])
    (('income', '.5 sd', None), ('smoker', 'yes', 2.0))
    """
    column, said = _split("--delta", "income=0.2, 'income=0.5 sd', 'income=1.1 x' or smoker=yes:2", text, names)
    label, colon, odds = said.rpartition(":")
    if not colon:
        return column, said, None
    try:
        return column, label.strip(), float(odds)
    except ValueError:
        raise ValueError(f"--delta takes a category and its odds as in smoker=yes:2, got {text!r}") from None


def _split(option: str, example: str, text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split into column and value; column names may contain equals signs."""
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}=") and len(text) > len(name) + 1:
            return name, text[len(name) + 1 :]
    column, equals, said = text.partition("=")
    if not equals or not said:
        raise ValueError(f"{option} takes {example}, got {text!r}")
    return _known(option, column.strip(), names), said


def _known(option: str, name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    near = get_close_matches(name, names, 1) or get_close_matches(name.lower(), [each.lower() for each in names], 1)
    meant = next((f"; did you mean {each!r}?" for each in names if near and each.lower() == near[0].lower()), "")
    raise ValueError(f"{option}: no column {name!r}{meant or ';'} {'There' if meant else 'there'} are {listed(names, 20)}")


def _bound(text: str) -> Any:
    text = text.strip()
    if not text:
        return None
    try:
        number = float(text)
        return int(number) if number.is_integer() and "." not in text else number
    except ValueError:
        return date.fromisoformat(text) if len(text) <= len("2020-01-31") else datetime.fromisoformat(text)
