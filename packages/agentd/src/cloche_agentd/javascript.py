"""JavaScript and TypeScript with state: node with a program of ours that speaks the control protocol."""

from __future__ import annotations

import os
from typing import Final

STATEFUL_SINCE: Final = (18, 0)
"""Before it, `const` cannot be declared again in a later call."""


def _read_program() -> str:
    # When this module is imported: later the root of the keeper is the sandbox's.
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "context.js"), encoding="utf-8") as stream:
        return stream.read()


_PROGRAM: Final = _read_program()


def argv(node: str) -> tuple[str, ...]:
    """Return how an interpreter is started."""
    return (node, "--no-warnings", "--eval", _PROGRAM)


def strips_types(version: tuple[int, int]) -> bool:
    """Whether this node can take the types out of TypeScript itself (module.stripTypeScriptTypes)."""
    return (22, 13) <= version < (23, 0) or version >= (23, 2)
