"""How Sphinx builds these pages: `make docs`, without network and without warnings."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import otimpute

project = "otimpute"
author = "The otimpute developers"
project_copyright = author
version = release = otimpute.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
nitpicky = True

# Pages are plain Markdown first: they are read on code hosts too, and headings are linked to as there.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # tables of results have headings of the third level, as a command writes them

# Docstrings name things in `single backticks`, which become links where there is something to link to (see `setup`). They say
# in words what a parameter is ("array [n, d]"), which is no name of a class; annotations are for mypy.
default_role = "py:obj"
nitpick_ignore_regex = [("py:class", ".*")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "ignore_pattern": r"demo\.py",  # draws into a folder, for `make demo`
    "within_subsection_order": "ExampleTitleSortKey",
    "thumbnail_size": (480, 270),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": float("inf"),
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "otimpute"
html_static_path = ["_static"]
html_css_files = ["otimpute.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_sidebars = {"index": [], "api": []}
html_theme_options = {
    "logo": {"text": "otimpute"},
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["sphinx-version"],
    "footer_end": [],
    "pygments_light_style": "tango",
}


def link_short_name(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A name in backticks, without its module: a link if a class or function has it, else as it is written."""
    name = node.get("reftarget", "")
    if node.get("refdomain") != "py" or node.get("reftype") != "obj" or name.startswith("otimpute."):
        return None
    domain = env.domains.python_domain
    for full, entry in domain.objects.items():
        if full.endswith(f".{name}") and entry.objtype in ("class", "exception", "function"):
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, text)
    return text


def keep_first_sentence(_app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Napoleon reads "What it holds: numbers." as a property of the type "What it holds", unless a line comes before."""
    if what == "property":
        lines.insert(0, "")


def setup(app: Any) -> None:
    app.connect("missing-reference", link_short_name)
    app.connect("autodoc-process-docstring", keep_first_sentence, priority=400)
