"""The site is made of the pages and of nothing else: twice the same, and changed where a page changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloche_codegen.emit import reference
from cloche_codegen.emit.sync import SDK
from cloche_codegen.ir import tool_sets
from cloche_codegen.load import load
from tests.docs.site import ROOT, build

TOOL = "tools/sandbox/run_code"


def copy_of_the_sources(folder: Path) -> Path:
    """Everything that the site is made from, in another place."""
    for name in ("docs", "schemas", SDK):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a site. What Sphinx keeps for its next build is none."""
    kept = {".buildinfo", ".doctrees"}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in kept
    }


def different(one: Path, other: Path) -> set[str]:
    """The files that one of the sites has and the other has not, or not so."""
    left, right = contents(one), contents(other)
    return {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the site in another folder, and a site made of them there, on another day in another place."""
    folder = copy_of_the_sources(tmp_path_factory.mktemp("copy"))
    build(folder / "site", folder, PYTHONHASHSEED="2", TZ="Asia/Tokyo", LC_ALL="C", SOURCE_DATE_EPOCH="1")
    return folder


def test_the_site_is_built_to_the_same_bytes_wherever_and_whenever(site: Path, copy: Path) -> None:
    """Issue 6: docs build twice to identical bytes."""
    assert different(site, copy / "site" / "html") == set()


def with_change(folder: Path, change: Callable[[dict[str, Any]], None]) -> set[str]:
    """Change the schema of one tool in a copy, write its reference pages and return those that changed."""
    schema = folder / "schemas" / f"{TOOL}.json"
    data = json.loads(schema.read_text(encoding="utf-8"))
    change(data)
    schema.write_text(json.dumps(data), encoding="utf-8")
    library = load(folder / "schemas")
    pages = reference.emit(library, tool_sets(library))
    before = ROOT / "docs/reference"
    for name, (text, _) in pages.items():
        target = folder / "docs/reference" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return {name for name, (text, _) in pages.items() if (before / name).read_text(encoding="utf-8") != text}


def describe_the_code(data: dict[str, Any]) -> None:
    (root,) = [node for node in data["$defs"].values() if "code" in node["properties"] and "required" in node]
    root["properties"]["code"]["description"] = "A sentence of a test."


def test_a_changed_description_changes_the_page_of_its_tool_and_no_other(site: Path, copy: Path) -> None:
    """Issue 6: changing one schema description changes exactly its pages. The index of the search knows the words."""
    assert with_change(copy, describe_the_code) == {f"{TOOL}.md"}
    changed = build(copy / "site", copy, again=True, PYTHONHASHSEED="3")
    assert different(site, changed) == {f"reference/{TOOL}.html", "searchindex.js"}


def test_a_changed_summary_changes_the_list_of_tools_as_well(tmp_path: Path) -> None:
    """Issue 6: exactly its pages; a tool's first sentence stands in the list too."""

    def summarize(data: dict[str, Any]) -> None:
        data["description"] = "Another first sentence. And more."

    copy_of_the_sources(tmp_path)
    assert with_change(tmp_path, summarize) == {f"{TOOL}.md", "index.md"}
