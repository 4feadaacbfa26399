"""What methods make of hidden values."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import short
from ..._words import count, number, share
from .._check import MEAN
from ..data import ColumnCheck, HiddenCheck
from .axes import WIDTH, Bar, Scale, axes, bars, box, dot, figure, label, line, path, plain

_MOST_COLUMNS = 40
_FARTHEST = 2.0
_SQUARE = 260


def off_by_method(check: HiddenCheck, measure: str) -> Element | None:
    """Errors of numbers, or shares of wrong categories, by method; None if there were none of that kind."""
    scores = {each.method: getattr(each, measure) for each in check.methods if getattr(each, measure) is not None}
    if not scores:
        return None
    says = share if measure == "wrong" else number
    highest = max(scores.values()) or 1.0
    title = "Share of wrong categories" if measure == "wrong" else "Mean absolute error of numbers, in standard deviations"
    best = min(scores, key=lambda name: scores[name])
    finding = "Shorter is better: " + ", ".join(f"{name} {says(score)}" for name, score in scores.items()) + f". Best: {best}."
    rows = [
        Bar(name, score / highest, says(score), "imputed" if name == check.method else "peer") for name, score in scores.items()
    ]
    return bars(title, finding, rows)


def other_methods(check: HiddenCheck) -> list[str]:
    """Those it is compared with, but for the mean, in the order of their marks."""
    return [each.method for each in check.methods if each.method not in (check.method, MEAN) and not each.failure]


def off_by_column(check: HiddenCheck) -> Element | None:
    """How far off each method was in each column, as a multiple of the column mean; None if that is unknown everywhere."""
    known = [each for each in check.columns if each.against_mean is not None][:_MOST_COLUMNS]
    if not known:
        return None
    pitch, top = 22, 34
    bottom = top + pitch * len(known)
    across = Scale(0.0, _FARTHEST, 150, WIDTH - 24)
    marks = [path([box(0, top + k * pitch, WIDTH, pitch) for k in range(0, len(known), 2)], "stripe")]
    marks += [line(across(x), top, across(x), bottom, "grid") for x in (0.0, 0.5, 1.5, 2.0)]
    marks += [
        line(across(1.0), top - 4, across(1.0), bottom, "reference"),
        label(MEAN, across(1.0), top - 10, text_anchor="middle", class_="tick"),
    ]
    marks += [label(each.name, 142, top + (k + 0.5) * pitch + 4, most=20, text_anchor="end") for k, each in enumerate(known)]
    middle = [top + (k + 0.5) * pitch for k in range(len(known))]

    def places(method: str) -> list[tuple[float, float]]:
        return [
            (across(each.scores[method] / each.scores[MEAN]), y)
            for each, y in zip(known, middle, strict=True) if method in each.scores
        ]  # fmt: skip

    for method, shape, class_ in zip(other_methods(check), (_ring, _square), ("peer-ring", "peer-square"), strict=False):
        marks.append(path([shape(x, y) for x, y in places(method)], class_, method))
    marks.append(path([_diamond(x, y) for x, y in places(check.method)], "imputed-mark", check.method))
    marks += [
        label(f"{x:g}" + "+" * (x == _FARTHEST), across(x), bottom + 16, text_anchor="middle", class_="tick")
        for x in (0, 0.5, 1, 1.5, 2)
    ]
    n_better = sum(each.against_mean < 1 for each in known if each.against_mean is not None)
    finding = f"{check.method} was nearer than the {MEAN} in {n_better} of {count(len(known), 'column')}."
    return figure("Error by column, over that of the column mean", finding, WIDTH, bottom + 24, *marks)


def _ring(x: float, y: float) -> str:
    return f"M{short(x - 4)} {short(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"


def _square(x: float, y: float) -> str:
    return box(x - 3.5, y - 3.5, 7, 7)


def _diamond(x: float, y: float) -> str:
    return f"M{short(x)} {short(y - 6)}l6 6l-6 6l-6 -6z"


def true_against_imputed(column: ColumnCheck) -> Element:
    """Hidden values against what was made of them; on the line they are the same."""
    both = [value for point in column.points for value in point]
    across = Scale.over(both, 50, _SQUARE - 10, margin=0.04)
    up = Scale.over(both, _SQUARE - 44, 10, margin=0.04)
    unit = f", {column.unit} since 1970" if column.unit else ""
    marks = axes(across, up, across_label=f"true{unit}", up_label=f"imputed{unit}")
    marks.append(line(across.start, up.start, across.end, up.end, "reference"))
    marks.append(path([dot(across(x), up(y)) for x, y in column.points], "dot-imputed"))
    off = column.scores[column.method]
    finding = (
        f"{count(column.n_hidden, 'hidden value')}, off by {number(off)}{f' {column.unit}' * bool(column.unit)} on average."
    )
    return figure(f"True against imputed values of {plain(column.name)}", finding, _SQUARE, _SQUARE, *marks)


def pairs_of_categories(column: ColumnCheck) -> Element:
    """Hidden categories and what was made of them, as often as they were found."""
    most = max(n for _, _, n in column.pairs)
    rows: Sequence[Bar] = [
        Bar(
            f"{plain(str(true))} → {plain(str(made))}",
            n / most,
            f"{n:,} {'right' if true == made else 'wrong'}",
            "right" if true == made else "wrong",
        )
        for true, made, n in column.pairs
    ]
    finding = f"{count(column.n_hidden, 'hidden value')}, wrong in {share(column.scores[column.method])}."
    return bars(f"True and imputed categories of {plain(column.name)}", finding, rows)
