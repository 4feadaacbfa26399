"""What a column may hold, as programs tell it apart; as text it is what people, model files and JSON see."""

from __future__ import annotations

from .._text import Keyword


class ColumnKind(Keyword):
    """What imputers take a column for."""

    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    ORDERED = "ordered"
    MOMENT = "date/time"
    TEXT = "text"
    EMPTY = "empty"
    OTHER = "other"
    EXCLUDED = "excluded"  # by the user
    IDENTIFIER = "identifier"
    DERIVED = "derived"  # computed from other columns

    @property
    def is_idle(self) -> bool:
        """Whether imputers leave such a column alone."""
        return self in (ColumnKind.TEXT, ColumnKind.EMPTY, ColumnKind.OTHER, ColumnKind.DERIVED) or self.passes_unseen

    @property
    def passes_unseen(self) -> bool:
        """Whether what such a column has not got is no hole, as nobody is to fill it."""
        return self in (ColumnKind.EXCLUDED, ColumnKind.IDENTIFIER)


class Family(Keyword):
    """How the values of a column can be treated."""

    NUMBER = "number"
    LABEL = "label"
    MOMENT = "moment"
    NOTHING = "nothing"
    OTHER = "other"
    ANY = "any"  # of codes that read whatever there is


class MomentKind(Keyword):
    """Which moments a column holds, as narwhals calls them."""

    DATE = "Date"
    DATETIME = "Datetime"
    DURATION = "Duration"
    TIME = "Time"
