"""What a reader copies from a page works: commands and programs run, shown output is what comes, data can be read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.architecture.workspace import ROOT, short
from tests.docs.page import PARSED, RUN, Block, blocks, pages
from tests.docs.script import Page, matches
from tests.e2e.servers import local_is_refused


def with_examples() -> list[str]:
    return [short(path) for path in pages() if any(block.runs for block in blocks(path))]


@pytest.mark.parametrize("page", with_examples())
def test_the_examples_of_a_page_run_and_show_what_it_shows(page: str, tmp_path: Path) -> None:
    """Issue 6: every command and code block is executed by a test."""
    refused = local_is_refused()
    if refused is not None:
        pytest.skip(f"this machine cannot isolate a sandbox: {refused}")
    assert Page(blocks(ROOT / page), tmp_path).run() == []


def test_what_is_not_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [
        f"{short(path)}:{block.line} ({block.language}): {block.not_run}"
        for path in pages()
        for block in blocks(path)
        if block.not_run is not None
    ]
    with capsys.disabled():
        print("\n".join(["", f"{len(listed)} blocks are not run:", *listed]))
    assert [line for line in listed if len(line.partition("): ")[2].split()) < 3] == []


def test_every_block_runs_or_is_read_or_says_why_not() -> None:
    """A block without a language, or of one that nobody checks, would show anything."""
    unchecked = [
        f"{short(path)}:{block.line}: {block.language or 'no language'}"
        for path in pages()
        for block in blocks(path)
        if block.language not in RUN | PARSED and block.not_run is None and not block.language.startswith("{include}")
    ]
    assert unchecked == []


def test_data_that_a_page_shows_can_be_read() -> None:
    read = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    unread: list[str] = []
    for path in pages():
        for block in blocks(path):
            if block.language in PARSED and block.not_run is None:
                try:
                    read[block.language](block.text)
                except ValueError as error:
                    unread.append(f"{short(path)}:{block.line}: {error}")
    assert unread == []


def test_output_that_differs_a_failure_and_a_wrong_status_are_told(tmp_path: Path) -> None:
    """The mechanism itself: each way in which a page can be wrong is found."""
    wrong = [
        Block(1, "sh", "NAME=world\n"),
        Block(5, "sh", "echo hello $NAME\n", expected="hello you\n"),
        Block(9, "console", "$ echo one\none\n$ false\n", {"exits": "1"}),
        Block(14, "sh", "exit 3\n"),
    ]
    told = Page(wrong, tmp_path).run()
    assert [each.splitlines()[0] for each in told] == ["line 14 ended with 3:", "line 5 shows"]


def test_an_ellipsis_stands_for_anything_in_a_line_and_for_lines() -> None:
    assert matches("sb-…\n", "sb-7f3a\n")
    assert matches("first\n…\nlast", "first\nsecond\nthird\nlast\n")
    assert matches("first\n…", "first\nsecond\n")
    assert not matches("sb-…\n", "sb-7f3a\nmore\n")
