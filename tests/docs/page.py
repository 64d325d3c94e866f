"""The examples of a page: its fenced blocks, each with what the comment before it says.

A comment on the line before a block may say:

    <!-- not run: REASON -->     it cannot run here; the test lists it with the reason
    <!-- before: SHELL LINE -->  runs first, where the reader has something of his own in its place
    <!-- serves: PORT -->        runs in the background until the page ends; another port is put in its place
    <!-- exits: STATUS -->       the block, or its last command, ends with this status
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.architecture.workspace import ROOT, tracked_files

RUN = frozenset({"python", "sh", "console"})
PARSED = frozenset({"json", "toml", "yaml"})
_COMMENT = re.compile(r"<!--\s*(not run|before|serves|exits):\s*(.+?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict[str, str])
    expected: str | None = None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.not_run is None

    @property
    def not_run(self) -> str | None:
        return self.marks.get("not run")


def pages() -> list[Path]:
    """Every page that people read: of the repository, the documentation, and the packages."""
    return sorted(path for path in tracked_files() if path.suffix == ".md" and _is_page(path.relative_to(ROOT)))


def _is_page(path: Path) -> bool:
    return len(path.parts) == 1 or path.name == "README.md" or path.parts[0] == "docs"


@cache
def blocks(path: Path) -> tuple[Block, ...]:
    """The fenced blocks of a page in their order. A `text` block right behind one that runs is its output."""
    found: list[Block] = []
    previous: Token | None = None
    for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
        if token.type == "fence":
            block = _block(token, previous)
            if block.language == "text" and found and previous and previous.type == "fence" and found[-1].runs:
                last = found.pop()
                found.append(Block(last.line, last.language, last.text, last.marks, block.text))
            else:
                found.append(block)
        previous = token
    return tuple(found)


def _block(token: Token, previous: Token | None) -> Block:
    comment = previous.content if previous is not None and previous.type == "html_block" else ""
    line = (token.map or [0])[0] + 1
    return Block(line, token.info.strip(), token.content, dict(_COMMENT.findall(comment)))
