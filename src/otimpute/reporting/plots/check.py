"""Figures of the check on hidden values."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import count, number, share
from .._trial import MEAN
from ..data import ColumnCheck, HiddenCheck
from .axes import WIDTH, Bar, Scale, axes, bars, box, dot, figure, label, line, names_beside, path, plain, room_for, stripes

_MOST_COLUMNS = 40
_MOST_LETTERS = 20
_FARTHEST = 2.0  # times the mean's error
_PITCH = 22
_SMALL = 260


def off_by_method(check: HiddenCheck, measure: str) -> Element | None:
    """Draw errors of numbers, or fractions of wrong categories, by method; None if there are no such columns."""
    scores = {each.method: getattr(each, measure) for each in check.methods if getattr(each, measure) is not None}
    if not scores:
        return None
    says = share if measure == "wrong" else number
    title = "Fraction of wrong categories" if measure == "wrong" else "Mean absolute error of numbers, in standard deviations"
    finding = "Shorter is better: " + ", ".join(f"{name} {says(score)}" for name, score in scores.items()) + "."
    longest = max(scores.values()) or 1.0
    rows = [
        Bar(name, score / longest, says(score), "imputed" if name == check.method else "peer") for name, score in scores.items()
    ]
    return bars(title, finding, rows)


def off_by_column(check: HiddenCheck) -> Element | None:
    """Draw each method's error by column, relative to the column mean; None if unknown for all columns."""
    known = [each for each in check.columns if each.against_mean is not None][:_MOST_COLUMNS]
    if not known:
        return None
    names = [each.name for each in known]
    left, top = room_for(names, _MOST_LETTERS), 26
    bottom = top + _PITCH * len(known)
    across = Scale(0.0, _FARTHEST, left + 8, WIDTH - 20)
    marks = [stripes(len(known), top, WIDTH, _PITCH), *names_beside(names, left, top, _PITCH, _MOST_LETTERS)]
    for x in (0.0, 0.5, 1.0, 1.5, _FARTHEST):
        words = f"{x:g}+" if x == _FARTHEST else f"{x:g}"
        marks.append(line(across(x), top, across(x), bottom, "reference" if x == 1 else "grid"))
        marks.append(label(words, across(x), bottom + 16, text_anchor="middle", class_="tick"))
    marks.append(label(MEAN, across(1), top - 8, text_anchor="middle", class_="tick"))
    for method, class_ in methods_by_mark(check).items():
        pieces = [
            _MARKS[class_](across(each.scores[method] / each.scores[MEAN]), top + (k + 0.5) * _PITCH)
            for k, each in enumerate(known) if method in each.scores
        ]  # fmt: skip
        marks.append(path(pieces, class_, method))
    n_better = sum(each.scores[check.method] < each.scores[MEAN] for each in known)
    finding = f"{check.method} was better than the {MEAN} in {n_better} of {count(len(known), 'column')}."
    return figure("Error by column, relative to the column mean", finding, WIDTH, bottom + 22, *marks)


def methods_by_mark(check: HiddenCheck) -> dict[str, str]:
    """Return the markers of the methods, except the mean, which is a line; the checked imputer is last, on top."""
    tried = [each.method for each in check.methods if each.method not in (check.method, MEAN) and not each.failure]
    return dict(zip(tried, ("peer-ring", "peer-square"), strict=False)) | {check.method: "imputed-diamond"}


def mark(class_: str) -> Element:
    """Create a marker for the legend."""
    return path([_MARKS[class_](8, 8)], class_)


def _ring(x: float, y: float) -> str:
    return f"M{short(x - 4.5)} {short(y)}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0"


def _square(x: float, y: float) -> str:
    return box(x - 4, y - 4, 8, 8)


def _diamond(x: float, y: float) -> str:
    return f"M{short(x)} {short(y - 6)}l6 6l-6 6l-6 -6z"


_MARKS = {"peer-ring": _ring, "peer-square": _square, "imputed-diamond": _diamond}


def true_against_imputed(column: ColumnCheck) -> Element:
    """Draw true against imputed values; on the line they are equal."""
    both = [value for point in column.points for value in point]
    across = Scale.over(both, 64, _SMALL - 10, margin=0.04)
    up = Scale.over(both, _SMALL - 44, 8, margin=0.04)
    unit = f", {column.unit} after the first" if column.unit else ""
    off = f"{number(column.scores[column.method])} {column.unit}".rstrip()
    return figure(
        f"True against imputed values of {plain(column.name)}",
        f"{count(column.n_hidden, 'hidden value')}, off by {off} on average.",
        _SMALL,
        _SMALL,
        *axes(across, up, across_label=f"true{unit}", up_label=f"imputed{unit}"),
        line(across.start, up.start, across.end, up.end, "reference"),
        path([dot(across(x), up(y)) for x, y in column.points], "dot-imputed"),
    )


def pairs_of_categories(column: ColumnCheck) -> Element:
    """Draw the most frequent pairs of true and imputed categories."""
    most = max(n for _, _, n in column.pairs)
    rows = []
    for true, made, n in column.pairs:
        judged = "right" if true == made else "wrong"
        rows.append(Bar(f"{plain(str(true))} → {plain(str(made))}", n / most, f"{n:,} {judged}", judged))
    finding = f"{count(column.n_hidden, 'hidden value')}, wrong in {share(column.scores[column.method])}."
    return bars(f"True and imputed categories of {plain(column.name)}", finding, rows, width=_SMALL, most=18)
