"""Files that a tool of the host would run or obey when it next looks at the folder: hooks, and settings of tools.

Source: fault W6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from .export_stream import Change, changes_in

_MARKS = (b".git/hooks/", b".git/config", b".claude/", b".cursor/", b".vscode/", b".idea/", b".envrc", b".mcp.json")


def executed_by_the_host(path: bytes) -> bool:
    """Whether a tool of the host would run or obey this file later, wherever in the tree it lies."""
    whole = b"/" + path
    return any(b"/" + mark in whole + (b"" if mark.endswith(b"/") else b"/") for mark in _MARKS)


def wanted(spool: BinaryIO, left_out: list[str], *, all_of_them: bool) -> Iterator[Change]:
    """The changes of a spool less those that the host would execute, which are added to `left_out` instead."""
    skipping = False
    for change in changes_in(spool):
        if change.kind != "data":
            skipping = not all_of_them and change.kind in ("file", "symlink") and executed_by_the_host(change.path)
            if skipping:
                left_out.append(change.path.decode(errors="replace"))
        if not skipping:
            yield change
