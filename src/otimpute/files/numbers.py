"""Numbers as a column writes them: what fits, what it means, and more of the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrow import ArrowArray, arrow, compute

_MOST_DIGITS = 17  # more say nothing about a float
# A zero before other digits makes an identifier, not a number.
_WHOLE = r"^(?P<sign>[+-]?)(?P<whole>(?:0|[1-9][0-9]*)?)"


def _pattern(mark: str) -> str:
    return _WHOLE + rf"(?P<mark>[{mark}]?)(?P<fraction>[0-9]*)(?P<exponent>(?:[eE][+-]?[0-9]{{1,4}})?)$"


_INFINITE = r"^[+-]?(?i:inf|infinity)$"


@dataclass(frozen=True)
class NumberFormat:
    """Decimal mark, fewest and most decimals (None: as many as needed), significant digits of columns with exponents."""

    mark: str = "."
    least: int = 0
    most: int | None = None
    digits: int | None = None
    plus: bool = False

    def fit(self, values: ArrowArray) -> ArrowArray:
        """Which values of a column of text are numbers."""
        pc = compute()
        plain = pc.match_substring_regex(values, _pattern(self.mark))
        some_digit = pc.match_substring_regex(values, "[0-9]")
        return pc.or_(pc.and_(plain, some_digit), pc.match_substring_regex(values, _INFINITE))

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as floats; ValueError when one is none."""
        pc = compute()
        if not pc.all(self.fit(values), min_count=0).as_py():
            raise ValueError("not all are numbers")
        return pc.cast(pc.replace_substring(values, self.mark, "."), arrow().float64())

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        return f"a number (with the decimal mark {self.mark!r})"

    def format(self, value: Any) -> str:
        """One number as text.

        >>> NumberFormat(",", least=1, most=2).format(3.0), NumberFormat(most=2).format(2.999)
        ('3,0', '3')
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
        return ("+" if self.plus and value > 0 else "") + text.replace(".", self.mark)


@dataclass(frozen=True)
class IntegerFormat:
    """Whole numbers that 64 bits hold."""

    plus: bool = False

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as integers; ValueError when one is none."""
        pc = compute()
        if not pc.all(pc.match_substring_regex(values, r"^[+-]?(?:0|[1-9][0-9]*)$"), min_count=0).as_py():
            raise ValueError("not all are whole numbers")
        return pc.cast(pc.replace_substring(values, "+", ""), arrow().int64())

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        return "a whole number (without zeros before it, of at most 64 bits)"

    def format(self, value: Any) -> str:
        """One number as text."""
        return f"{value:+d}" if self.plus and value else f"{value:d}"


class NumberClues:
    """What a column of text shows about its numbers, part by part, if ``mark`` is the decimal mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.fit = True
        self.whole = True  # all are integers
        self.small = True  # 64 bits hold them
        self.certain = False  # some value has a mark that cannot stand between thousands
        self._least, self._most, self._digits = _MOST_DIGITS, 0, 0
        self._plus = self._exponents = False

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""
        if not self.fit:
            return
        pc = compute()
        parts = pc.extract_regex(values, _pattern(self.mark))
        if parts.null_count:  # rarely: infinite ones are numbers too
            infinite = pc.match_substring_regex(values, _INFINITE)
            self.whole = self.whole and not pc.any(infinite).as_py()
            values = pc.filter(values, pc.invert(infinite))
            parts = pc.extract_regex(values, _pattern(self.mark))
        if not len(values):
            return
        sign, whole, mark, fraction, exponent = parts.flatten()
        decimals = pc.utf8_length(fraction)
        n_digits = pc.add(pc.utf8_length(whole), decimals)
        if parts.null_count or pc.min(n_digits).as_py() == 0:
            self.fit = False
            return
        self._plus = self._plus or pc.any(pc.equal(sign, "+")).as_py()
        exponents = pc.any(pc.not_equal(exponent, "")).as_py()
        self._exponents = self._exponents or exponents
        self._digits = max(self._digits, pc.max(n_digits).as_py())
        self._least = min(self._least, pc.min(decimals).as_py())
        self._most = max(self._most, pc.max(decimals).as_py())
        marked = pc.any(pc.equal(mark, self.mark)).as_py()
        self.whole = self.whole and not marked and not exponents
        if self.whole and self.small:
            self.small = _hold_64_bits(values)
        if marked and not self.certain:
            thousands = pc.match_substring_regex(values, rf"^[+-]?[1-9][0-9]{{0,2}}[{self.mark}][0-9]{{3}}$")
            self.certain = bool(pc.any(pc.and_not(pc.equal(mark, self.mark), thousands)).as_py())

    def number(self) -> NumberFormat:
        """Its numbers."""
        most = self._most if self.fit and self._most else None  # no decimals seen: their number is not known
        digits = min(self._digits, _MOST_DIGITS) if self.fit and self._exponents else None
        least = self._least if most is not None else 0
        return NumberFormat(self.mark, least, most, digits, self.fit and self._plus)

    def integer(self) -> IntegerFormat:
        """Its integers."""
        return IntegerFormat(self.fit and self._plus)


def _hold_64_bits(values: ArrowArray) -> bool:
    try:
        IntegerFormat().parse(values)
    except ValueError:
        return False
    return True
