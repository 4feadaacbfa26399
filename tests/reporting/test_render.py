"""The page is whole, needs nothing else, and says what the data say, whatever names these have."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import SinkhornImputer
from otimpute.reporting import Report, ReportData
from otimpute.reporting.render import render

CASES = [
    "flats", "hostile", "nothing missing", "no check", "one column", "three rows", "transformed", "a hundred columns",
    "experts", "a method failed", "a broken promise", "error bars", "several tables",
]  # fmt: skip
SECTIONS = ["verdict", "missing", "fit", "columns", "whole", "check", "reproduce"]
OF_SEVERAL = ["verdict", "missing", "multiple", "columns", "whole", "reproduce"]
VOID = {"meta", "link", "input", "br", "img"}
LOADS = {"src", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href", "style"}


class Page(HTMLParser):
    """Elements and text as a browser would find them."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.wrong: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.texts.setdefault(tag, []).append("")
        if tag in ("td", "th"):
            self.handle_data(" ")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str = "body") -> str:
        return " ".join(" ".join(self.texts.get(tag, [])).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(scope="module")
def read(pages: dict[str, ReportData]) -> dict[str, Page]:
    return {name: Page(render(data)) for name, data in pages.items()}


@pytest.mark.parametrize("case", CASES)
def test_pages_are_well_formed_and_complete(case: str, read: dict[str, Page], pages: dict[str, ReportData]) -> None:
    page, data = read[case], pages[case]
    assert page.wrong == [] and page.open == []
    unsure = {"unsure"} if data.error_bars else set()
    assert [each["id"] for each in page.all("section") if each["id"] not in unsure] == (
        OF_SEVERAL if data.multiple else SECTIONS
    )
    assert page.texts["title"][0] == data.title
    for each in data.verdict:
        assert " ".join(each.answer.split()) in page.text()
    assert sum(each.get("class") == "column" for each in page.all("article")) == len(data.columns)
    assert [each["data-name"] for each in page.all("article")] == [each.name for each in data.columns]


@pytest.mark.parametrize("case", CASES)
def test_pages_can_be_read_aloud(case: str, read: dict[str, Page]) -> None:
    page = read[case]
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    for svg in page.all("svg"):
        assert svg.get("role") == "img" or svg.get("aria-hidden") == "true"
    levels = [int(tag[1]) for tag, _ in page.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in each for each in page.all("th"))
    for link in page.all("a"):
        assert link["href"].removeprefix("#") in ids


@pytest.mark.parametrize("case", CASES)
def test_pages_load_nothing(case: str, read: dict[str, Page]) -> None:
    for _, attributes in read[case].elements:
        assert not LOADS & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#")[:1] == "#" or attributes["href"] == "data:,"
    style = read[case].text("style")
    assert "@import" not in style
    assert re.findall(r"url\(([^)]*)\)", style) == ['"#hatch"']


@pytest.mark.parametrize("case", CASES)
def test_only_the_pages_own_style_and_script_may_run(case: str, read: dict[str, Page]) -> None:
    page = read[case]
    policy = next(each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        assert len(page.texts[tag]) == 1
        digest = b64encode(hashlib.sha256(page.texts[tag][0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("case", ["hostile", "several tables"])
def test_hostile_names_are_text_only(case: str, read: dict[str, Page]) -> None:
    page = read[case]
    assert not page.all("img") and len(page.all("script")) == len(page.all("style")) == 1
    text = page.text()
    for name in ("<script>alert(1)</script>", "</style><b>", "{{7*7}}", "<img src=x onerror=alert(1)>", "n" * 200, "حجم الشقة"):
        assert name in text
    assert "49" not in page.texts["bdi"]
    assert all("alert(" not in each for tag in ("script", "style") for each in page.texts[tag])


def test_a_hundred_columns_fit_into_two_megabytes(pages: dict[str, ReportData]) -> None:
    assert pages["a hundred columns"].check is not None
    assert len(render(pages["a hundred columns"]).encode()) < 2_000_000


def test_the_least_sure_cells_are_shown_with_their_error_bars(
    read: dict[str, Page], pages: dict[str, ReportData], flats: pd.DataFrame
) -> None:
    bars = pages["error bars"].error_bars
    assert bars is not None and len(bars.numbers) == len(bars.categories) == 10
    assert [cell.size for cell in bars.numbers] == sorted((cell.size for cell in bars.numbers), reverse=True)
    text = read["error bars"].text()
    for cell in (*bars.numbers, *bars.categories):
        assert flats.iloc[cell.row - 1].isna().any()
        assert " ".join(f"{cell.value} {cell.bar}".split()) in text
    for column in pages["error bars"].columns:
        typical = {each.name: each.words for each in bars.columns}.get(column.name, "")
        assert column.error_bar == typical and bool(typical) == (column.n_filled > 0)
        assert f"Typical error bar of imputed values: {typical}" in text
    assert pages["flats"].error_bars is None and "error bar" not in read["flats"].text()


def test_what_is_not_there_is_said(read: dict[str, Page]) -> None:
    assert "Nothing was missing in 60 rows." in read["nothing missing"].text()
    assert "There is no check. It was not requested." in read["no check"].text()
    assert "has no training history" in read["no check"].text()
    assert "too few rows, or too few columns that vary" in read["one column"].text()
    assert "ICE could not be compared: <i>did not converge</i>" in read["a method failed"].text()
    assert "3 values below the lower bound." in read["a broken promise"].text()
    assert "Weights" in read["experts"].text()
    assert "keeps no record" not in read["experts"].text()
    assert "by transform, which treats every row separately" in read["transformed"].text()


@pytest.mark.parametrize(
    ("case", "summary"),
    [
        ("nothing missing", "No problems were found."),
        ("no check", "Not everything could be checked"),
        ("flats", "Usable with care"),
        ("one column", "Check everything marked “bad” before you use"),
    ],
)
def test_the_verdict_begins_with_a_sentence(case: str, summary: str, read: dict[str, Page]) -> None:
    assert f"Verdict {summary}" in read[case].text("main")


def test_promises_that_were_kept_are_counted_too(read: dict[str, Page], pages: dict[str, ReportData]) -> None:
    assert read["flats"].text().count("All constraints satisfied") == len(pages["flats"].columns)
    assert read["a broken promise"].text().count("All constraints satisfied") == len(pages["flats"].columns) - 1


def test_numbers_of_pictures_are_in_tables(read: dict[str, Page], pages: dict[str, ReportData]) -> None:
    text = read["flats"].text()
    for each in pages["flats"].missingness.columns:
        assert f"{each.name} {each.kind} {each.n_missing}" in text
    correlations = pages["flats"].joint.correlations
    assert correlations is not None and correlations.after[0][1] is not None
    assert f"{correlations.after[0][1]:.2f}" in text


def test_templates_are_part_of_the_package() -> None:
    found = {each.name for each in (files("otimpute.reporting") / "templates").iterdir()}
    assert {"report.html.j2", "pieces.html.j2", "style.css", "script.js"} <= found


def test_a_report_is_one_call(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[::5, 0] = np.nan
    imputer = SinkhornImputer(random_state=0, max_steps=20)
    X_imputed = imputer.fit_transform(X)
    made = otimpute.report(imputer, X, tmp_path / "report.html", X_imputed=X_imputed, check=False)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == made.html
    assert made.html.startswith("<!doctype html>")


def test_notebooks_show_the_page_in_a_frame_of_its_own(pages: dict[str, ReportData]) -> None:
    made = Report(pages["hostile"])
    frame = Page(made._repr_html_())
    assert [tag for tag, _ in frame.elements] == ["iframe"]
    assert frame.all("iframe")[0]["srcdoc"] == made.html
    assert frame.all("iframe")[0]["sandbox"] == "allow-scripts"


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """As the Web Content Accessibility Guidelines have it."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def over(colour: str, opacity: float, ground: str) -> str:
    mixed = (
        round(opacity * int(colour[k : k + 2], 16) + (1 - opacity) * int(ground[k : k + 2], 16)) for k in (1, 3, 5)
    )  # fmt: skip
    return "#" + "".join(f"{part:02x}" for part in mixed)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_told_apart(theme: int) -> None:
    style = (files("otimpute.reporting") / "templates" / "style.css").read_text(encoding="utf-8")
    colour = {name: pair[theme] for name, *pair in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    for text in ("ink", "quiet", "link", "good", "caution", "bad", "unknown"):
        assert min(contrast(colour[text], colour[ground]) for ground in ("ground", "card", "stripe")) >= 4.5
    for mark in ("observed", "imputed", "gone"):
        assert contrast(colour[mark], colour["card"]) >= 3
    strongest = float(re.findall(r"level-10 { fill-opacity: ([\d.]+)", style)[0])
    for heat in ("more", "less"):
        assert contrast(colour["ink"], over(colour[heat], strongest, colour["card"])) >= 4.5
