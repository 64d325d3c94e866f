"""The real schemas, to be bent in one place and held against one rule."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloche_codegen import lint
from cloche_codegen.load import Library, load

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def _real() -> Library:
    return load(ROOT / "schemas")


def real() -> Library:
    """The schemas of the repository."""
    return _real()


def bent(path: str, change: Callable[[dict[str, Any]], object]) -> Library:
    """The schemas of the repository with one file changed."""
    library = _real()
    document = library.documents[path]
    data = copy.deepcopy(document.data)
    change(data)
    return replace(library, documents={**library.documents, path: replace(document, data=data)})


def broken(rule: str, path: str, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """What one rule says about the bent schemas."""
    return list(lint.RULES[rule](bent(path, change)))
