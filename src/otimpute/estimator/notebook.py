"""The HTML card of a fitted imputer in notebooks, shown above scikit-learn's diagram."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any
from xml.etree.ElementTree import Element

from .._markup import element, short, to_html
from .._text import count, duration, number, share
from ..fitting import CURVES

_MOST_COLUMNS = 5
_MOST_EXPERTS = 6
_LONGEST_NAME, _LONGEST_VALUE = 60, 80  # characters
_FEWEST_POINTS = 3  # of a curve
_WIDTH, _HEIGHT = 240, 40  # of a curve
_LEAST_SPAN = 0.2  # of a curve's largest value: what hardly changed must look flat
# Of experts; they differ in lightness too, and are seen on white as on black.
_COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"]

# Colours are those of JupyterLab's theme, and outside of it what the reader's system prefers.
_STYLE = """
.otimpute-card {
  --otimpute-ink: var(--jp-content-font-color1, #1f2328); --otimpute-soft: var(--jp-content-font-color2, #59636e);
  --otimpute-back: var(--jp-layout-color1, #ffffff); --otimpute-track: var(--jp-layout-color2, #e7ebef);
  --otimpute-line: var(--jp-border-color2, #d1d9e0); --otimpute-mark: var(--jp-brand-color1, #1f6fbf);
  --otimpute-doubt: var(--jp-warn-color1, #b35900);
  box-sizing: border-box; max-width: 720px; margin: 4px 0 10px; padding: 12px 16px; border: 1px solid var(--otimpute-line);
  border-radius: 6px; background: var(--otimpute-back); color: var(--otimpute-ink);
  font: 13px/1.45 var(--jp-ui-font-family, system-ui, sans-serif); text-align: left;
}
@media (prefers-color-scheme: dark) {
  .otimpute-card {
    --otimpute-ink: var(--jp-content-font-color1, #e6edf3); --otimpute-soft: var(--jp-content-font-color2, #9da7b1);
    --otimpute-back: var(--jp-layout-color1, #14181d); --otimpute-track: var(--jp-layout-color2, #2b323a);
    --otimpute-line: var(--jp-border-color2, #3a424b); --otimpute-mark: var(--jp-brand-color1, #58a6ff);
    --otimpute-doubt: var(--jp-warn-color1, #e3a04a);
  }
}
.otimpute-card .otimpute-head { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; }
.otimpute-card .otimpute-head b { font-size: 15px; }
.otimpute-card .otimpute-soft, .otimpute-card .otimpute-head span { color: var(--otimpute-soft); }
.otimpute-card .otimpute-parts { display: flex; flex-wrap: wrap; gap: 4px 28px; }
.otimpute-card .otimpute-part { flex: 1 1 260px; min-width: 0; margin-top: 10px; overflow-wrap: anywhere; }
.otimpute-card .otimpute-title { margin-bottom: 3px; color: var(--otimpute-soft); font-size: 12px; font-weight: 600; }
.otimpute-card .otimpute-doubt { color: var(--otimpute-doubt); }
.otimpute-card .otimpute-bars {
  display: grid; grid-template-columns: fit-content(45%) minmax(60px, 1fr) max-content; gap: 3px 10px; align-items: center;
}
.otimpute-card .otimpute-bars span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.otimpute-card .otimpute-share { text-align: right; font-variant-numeric: tabular-nums; }
.otimpute-card .otimpute-bar { display: flex; height: 8px; border-radius: 4px; overflow: hidden; }
.otimpute-card .otimpute-bar, .otimpute-card code { background: var(--otimpute-track); }
.otimpute-card .otimpute-bar div { background: var(--otimpute-mark); }
.otimpute-card .otimpute-trust { margin: 6px 0 3px; }
.otimpute-card .otimpute-key { display: flex; flex-wrap: wrap; gap: 0 12px; margin: 4px 0; }
.otimpute-card .otimpute-key i { display: inline-block; width: 8px; height: 8px; margin-right: 5px; border-radius: 2px; }
.otimpute-card svg { display: block; width: 100%; height: 40px; margin: 4px 0 2px; }
.otimpute-card polyline {
  fill: none; stroke: var(--otimpute-mark); stroke-width: 1.5; stroke-linejoin: round; vector-effect: non-scaling-stroke;
}
.otimpute-card summary { cursor: pointer; }
.otimpute-card details p { margin: 4px 0 0; color: var(--otimpute-soft); }
.otimpute-card code { padding: 0 3px; border-radius: 3px; color: inherit; font-size: 12px; }
"""


def fit_card(imputer: Any) -> str:
    """The card as HTML; nothing for an imputer that is not fitted."""
    try:
        return to_html(_card(imputer)) if imputer.__sklearn_is_fitted__() else ""
    except Exception:  # whatever state an object is in, a notebook must be able to show it
        return ""


def _card(imputer: Any) -> Element:
    head = element("div", element("b", type(imputer).__name__), " ", element("span", _fitted(imputer)), class_="otimpute-head")
    parts = [_part("Missing values by column", *_holes(imputer)), _part("Fit", *_fit_lines(imputer))]
    return element(
        "div", element("style", _STYLE), head, element("div", _size(imputer)),
        element("div", *(part for part in parts if len(part) > 1), class_="otimpute-parts"),
        _part("Settings", *_settings(imputer)), _part("Next steps", *_advice()), class_="otimpute-card",
    )  # fmt: skip


def _part(title: str, *content: str | Element) -> Element:
    return element("div", element("div", title, class_="otimpute-title"), *content, class_="otimpute-part")


def _fitted(imputer: Any) -> str:
    seconds = getattr(imputer, "_fit_seconds", None)  # not in model files
    return "fitted" if seconds is None else f"fitted in {duration(seconds)}"


def _size(imputer: Any) -> str:
    n_rows, n_holes = imputer.training_table_.n_rows, _n_holes(imputer).values()
    size, total = f"{count(n_rows, 'row')} × {count(len(n_holes), 'column')}", sum(n_holes)
    if not total:
        return f"{size}, nothing missing"
    with_holes = sum(n > 0 for n in n_holes)
    return f"{size}, {count(total, 'missing value')} ({share(total, n_rows * len(n_holes))}) in {count(with_holes, 'column')}"


def _holes(imputer: Any) -> Iterator[Element]:
    worst = sorted(((n, name) for name, n in _n_holes(imputer).items() if n), key=lambda one: -one[0])
    if not worst:
        return
    cells = []
    for n, name in worst[:_MOST_COLUMNS]:
        label = name if isinstance(name, str) else f"column {name}"
        cells.append(element("span", _trimmed(label, _LONGEST_NAME), " ", title=_trimmed(label, 10 * _LONGEST_NAME)))
        cells.append(_bar([(n / imputer.training_table_.n_rows, "")]))
        cells.append(element("span", share(n, imputer.training_table_.n_rows), class_="otimpute-share"))
    yield element("div", *cells, class_="otimpute-bars")
    if len(worst) > _MOST_COLUMNS:
        yield element("div", f"and {len(worst) - _MOST_COLUMNS} more with fewer", class_="otimpute-soft")


def _n_holes(imputer: Any) -> dict[Any, int]:
    """By column of the table, which are numbered if they have no names."""
    return dict(zip(imputer.training_table_.layout.names, imputer.training_table_.n_missing.tolist(), strict=True))


def _fit_lines(imputer: Any) -> Iterator[Element]:
    summary = imputer.fit_summary_
    ended, error = summary.ended, summary.hidden_error
    if ended:
        yield element("div", ended, class_=None if summary.converged else "otimpute-doubt")
    if error is not None:
        unit = "standard deviations" if getattr(imputer, "scale", True) else "units of the table"
        yield element("div", f"Values hidden from the fit were off by {number(error)} {unit} on average.")
    yield from _curve(imputer)
    first, *others = getattr(imputer, "verdict_", "").splitlines() or [""]
    if others:
        yield element("details", element("summary", first), *(element("p", line) for line in others))
    elif first:
        yield element("div", first)
    yield from _trust(imputer)


def _curve(imputer: Any) -> Iterator[Element]:
    """What the fit brought down: errors on hidden values if there are some, else the movement by which it saw its end."""
    history = imputer.fit_summary_.history
    name = next((name for name in ("validation_rmse", "movement", "training_loss") if history.get(name)), "loss")
    values = [float(value) for value in history.get(name, []) if math.isfinite(value)]
    if len(values) < _FEWEST_POINTS:
        return
    low, high = min(values), max(values)
    span = max(high - low, _LEAST_SPAN * abs(high)) or 1.0
    middle, across, down = (low + high) / 2, _WIDTH / (len(values) - 1), (_HEIGHT - 4) / span
    points = " ".join(f"{short(k * across)},{short(_HEIGHT / 2 + (middle - v) * down)}" for k, v in enumerate(values))
    caption = f"{CURVES[name]}, from {number(values[0])} to {number(values[-1])}"
    yield element(
        "svg", element("polyline", points=points),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none", role="img", aria_label=caption,
    )  # fmt: skip
    yield element("div", caption, class_="otimpute-soft")


def _trust(imputer: Any) -> Iterator[Element]:
    """How much each expert counts, on average over the columns with missing values."""
    n_holes = _n_holes(imputer)
    rows = [weights for name, weights in getattr(imputer, "weights_", {}).items() if n_holes.get(name)]
    if not rows:
        return
    means = {expert: sum(row[expert] for row in rows) / len(rows) for expert in rows[0]}
    most = sorted((expert for expert in means if means[expert] >= 0.005), key=lambda expert: -means[expert])[:_MOST_EXPERTS]
    coloured = list(zip(most, _COLOURS, strict=False))
    yield element("div", "Weight of each expert, on average over incomplete columns", class_="otimpute-soft otimpute-trust")
    yield _bar([(means[expert], colour) for expert, colour in coloured])
    yield element(
        "div",
        *(
            element("span", element("i", style=f"background: {colour}"), f"{expert} {share(means[expert])} ")
            for expert, colour in coloured
        ),
        class_="otimpute-key",
    )


def _bar(shares: Sequence[tuple[float, str]]) -> Element:
    pieces = []
    for part, colour in shares:
        width = f"width: {short(100 * min(part, 1))}%"
        pieces.append(element("div", style=f"{width}; background: {colour}" if colour else width))
    return element("div", *pieces, class_="otimpute-bar")


def _settings(imputer: Any) -> Iterator[str | Element]:
    """The parameters that are not as they are by default."""
    defaults = {name: one.default for name, one in signature(type(imputer)).parameters.items()}
    given = {name: repr(value) for name, value in imputer.get_params(deep=False).items()}
    changed = [f"{name}={value}" for name, value in given.items() if value != repr(defaults.get(name))]
    if not changed:
        yield "all defaults"
    for setting in changed:
        yield element("code", _trimmed(" ".join(setting.split()), _LONGEST_VALUE))
        yield " "


def _advice() -> Iterator[str | Element]:
    yield element("code", "imputer.transform(new_rows)")
    yield " imputes new rows, "
    yield element("code", "otimpute.report(imputer, X)")
    yield " creates a report, "
    yield element("code", 'imputer.save("model.otimpute")')
    yield " saves the imputer."


def _trimmed(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
