"""What a user assumes about missing values that observed ones cannot show, read from ``delta``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..._checks import check_choice
from ...exceptions import InPython, Message, Term
from ...fitting import ColumnLayout
from ...table import CategoryCode, ColumnKind, NumberCode, seconds_of
from ..standardised import VaryingColumns
from .column_draws import Adjustment

_UNITS = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(sd|x)?\s*")
_ACCEPTED = Message(
    "a number (in the units of the column; of dates, seconds), ",
    InPython('"0.5 sd"', "'0.5 sd'"),
    " (standard deviations of the observed values), ",
    InPython('"1.1 x"', "'1.1 x'"),
    " (a factor), or for categories and booleans ",
    InPython('a dictionary of odds such as {"yes": 2}', "odds such as yes:2"),
)


@dataclass(frozen=True)
class Delta:
    """What is added to or multiplied with draws of a column."""

    amount: float
    unit: str = ""  # "", "sd" or "x"

    @classmethod
    def read(cls, name: Any, given: Any) -> Delta:
        """From a number or a text such as "0.5 sd".

        >>> Delta.read("income", "0.5 sd")
        Delta(amount=0.5, unit='sd')
        """
        if isinstance(given, Real) and not isinstance(given, bool) and np.isfinite(float(given)):
            return cls(float(given))
        found = _UNITS.fullmatch(given) if isinstance(given, str) else None
        if found is None or not np.isfinite(float(found[1])) or (found[2] == "x" and float(found[1]) <= 0):
            raise ValueError(Message(Term("delta"), f" of column {name!r} must be ", _ACCEPTED, f", got {given!r}"))
        return cls(float(found[1]), found[2] or "")


_NO_DELTAS = (Delta(0.0), Delta(0.0, "sd"), Delta(1.0, "x"))


def check_delta(delta: Any) -> None:
    """Raise TypeError or ValueError unless it is a dictionary of what `Delta` or odds can be."""
    if delta is None:
        return
    if not isinstance(delta, Mapping):
        raise TypeError(f'delta must be a dictionary such as {{"income": 0.2}}, got {type(delta).__name__}')
    for name, given in delta.items():
        if isinstance(given, Mapping):
            if not given or not all(_is_odds(each) for each in given.values()):
                raise ValueError(
                    Message("odds in ", Term("delta"), f" of column {name!r} must be finite numbers > 0, got {dict(given)!r}")
                )
        else:
            Delta.read(name, given)


def _is_odds(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def read_adjustments(delta: Any, layout: ColumnLayout, columns: VaryingColumns) -> dict[int, Adjustment]:
    """By position of a column in the table, how its draws are adjusted, where they are."""
    found = {}
    names = list(layout.names)
    for name, given in (delta or {}).items():
        if name not in names:
            check_choice("a column in delta", str(name), [str(one) for one in names])
        place = names.index(name)
        code = layout.codes[place]
        own = np.flatnonzero(layout.groups == place)
        has_labels = isinstance(code, CategoryCode) or code.kind == ColumnKind.BOOLEAN
        if has_labels != isinstance(given, Mapping):
            what = "labels" if has_labels else "numbers"
            raise ValueError(
                Message(f"column {name!r} holds {what}; its ", Term("delta"), " must be ", _ACCEPTED, f", got {given!r}")
            )
        if len(own) == 0 or not np.isin(own, columns.varying).all():
            continue  # of a column without two different values nothing is drawn
        if isinstance(given, Mapping):
            labels = list(code.labels) if isinstance(code, CategoryCode) else [False, True]
            for label in given:
                if label not in labels:
                    raise ValueError(
                        Message(
                            "odds in ",
                            Term("delta"),
                            f" of column {name!r} are for {label!r}; ",
                            f"its categories are {labels[:20]}",
                        )
                    )
            corners = code.all_corners() if isinstance(code, CategoryCode) else np.array([[0.0], [1.0]])
            standardised = np.column_stack(
                [columns.scaler.apply_entries(corners[:, k], np.full(len(corners), column)) for k, column in enumerate(own)]
            )
            odds = np.array([float(given.get(label, 1.0)) for label in labels])
            if (odds != odds[0]).any():
                found[place] = Adjustment(corners=standardised, odds=odds)
            continue
        each, unit = Delta.read(name, given), float(columns.scaler.unit[own[0]])
        if each.unit == "x" and not isinstance(code, NumberCode):
            raise ValueError(
                Message(
                    f"column {name!r} holds dates or times, which have no factor; its ", Term("delta"), " must be ", _ACCEPTED
                )
            )
        if each in _NO_DELTAS:
            continue
        if each.unit == "x":
            centre = float(columns.scaler.restore(np.zeros(1), own[:1])[0])
            found[place] = Adjustment(factor=each.amount, offset=(each.amount - 1) * centre / unit)
        else:
            in_units = each.amount / unit / seconds_of(code) if each.unit == "" else each.amount
            found[place] = Adjustment(offset=in_units)
    return found
