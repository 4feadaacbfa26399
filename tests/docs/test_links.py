"""Every page can be found, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("[a-z]*/*.md")])
PAGES = [page for page in PAGES if page.parent.name not in ("auto_examples", "_build", "_api")]


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [entry.rpartition("<")[2].rstrip(">") for entry in entries]
            listed |= {found.resolve() for name in names for found in (page.parent).glob(f"{name}.md")}
    assert [str(page.relative_to(DOCS)) for page in PAGES if page not in listed] == []


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *PAGES], ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *PAGES], ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [(file, anchor) for file, anchor in links if anchor not in anchors(page.parent / file if file else page)] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and Sphinx make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
