"""How Sphinx makes the site of these pages: `nox -s docs`.

The pages stay plain CommonMark, so that they also read well where the repository is shown. The one thing that
Sphinx wants on top, which page comes where, is taken from the lists of links in the pages named `index`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import sdk_page

ROOT = Path(__file__).parent.parent

project = "Cloche"
version = release = (ROOT / "schemas" / "CONTRACT_VERSION").read_text(encoding="utf-8").strip()
language = "en"

extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns: list[str] = []
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = "Cloche"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

_HEADING = re.compile(r"^## (.+)$")
_ITEM = re.compile(r"^- \[[^\]]+\]\(([^)#:]+)\.md\)")


def add_contents(_: Sphinx, docname: str, source: list[str]) -> None:
    """Make the lists of links of an index page the contents that its readers navigate by."""
    if docname.rsplit("/", 1)[-1] != "index":
        return
    caption, chapters = "", dict[str, list[str]]()
    for line in source[0].splitlines():
        if heading := _HEADING.match(line):
            caption = heading[1]
        elif item := _ITEM.match(line):
            chapters.setdefault(caption, []).append(item[1])
    for caption, pages in chapters.items():
        head = f":caption: {caption}\n" if caption else ""
        source[0] += "\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(pages) + "\n```\n"


def add_names(_: Sphinx, docname: str, source: list[str]) -> None:
    """Put every public name of the SDK below the headline of its page."""
    if docname == "python":
        source[0] += "\n" + sdk_page.write(ROOT)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_contents)
    app.connect("source-read", add_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
