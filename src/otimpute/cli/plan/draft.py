"""A plan for a table, drafted from what the table shows: what is certain is told, what is likely is proposed.

Text is behind ``# ``; lines behind ``#`` alone are proposals, which count when that is removed. So a draft changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from ..._text import count, listed, share
from ...table import ColumnKind
from .findings import Finding
from .table_plan import TablePlan
from .toml_text import toml_key, toml_line, toml_value

_MOST_PROPOSED = 3  # columns that rules are proposed for: those of which most is missing
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SCALES = (ColumnKind.NUMBER, ColumnKind.INTEGER)


def draft_plan(
    found: Sequence[Finding],
    plan: TablePlan,
    *,
    title: str,
    command: str,
    spelled: Mapping[str, Mapping[str, int]],
    identifiers: Sequence[str],
    panel: tuple[str, str] | None,
) -> str:
    """Return a plan as TOML, with what is known already.

    ``spelled`` are the spellings of missing values found in each column; ``identifiers`` columns that look like identifiers;
    ``panel`` a column of groups and one of times.
    """
    return "\n".join(_lines(_Draft(found, plan, spelled, identifiers, panel), title, command)) + "\n"


class _Draft:
    """What is proposed for each key."""

    def __init__(
        self,
        found: Sequence[Finding],
        plan: TablePlan,
        spelled: Mapping[str, Mapping[str, int]],
        identifiers: Sequence[str],
        panel: tuple[str, str] | None,
    ) -> None:
        self.known = plan.as_dict()
        self.found = found
        self.spelled = spelled
        self.identifiers = identifiers
        self.panel = panel
        holed = sorted((each for each in found if 0 < each.n_missing < each.n_rows), key=lambda each: -each.n_missing)
        self.holed = [each for each in holed if each.treatment and not each.kind.is_idle]

    def said(self, key: str, text: Sequence[str], proposed: Any = None) -> Iterator[str]:
        """Yield the lines of a key: what it is for, and what is known, or else what is proposed."""
        if text:
            yield ""
        yield from (f"# {line}" for line in text)
        if key in self.known:
            yield toml_line(key, self.known[key])
        elif proposed:
            yield f"#{toml_line(key, proposed)}"

    def table(
        self, key: str, text: Sequence[str], proposed: Mapping[str, Any] = _NOTHING, notes: Mapping[str, str] = _NOTHING
    ) -> Iterator[str]:
        """Yield the lines of a table with a line for each column."""
        known = self.known.get(key, {})
        if not isinstance(known, Mapping):  # predictors = "auto", derive = ["start <= end"]: above all tables
            return
        yield ""
        yield from (f"# {line}" for line in text)
        yield f"[{key}]"
        for name in dict.fromkeys([*notes, *proposed, *known]):
            if name in notes:
                yield f"# {toml_key(name)}: {notes[name]}"
            if name in known:
                yield toml_line(name, known[name])
            elif name in proposed:
                yield f"#{toml_line(name, proposed[name])}"


def _lines(draft: _Draft, title: str, command: str) -> Iterator[str]:
    yield f"# {title}"
    yield f"# To use this file: {command}"
    yield "# Lines that begin with # change nothing. Remove the # of a line such as #time = ... if it is true of your table."
    yield from _lines_of_values(draft)
    yield from _lines_of_tables(draft)


def _lines_of_values(draft: _Draft) -> Iterator[str]:
    said, most = draft.said, [each.name for each in draft.holed[:_MOST_PROPOSED]]
    yield from said(
        "na", ["na: how missing values are spelled, in all columns or by column. Found:", *_spellings(draft)], _gaps(draft)
    )
    yield from said("keep", ['keep: what looks like a missing value and is an answer, such as keep = {answer = ["None"]}'])
    about = ['exclude: columns that are neither imputed nor looked at, such as exclude = ["remarks"]']
    if draft.identifiers:
        about.append(f'Set aside as identifiers, unless identifiers = "use": {listed(draft.identifiers, 20)}.')
    yield from said("exclude", about, draft.identifiers)
    yield from said("columns", ['columns: the only ones that are used, such as columns = ["age", "income"]'])
    yield from said("only", ["only: the columns that are imputed; all others still inform."], most)
    if "identifiers" in draft.known:
        yield from said("identifiers", ['identifiers: "use" or "set aside" columns that look like identifiers.'])
    yield from said("weights", ['weights: the column that says how many times a row counts, such as weights = "weight"'])
    about = ["groups: whose rows belong together, such as the visits of a patient; time: when a row was observed."]
    group, time = draft.panel or (None, None)
    if draft.panel:
        about.append(f"No {group} has the same {time} twice.")
    yield from said("groups", about, group)
    yield from said("time", [], time)
    yield from said("method", ["method: which one imputes; its parameters are under [settings]."], "auto")
    for key in ("predictors", "derive"):
        if not isinstance(draft.known.get(key, {}), Mapping):
            yield from said(key, [f"{key}: as said before."])
    yield from said("max_categories", ["max_categories: how many are used of a column; rarer ones are never imputed."], 50)


def _lines_of_tables(draft: _Draft) -> Iterator[str]:
    table, most = draft.table, draft.holed[:_MOST_PROPOSED]
    yield from table("settings", ["Parameters of the method, such as n_splits = 5"])
    about = "What imputed values keep to: bounds, integer, non_negative, categories, ordered (categories from low to high)."
    ranges = {each.name: wish for each in draft.found if (wish := _constraint(each))}
    yield from table("constraints", [about], ranges, {each.name: _described(each) for each in draft.found})
    informing = [each.name for each in draft.found if not each.kind.is_idle and each.name not in draft.identifiers]
    others = {each.name: [name for name in informing if name != each.name] for each in most}
    notes = {each.name: f"missing in {count(each.n_missing, 'row')}, {share(each.n_missing, each.n_rows)}" for each in most}
    about = 'Which columns may inform one: some, ["age", "job"], or all but some, {not = ["tax_code"]}.'
    yield from table("predictors", [about], {name: names for name, names in others.items() if names}, notes)
    yield from table("derive", ["Columns that follow from others, such as", '  bmi = "weight / (height / 100) ** 2"'])
    yield from table(
        "applicable", ["Rows in which a column applies; it stays empty in others, such as", '  visits = "age > 12"']
    )
    numbers = {each.name: "gaussian_em" for each in most if each.kind in _SCALES}
    yield from table("methods", ["Another method for a column."], numbers)


def _spellings(draft: _Draft) -> list[str]:
    found = {name: spelled for name, spelled in draft.spelled.items() if spelled}
    told = [
        f"  {name}: " + listed([f"{toml_value(text) if text else 'empty'} × {n:,}" for text, n in spelled.items()], 5)
        for name, spelled in found.items()
    ]
    return told or ["  none"]


def _gaps(draft: _Draft) -> dict[str, list[str]]:
    texts = {name: [text for text in spelled if text] for name, spelled in draft.spelled.items()}
    return {name: marks for name, marks in texts.items() if marks}


def _described(found: Finding) -> str:
    parts = [str(found.kind), f"imputed as {found.treatment}" if found.n_missing else found.treatment]
    if found.lowest is not None:
        parts.append(f"observed from {_shown(found.lowest)} to {_shown(found.highest)}")
    if found.n_missing:
        parts.append(f"{share(found.n_missing, found.n_rows)} missing")
    return "; ".join(parts)


def _constraint(found: Finding) -> dict[str, Any]:
    """What could be said of a column: the labels there are, or the range that values keep to."""
    if found.labels:
        return {"categories": found.labels}
    low, high = found.lowest, found.highest
    if isinstance(low, (int, float)) and found.kind in _SCALES:
        edge = 0 if low >= 0 else low
        whole = {"integer": True} if isinstance(low, int) else {}
        return {"bounds": [edge, high], **whole}
    if isinstance(low, date):
        return {"bounds": f"{_shown(low)}:{_shown(high)}"}
    return {}


def _shown(value: Any) -> str:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.isoformat(timespec="seconds")
    return value.isoformat() if isinstance(value, date) else str(value)
