"""Yes and no as a column writes them."""

from __future__ import annotations

from dataclasses import dataclass

from .arrow import ArrowArray, compute

_PAIRS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on"), ("0", "1"))


@dataclass(frozen=True)
class BooleanFormat:
    """The two spellings."""

    false: str = "false"
    true: str = "true"

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as booleans; ValueError when one is neither spelling."""
        pc = compute()
        true = pc.equal(values, self.true)
        if not pc.all(pc.or_(true, pc.equal(values, self.false)), min_count=0).as_py():
            raise ValueError("not all are one of the two spellings")
        return true

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        return f"{self.false!r} or {self.true!r}"

    def format(self, value: object) -> str:
        """One boolean as text."""
        return self.true if value else self.false


class BooleanDetector:
    """The different spellings of a column, as long as there are no more than two."""

    def __init__(self) -> None:
        self.spellings: set[str] = set()
        self.fit = True

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""
        if self.fit:
            self.spellings.update(compute().unique(values).to_pylist())
            self.fit = len(self.spellings) <= 2

    def format(self, *, declared: bool) -> BooleanFormat | None:
        """The two spellings, if these are a pair that means yes and no.

        One spelling alone is enough for true and false only: F may be a sex, 1 a number, No an answer. Unless the column is
        ``declared`` to be boolean.
        """
        by_meaning = {spelling.lower(): spelling for spelling in self.spellings}
        if not self.fit or len(by_meaning) < len(self.spellings):
            return None
        for pair in _PAIRS:
            enough = by_meaning.keys() <= set(pair) if declared or pair[0] == "false" else by_meaning.keys() == set(pair)
            if enough:
                return BooleanFormat(*(by_meaning.get(word) or _in_case_of(word, *self.spellings) for word in pair))
        return None


def _in_case_of(word: str, *others: str) -> str:
    if any(other.isupper() for other in others):
        return word.upper()
    return word.capitalize() if any(other.istitle() for other in others) else word
