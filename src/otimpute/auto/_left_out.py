"""Why an expert is left out."""

from __future__ import annotations

from dataclasses import dataclass

from .._stored import stored
from .._text import Keyword


class Why(Keyword):
    """What kept an expert from being asked."""

    NO_TIME = "no time"
    FAILED = "failed"


@stored()
@dataclass(frozen=True)
class LeftOut:
    """That an expert does not count, and why; as a text it is the reason."""

    why: Why
    words: str

    def __str__(self) -> str:
        return self.words


OUT_OF_TIME = LeftOut(Why.NO_TIME, "there was no time for it")
