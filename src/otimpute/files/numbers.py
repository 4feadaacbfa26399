"""Numbers as a column writes them: what fits, what it means, and more of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrow import ArrowArray, arrow, compute

_MOST_DIGITS = 17  # more say nothing about a float
GROUP = {".": ",", ",": "."}  # what may stand between thousands, by decimal mark


def _whole(group: str) -> str:
    # A zero before other digits makes an identifier, not a number.
    return rf"(?:0|[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})*)" if group else "(?:0|[1-9][0-9]*)"


def _pattern(mark: str, group: str) -> str:
    exponent = "" if group else "(?:[eE][+-]?[0-9]{1,4})?"
    parts = {"sign": "[+-]?", "whole": _whole(group) + "?", "mark": f"[{mark}]?", "fraction": "[0-9]*", "exponent": exponent}
    return "^" + "".join(f"(?P<{name}>{part})" for name, part in parts.items()) + "$"


_INFINITE = r"^[+-]?(?i:inf|infinity)$"


@dataclass(frozen=True)
class NumberFormat:
    """Decimal mark, fewest and most decimals (None: as many as needed), significant digits of columns with exponents.

    ``group`` stands between thousands, nothing where they stand together.
    """

    mark: str = "."
    least: int = 0
    most: int | None = None
    digits: int | None = None
    plus: bool = False
    group: str = ""

    def fit(self, values: ArrowArray) -> ArrowArray:
        """Which values of a column of text are numbers."""
        pc = compute()
        plain = pc.match_substring_regex(values, _pattern(self.mark, self.group))
        some_digit = pc.match_substring_regex(values, "[0-9]")
        return pc.or_(pc.and_(plain, some_digit), pc.match_substring_regex(values, _INFINITE))

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as floats; ValueError when one is none."""
        pc = compute()
        if not pc.all(self.fit(values), min_count=0).as_py():
            raise ValueError("not all are numbers")
        return pc.cast(pc.replace_substring(_ungrouped(values, self.group), self.mark, "."), arrow().float64())

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        between = f" and {self.group!r} between thousands" if self.group else ""
        return f"a number (with the decimal mark {self.mark!r}{between})"

    def format(self, value: Any) -> str:
        """One number as text.

        >>> NumberFormat(",", least=1, most=2).format(3.0), NumberFormat(most=2).format(2.999)
        ('3,0', '3')
        >>> NumberFormat(",", most=2, group=".").format(-1295.84)
        '-1.295,84'
        """
        if self.digits is not None:
            text = f"{value:.{self.digits}g}"
        elif self.most is None or not np.isfinite(value):
            text = str(value)
        else:
            text = np.format_float_positional(value, precision=self.most, trim="-")
            decimals = len(text.partition(".")[2])
            if decimals < self.least:
                text += "." * (not decimals) + "0" * (self.least - decimals)
        if not text.strip("-0."):
            text = text.removeprefix("-")
        whole, _, fraction = text.partition(".")
        text = _grouped(whole, self.group) + (self.mark + fraction if fraction else "")
        return ("+" if self.plus and value > 0 else "") + text


@dataclass(frozen=True)
class IntegerFormat:
    """Whole numbers that 64 bits hold."""

    plus: bool = False
    group: str = ""

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as integers; ValueError when one is none."""
        pc = compute()
        if not pc.all(pc.match_substring_regex(values, f"^[+-]?{_whole(self.group)}$"), min_count=0).as_py():
            raise ValueError("not all are whole numbers")
        return pc.cast(pc.replace_substring(_ungrouped(values, self.group), "+", ""), arrow().int64())

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        between = f" and with {self.group!r} between thousands" if self.group else ""
        return f"a whole number (without leading zeros{between}, of at most 64 bits)"

    def format(self, value: Any) -> str:
        """One number as text."""
        return _grouped(f"{value:+d}" if self.plus and value else f"{value:d}", self.group)


class NumberDetector:
    """Detects how a text column writes its numbers, chunk by chunk, if ``mark`` is the decimal mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.group = ""  # until a number needs one
        self.fit = True
        self.whole = True  # all are integers
        self.small = True  # 64 bits hold them
        self.certain = False  # some value has a mark that cannot stand between thousands
        self._least, self._most, self._digits = _MOST_DIGITS, 0, 0
        self._longest = 0  # number of digits before the mark
        self._plus = self._exponents = False

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""
        if not self.fit:
            return
        pc = compute()
        parts = pc.extract_regex(values, _pattern(self.mark, self.group))
        if parts.null_count:  # rarely: infinite ones are numbers too
            infinite = pc.match_substring_regex(values, _INFINITE)
            self.whole = self.whole and not pc.any(infinite).as_py()
            values = pc.filter(values, pc.invert(infinite))
            parts = pc.extract_regex(values, _pattern(self.mark, self.group))
        if parts.null_count and not self.group and self._longest <= 3 and not self._exponents:
            self.group = GROUP[self.mark]
            parts = pc.extract_regex(values, _pattern(self.mark, self.group))
        if not len(values):
            return
        sign, whole, mark, fraction, exponent = parts.flatten()
        decimals, before = pc.utf8_length(fraction), pc.utf8_length(whole)
        n_digits = pc.add(before, decimals)
        if parts.null_count or pc.min(n_digits).as_py() == 0:
            self.fit = False
            return
        self._longest = max(self._longest, pc.max(before).as_py())
        self._plus = self._plus or pc.any(pc.equal(sign, "+")).as_py()
        exponents = pc.any(pc.not_equal(exponent, "")).as_py()
        self._exponents = self._exponents or exponents
        self._digits = max(self._digits, pc.max(n_digits).as_py())
        self._least = min(self._least, pc.min(decimals).as_py())
        self._most = max(self._most, pc.max(decimals).as_py())
        marked = pc.any(pc.equal(mark, self.mark)).as_py()
        self.whole = self.whole and not marked and not exponents
        if self.whole and self.small:
            self.small = _hold_64_bits(values, self.group)
        if marked and not self.certain:
            thousands = pc.match_substring_regex(values, rf"^[+-]?[1-9][0-9]{{0,2}}[{self.mark}][0-9]{{3}}$")
            self.certain = bool(pc.any(pc.and_not(pc.equal(mark, self.mark), thousands)).as_py())

        if self.group and not self.certain:  # a decimal mark stands in a number once
            self.certain = bool(pc.any(pc.match_substring_regex(values, rf"[{self.group}].*[.,]")).as_py())

    def number(self) -> NumberFormat:
        """Its numbers."""
        most = self._most if self.fit and self._most else None  # no decimals seen: their number is not known
        digits = min(self._digits, _MOST_DIGITS) if self.fit and self._exponents else None
        least = self._least if most is not None else 0
        return NumberFormat(self.mark, least, most, digits, self.fit and self._plus, self._own_group)

    def integer(self) -> IntegerFormat:
        """Its integers."""
        return IntegerFormat(self.fit and self._plus, self._own_group)

    @property
    def _own_group(self) -> str:
        return self.group if self.fit else ""


def equal_to_any(values: ArrowArray, numbers: Sequence[float]) -> ArrowArray:
    """Which values of a column of text are one of some numbers, whatever their decimals and decimal mark.

    >>> equal_to_any(arrow().array(["-999,0", "-9.99e2", "-99", "x"]), [-999.0]).to_pylist()
    [True, True, False, False]
    """
    pa, pc = arrow(), compute()
    are_numbers = pc.or_(NumberFormat(".").fit(values), NumberFormat(",").fit(values))
    texts = pc.if_else(are_numbers, pc.replace_substring(values, ",", "."), pa.scalar(None, pa.string()))
    return pc.is_in(texts.cast(pa.float64()), pa.array(numbers, pa.float64()))


def _ungrouped(values: ArrowArray, group: str) -> ArrowArray:
    return compute().replace_substring(values, group, "") if group else values


def _grouped(whole: str, group: str) -> str:
    """Digits with something between thousands; a sign may stand before them."""
    digits = whole.lstrip("+-")
    if not group or not digits.isdigit():
        return whole
    return whole.removesuffix(digits) + f"{int(digits):,}".replace(",", group)


def _hold_64_bits(values: ArrowArray, group: str) -> bool:
    try:
        IntegerFormat(group=group).parse(values)
    except ValueError:
        return False
    return True
