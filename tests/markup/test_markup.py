"""Elements of pages: what goes in comes out, whatever it is, and nothing of it becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otimpute._markup import element, short, to_html

_CHARACTERS = st.characters(exclude_categories=["Cn"])  # those that are none have a test of their own


class _Read(HTMLParser):
    """Tags, attributes and text as a browser would find them."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ends: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.ends.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def _allowed(text: str) -> str:
    """What a page may show of a text."""
    return "".join("�" if category(c) in ("Cc", "Cs") and c not in "\t\n\r" else c for c in text)


@given(st.text(_CHARACTERS), st.text(_CHARACTERS))
def test_texts_come_back_as_texts(inside: str, attribute: str) -> None:
    read = _Read(to_html(element("p", inside, element("b", inside), inside, title=attribute)))
    assert read.tags == [("p", {"title": _allowed(attribute)}), ("b", {})]
    assert read.text == 3 * _allowed(inside)


@pytest.mark.parametrize("character", ["\x00", "\x0c", "\x1b", "\x7f", "\x85", "\ud800", "\ufffe"])
def test_what_no_page_may_contain_is_replaced(character: str) -> None:
    page = to_html(element("p", f"a{character}b", title=character))
    assert page == '<p title="�">a�b</p>'
    page.encode()


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</p>", "&lt;", "<!--"])
def test_markup_in_texts_and_attributes_stays_text(text: str) -> None:
    read = _Read(to_html(element("p", text, title=text)))
    assert read.tags == [("p", {"title": text})]
    assert (read.text, read.ends) == (text, ["p"])


def test_elements_without_content_have_an_end_tag_unless_html_forbids_it() -> None:
    page = to_html(element("div", element("br"), element("svg", element("path", d="M0 0"), viewBox="0 0 1 1"), element("td")))
    assert page == '<div><br><svg viewBox="0 0 1 1"><path d="M0 0"></path></svg><td></td></div>'


def test_attributes_have_short_values_and_the_names_of_html() -> None:
    attributes: dict[str, Any] = {
        "stroke_width": np.float32(1.5),
        "x": 3,
        "for_": "a",
        "open": True,
        "hidden": False,
        "id": None,
    }
    assert to_html(element("p", **attributes)) == '<p stroke-width="1.5" x="3" for="a" open=""></p>'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_short_numbers_are_the_numbers_to_two_decimals(number: float) -> None:
    assert float(short(number)) == pytest.approx(number, abs=0.0051, rel=1e-12)
    assert "e" not in short(number)


def test_an_element_may_be_used_in_several_places() -> None:
    star = element("i", "*")
    first, second = element("p", star, "one"), element("p", star)
    assert to_html(first) == "<p><i>*</i>one</p>"
    assert to_html(second) == "<p><i>*</i></p>"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_nothing_could_be_drawn_with_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        element("rect", width=number)


@pytest.mark.parametrize("tag", ["style", "script", "STYLE"])
def test_text_that_could_end_a_style_is_refused(tag: str) -> None:
    assert "a > b" in to_html(element(tag, "a > b {}"))
    with pytest.raises(ValueError, match="must not contain '<'"):
        element(tag, "</style><img>")


@pytest.mark.parametrize(("tag", "attribute"), [("p onclick=x", "a"), ("p", "a b"), ("", "a"), ("p", ""), ("é", "a")])
def test_names_that_are_no_names_are_refused(tag: str, attribute: str) -> None:
    with pytest.raises(ValueError, match="must be a name"):
        element(tag, **{attribute: "x"})


def test_attributes_that_are_neither_text_nor_number_are_refused() -> None:
    with pytest.raises(TypeError, match=r"attribute style must be text, a number, .* got \['a'\]"):
        element("p", style=["a"])
