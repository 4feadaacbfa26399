"""Pictures show what the data say, have a name and a finding, and leave their colours to the style sheet."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

import pytest

from otimpute._markup import to_html
from otimpute.estimator import Finding, Measure
from otimpute.reporting import plots
from otimpute.reporting.data import (
    Association,
    ColumnCheck,
    ColumnHoles,
    ColumnReport,
    Curve,
    HiddenCheck,
    Matrix,
    MethodScore,
    Pattern,
    Patterns,
    Predictors,
    Projection,
    Shape,
    Statistic,
    Weights,
)  # fmt: skip
from otimpute.reporting.plots.axes import WIDTH, Scale, room_for, shortened

LONG = "a name that is far too long for any picture " * 4


def column(shape: Shape | None, n_filled: int = 40) -> ColumnReport:
    statistics = [Statistic("mean", "1.5", "2.5")] if n_filled else []
    return ColumnReport("a", "number", 100, n_filled, n_filled, "good", "", shape, statistics, [])


def bins(few: list[float]) -> Shape:
    return Shape("bins", ["0", "5"], [0.0, 0.5], [0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.4, 0.6], few, 0)


def bars(labels: list[str]) -> Shape:
    return Shape("bars", labels, [], [0.75, 0.25], [0.5, 0.5], [], 0)


HOLES = [ColumnHoles("a", "number", 10, 0.1), ColumnHoles(LONG, "number", 50, 0.5), ColumnHoles("c", "number", 0, 0.0)]
PATTERNS = Patterns(["a", LONG], [Pattern([], 60, 0.6), Pattern([0, 1], 30, 0.3), Pattern([1], 10, 0.1)], 3, 0)
MATRIX = Matrix(["a", LONG], [1, 51], 100, [[0.0, 1.0], [0.5, 0.04]], 0)
PREDICTORS = Predictors(["a"], ["a", LONG], [[None, 0.8]], [Association("a", LONG, 0.8, 0.001, "")], 1)
WEIGHTS = Weights(["x", "y"], ["a", LONG], [[0.25, 0.75], [1.0, 0.0]], 0)
CHECKS = [
    ColumnCheck(
        LONG,
        20,
        Measure.ERROR,
        "",
        4.0,
        "Own",
        {"Own": 1.0, "column mean": 2.0, "KNN": 9.0},
        0.5,
        2.0,
        Finding.BETTER,
        [[1.0, 1.5], [3.0, 2.0]],
        [],
    ),
    ColumnCheck(
        "c",
        9,
        Measure.WRONG,
        "",
        None,
        "Own",
        {"Own": 0.4, "column mean": 0.0},
        None,
        None,
        Finding.TOO_FEW,
        [],
        [["u", "u", 5], ["u", LONG, 4]],
    ),
]
METHODS = [
    MethodScore("Own", 0.1, None), MethodScore("column mean", 0.9, None), MethodScore("KNN", 0.3, None),
    MethodScore("ICE", None, None, "it failed"),
]  # fmt: skip
CHECK = HiddenCheck(29, 100, "Own", "copy", [], METHODS, [], CHECKS)

PICTURES: dict[str, Callable[[], Element | None]] = {
    "holes": lambda: plots.holes_by_column(HOLES),
    "patterns": lambda: plots.patterns(PATTERNS),
    "many rows": lambda: plots.patterns(Patterns(["a"], [Pattern([], 12345, 0.999), Pattern([0], 7, 0.001)], 2, 0)),
    "matrix": lambda: plots.matrix(MATRIX),
    "wide matrix": lambda: plots.matrix(Matrix([LONG] * 120, [1], 5, [[0.5] * 120], 0)),
    "predictors": lambda: plots.predictors(PREDICTORS),
    "curve": lambda: plots.curve(Curve("loss", [1, 2, 3], [3.0, 1.0, 2.0]), "step"),
    "one step": lambda: plots.curve(Curve("loss", [7], [3.0]), "step"),
    "curve of nothing": lambda: plots.curve(Curve("loss", [1, 2], [0.0, 0.0]), "step"),
    "weights": lambda: plots.weights(WEIGHTS),
    "bins": lambda: plots.observed_against_imputed(column(bins([]))),
    "few": lambda: plots.observed_against_imputed(column(bins([0.1, 0.9]))),
    "none": lambda: plots.observed_against_imputed(column(bins([]), 0)),
    "bars": lambda: plots.observed_against_imputed(column(bars(["u", LONG]))),
    "correlations": lambda: plots.correlations("before", ["a", LONG], [[1.0, -0.7], [-0.7, None]]),
    "projection": lambda: plots.projection(Projection([[0.0, 1.0, 0], [1.0, -2.0, 3]], [0.6, 0.2], 2)),
    "methods": lambda: plots.off_by_method(CHECK, "error"),
    "columns": lambda: plots.off_by_column(CHECK),
    "y = x": lambda: plots.true_against_imputed(CHECKS[0]),
    "huge y = x": lambda: plots.true_against_imputed(
        ColumnCheck(
            "a",
            2,
            Measure.ERROR,
            "",
            1e308,
            "Own",
            {"Own": 1e308},
            None,
            None,
            Finding.TOO_FEW,
            [[-1.5e308, 1.5e308], [0.0, 1.0]],
            [],
        )
    ),
    "pairs": lambda: plots.pairs_of_categories(CHECKS[1]),
}


def drawn(name: str) -> Element:
    picture = PICTURES[name]()
    assert picture is not None
    return picture


def said(picture: Element) -> str:
    return picture.findtext("title", "") + ": " + picture.findtext("desc", "")


def pieces(picture: Element, class_: str) -> int:
    """How many marks of a class there are, each of which begins by moving the pen."""
    return sum(each.get("d", "").count("M") for each in picture.iter("path") if each.get("class") == class_)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_have_a_name_and_a_finding(name: str) -> None:
    picture = drawn(name)
    assert picture.get("role") == "img"
    assert [child.tag for child in picture[:2]] == ["title", "desc"]
    assert all(child.text for child in picture[:2])


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_leave_colours_to_the_style_sheet(name: str) -> None:
    for each in drawn(name).iter():
        assert not {"fill", "stroke", "style", "id", "href"} & set(each.attrib)


@pytest.mark.parametrize("name", PICTURES)
def test_all_that_is_drawn_lies_inside_the_frame(name: str) -> None:
    picture = drawn(name)
    _, _, width, height = map(float, picture.get("viewBox", "").split())
    for each in picture.iter():
        for start in re.findall(r"M([\d.-]+) ([\d.-]+)", each.get("d", "")):
            x, y = map(float, start)
            assert -0.01 <= x <= width and -0.01 <= y <= height
        for place, end in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert 0 <= float(each.get(place, 0)) <= end
    assert (picture.get("class") or "").startswith("wide") == (width > WIDTH)


@pytest.mark.parametrize("name", PICTURES)
def test_long_names_are_shortened_and_said_in_full_to_the_pointer(name: str) -> None:
    for text in drawn(name).iter("text"):
        shown = "".join(text.itertext()).removeprefix(text.findtext("title", ""))
        assert len(shown) <= 40
        if shown.endswith("…"):
            assert text.findtext("title", "").startswith(shown[:-1])


def test_bars_are_as_long_as_shares() -> None:
    lengths = [float(each.get("d", "").split("h")[1].split("v")[0]) for each in drawn("holes").iter("path")]
    assert len(lengths) == 2  # nothing is drawn of a complete column
    assert lengths[0] == pytest.approx(5 * lengths[1], rel=0.01)  # most first
    assert "2 of 3 columns" in said(drawn("holes")) and "50 %" in said(drawn("holes"))


def test_patterns_have_a_dot_per_missing_column() -> None:
    picture = drawn("patterns")
    assert pieces(picture, "dot-missing") == 3
    assert pieces(picture, "dot-there") == 3
    assert "60 rows (60 %) with nothing missing" in said(picture)


def test_cells_of_maps_are_as_strong_as_numbers() -> None:
    assert pieces(drawn("matrix"), "missing level-10") == 1 + 1  # and one of the legend
    assert pieces(drawn("matrix"), "missing level-5") == 1
    correlations = drawn("correlations")
    assert pieces(correlations, "less level-7") == 2
    assert pieces(correlations, "unknown-cell") == 1
    assert "−.70" in [text.text for text in correlations.iter("text")]


def test_maps_without_room_for_numbers_have_signs() -> None:
    cells = [[1.0 if j == k else -0.3 if j < k else 0.01 for k in range(20)] for j in range(20)]
    picture = plots.correlations("after", [f"c{k}" for k in range(20)], cells)
    assert pieces(picture, "minus") == 190
    assert not [text for text in picture.iter("text") if text.get("class") == "cell"]


def test_long_counts_of_patterns_stand_upright() -> None:
    upright = [text for text in drawn("many rows").iter("text") if text.get("transform")]
    assert [text.text for text in upright] == ["12,345", "7"]


def test_few_imputed_values_are_ticks_and_many_a_line() -> None:
    assert pieces(drawn("few"), "imputed-tick") == 2
    assert pieces(drawn("few"), "imputed-line") == 0
    assert pieces(drawn("bins"), "imputed-line") == 1
    assert pieces(drawn("none"), "imputed-line") == 0
    assert "Nothing was imputed" in said(drawn("none"))


def test_what_cannot_be_drawn_is_not() -> None:
    assert plots.observed_against_imputed(column(None)) is None
    assert plots.off_by_method(CHECK, "wrong") is None
    unknown = HiddenCheck(9, 100, "Own", "copy", [], METHODS, [], CHECKS[1:])
    assert plots.off_by_column(unknown) is None


def test_methods_that_failed_are_not_drawn() -> None:
    assert set(plots.methods_by_mark(CHECK)) == {"KNN", "Own"}
    assert "ICE" not in said(drawn("methods"))


def test_what_is_far_off_stands_at_the_edge() -> None:
    picture = drawn("columns")
    ring = next(each for each in picture.iter("path") if each.get("class") == "peer-ring")
    assert float(ring.get("d", "").split()[0][1:]) < WIDTH
    assert "better than the column mean in 1 of 1 column" in said(picture)


def test_scales_take_any_finite_numbers() -> None:
    assert Scale.over([5.0, 5.0], 0, 100)(5.0) == pytest.approx(50)
    assert Scale.over([0.0], 0, 100)(0.0) == pytest.approx(50)
    huge = Scale.over([-1.79e308, 1.79e308], 0, 100, margin=0.1)
    assert huge(0.0) == 50 and 0 <= huge(-1.79e308) < 1
    assert len(huge.ticks()) >= 2
    tiny = Scale.over([0.0, 1e-300], 0, 100)
    assert tiny(5e-301) == pytest.approx(50)
    assert tiny.ticks()[0] == (0, "0")


@pytest.mark.parametrize("name", ["ab", "نص طويل جدا لا يتسع له المكان", "e\u0301" * 30, "👩‍🔬" * 30, ""])
def test_names_of_any_script_are_shortened(name: str) -> None:
    cut = shortened(name, 10)
    assert cut == name or (cut.endswith("…") and name.startswith(cut[:-1].rstrip()))
    assert room_for([name], 10) <= room_for(["n" * 50], 10)


def test_hostile_names_stay_text() -> None:
    name = "</title><script>alert(1)</script>"
    holes = plots.holes_by_column([ColumnHoles(name, "number", 1, 0.5)])
    assert "<script" not in to_html(holes)
    assert name in "".join(ET.fromstring(ET.tostring(holes)).itertext())
