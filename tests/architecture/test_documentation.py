"""What the pages say of each other is so: links lead somewhere, lists are whole, the README is short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.workspace import ROOT, packages, short, tracked_files

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)#\s]+)")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    return (path for path in tracked_files() if path.suffix == ".md")


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are marked with a language."""
    return [text for marked, text in _BLOCK.findall(path.read_text(encoding="utf-8")) if marked == language]


def test_every_relative_link_of_a_page_leads_to_a_file() -> None:
    lost = {
        f"{short(path)}: {target}"
        for path in pages()
        for target in _LINK.findall(path.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists()
    }
    assert lost == set()


def test_every_decision_is_listed_and_has_its_parts() -> None:
    folder = ROOT / "docs/adr"
    index = (folder / "index.md").read_text()
    for path in sorted(folder.glob("[0-9]*.md")):
        text = path.read_text()
        assert f"({path.name})" in index
        for headline in ("\n## Context\n", "\n## Decision\n", "\n## Consequences\n"):
            assert headline in text, path.name


def test_every_page_is_in_the_list_of_pages() -> None:
    folder = ROOT / "docs"
    index = (folder / "index.md").read_text()
    written = [path for kind in ("tutorial", "how-to", "explanation") for path in (folder / kind).glob("*.md")]
    assert [short(path) for path in written if f"({path.relative_to(folder)})" not in index] == []


def test_the_readme_names_every_package_and_no_other() -> None:
    named = set(re.findall(r"\]\(packages/([a-z-]+)\)", (ROOT / "README.md").read_text()))
    assert named == {package.key for package in packages()}


def test_the_readme_fits_one_screen_before_its_reference_part() -> None:
    """Architecture 3.12: a sentence, two commands, a short example."""
    text = (ROOT / "README.md").read_text()
    (example,) = blocks(ROOT / "README.md", "python")
    assert len(example.splitlines()) <= 12
    assert text.index("```python") < 1200
    assert [line for line in text.splitlines() if line.startswith("./bootstrap")] == [
        "./bootstrap && .venv/bin/abx run 'print(6 * 7)'",
        "./bootstrap --dev && .venv/bin/nox -t ci",
    ]
