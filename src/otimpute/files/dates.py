"""Dates and times as a column writes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from .arrow import ArrowArray, arrow, compute

_PART = {"y": r"(?P<y>[1-9][0-9]{3})", "m": r"(?P<m>[0-9]{1,2})", "d": r"(?P<d>[0-9]{1,2})"}
_TIME = (
    r"(?:(?P<gap>[ T])(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?P<second>(?::[0-9]{2})?)(?P<fraction>(?:\.[0-9]{1,9})?)(?P<zone>(?:Z|[+-][0-9]{2}:?[0-9]{2})?))?"
)
# Order of day, month and year, and what stands between them.
_ORDERS = (("ymd", "-"), ("ymd", "/"), ("dmy", "."), ("dmy", "/"), ("mdy", "/"), ("dmy", "-"), ("mdy", "-"))


@dataclass(frozen=True)
class DateFormat:
    """One way to write dates, or dates with times (``gap`` is what stands before the time, nothing if there is none)."""

    order: str = "ymd"
    between: str = "-"
    padded: bool = True  # 01.02.2020, not 1.2.2020
    gap: str = ""
    padded_hour: bool = True
    seconds: bool = True
    least_fraction: int = 0
    most_fraction: int = 6
    zone: str = ""

    @property
    def pattern(self) -> str:
        """Regular expression of all that has this order."""
        return "^" + rf"\{self.between}".join(_PART[letter] for letter in self.order) + _TIME + "$"

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Values of a column of text as dates or timestamps; ValueError when one is none, or is written in another way."""
        pc, pa = compute(), arrow()
        parts = pc.extract_regex(values, self.pattern)
        if parts.null_count:
            raise ValueError("not all are dates")
        field = dict(zip((entry.name for entry in parts.type), parts.flatten(), strict=True))
        for name, own in (("gap", self.gap), ("zone", self.zone)):
            if not pc.all(pc.equal(field[name], own), min_count=0).as_py():
                raise ValueError("not all are written alike")
        days = pc.binary_join_element_wise(field["y"], _two(field["m"]), _two(field["d"]), "-")
        if not self.gap:
            return pc.cast(days, pa.date32())
        if not pc.all(pc.equal(pc.equal(field["second"], ""), not self.seconds), min_count=0).as_py():
            raise ValueError("not all are written alike")
        second = field["second"] if self.seconds else ":00"
        fraction = pc.utf8_slice_codeunits(field["fraction"], 0, 7)  # microseconds, and the point before them
        clock = pc.binary_join_element_wise(_two(field["hour"]), field["minute"], ":")
        return pc.cast(
            pc.binary_join_element_wise(pc.binary_join_element_wise(days, clock, "T"), second, fraction, ""),
            pa.timestamp("us"),
        )

    @property
    def expected(self) -> str:
        """What a field must be, in words."""
        return f"a date like {self.format(datetime(2020, 12, 31, 8, 30))}"

    def format(self, value: date) -> str:
        """One date or time as text.

        >>> DateFormat("dmy", ".", padded=False).format(date(2020, 2, 1))
        '1.2.2020'
        >>> DateFormat(gap="T", zone="Z").format(datetime(2020, 2, 1, 8, 30))
        '2020-02-01T08:30:00Z'
        """
        width = 2 if self.padded else 1
        written = {"y": f"{value.year:04d}", "m": f"{value.month:0{width}d}", "d": f"{value.day:0{width}d}"}
        text = self.between.join(written[letter] for letter in self.order)
        if not self.gap or not isinstance(value, datetime):
            return text
        text += f"{self.gap}{value.hour:0{2 if self.padded_hour else 1}d}:{value.minute:02d}"
        if self.seconds:
            text += f":{value.second:02d}"
            fraction = f"{value.microsecond:06d}"[: self.most_fraction].ljust(self.most_fraction, "0")
            if self.least_fraction or fraction.strip("0"):
                text += "." + fraction
        return text + self.zone


class DateDetector:
    """Detects how a text column writes its dates, chunk by chunk, given the order of day, month and year."""

    def __init__(self, order: str, between: str) -> None:
        self.order, self.between = order, between
        self.fit = True
        self._style: dict[str, Any] = {}
        self._padded = self._padded_hour = True
        self._least, self._most = 9, 0

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""
        if not self.fit:
            return
        pc = compute()
        parts = pc.extract_regex(values, DateFormat(self.order, self.between).pattern)
        if parts.null_count:
            self.fit = False
            return
        field = dict(zip((entry.name for entry in parts.type), parts.flatten(), strict=True))
        if not self._style:
            first = {name: column[0].as_py() for name, column in field.items()}
            self._style = {"gap": first["gap"], "zone": first["zone"], "seconds": bool(first["second"]) or not first["gap"]}
        self._padded = self._padded and all(pc.min(pc.utf8_length(field[part])).as_py() == 2 for part in "dm")
        self._padded_hour = self._padded_hour and pc.min(pc.utf8_length(field["hour"])).as_py() == 2
        fraction = pc.utf8_length(field["fraction"])
        self._least = min(self._least, max(0, pc.min(fraction).as_py() - 1))
        self._most = max(self._most, pc.max(fraction).as_py() - 1)
        try:
            self.format().parse(values)
        except ValueError:
            self.fit = False

    def format(self) -> DateFormat:
        """How the column writes its dates."""
        return DateFormat(
            self.order,
            self.between,
            self._padded,
            padded_hour=self._padded_hour,
            least_fraction=min(self._least, self._most),
            most_fraction=self._most,
            **self._style,
        )


def date_detectors(day_first: bool | None) -> list[DateDetector]:
    """One for each order of day, month and year that is possible."""
    excluded = {None: "", True: "mdy", False: "dmy"}[day_first]
    # Points are for days first, everywhere.
    return [DateDetector(order, between) for order, between in _ORDERS if between == "." or order != excluded]


def _two(digits: ArrowArray) -> ArrowArray:
    return compute().utf8_lpad(digits, 2, "0")
