"""Directories that may become a workspace, one level at a time. Blocks; call it in a worker thread.

Source: checklist 230 to 237, 337.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cloche_contract.errors import WorkspaceNotFound

from .create import below_the_roots
from .settings import ManagerSettings

LIMIT = 500


@dataclass(frozen=True)
class Directory:
    name: str
    path: str


@dataclass(frozen=True)
class Listing:
    """Directories below `path`; of the roots themselves `path` and `parent` are None."""

    path: str | None
    parent: str | None
    truncated: bool
    directories: tuple[Directory, ...]


def list_directories(path: str | None, settings: ManagerSettings) -> Listing:
    """List the roots, or what is directly in a directory below one.

    Raises:
        WorkspaceNotFound: the directory is not there, or cannot be read.
        WorkspaceNotAllowed: it is outside of the roots.
    """
    roots = [root.resolve() for root in settings.workspace_roots if root.is_dir()]
    if path is None:
        return _listing(None, None, {str(root): root.name or str(root) for root in roots})
    real = below_the_roots(path, settings)
    try:
        found = dict(_inside(real, roots))
    except OSError as exc:
        raise WorkspaceNotFound from exc
    parent = real.parent if any(real.parent.is_relative_to(root) for root in roots) else None
    return _listing(str(real), None if parent is None else str(parent), found)


def _inside(folder: Path, roots: list[Path]) -> Iterator[tuple[str, str]]:
    """Real path and name of each directory; a link counts where it leads to a place below a root."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if not entry.is_dir():
                    continue
                entry.name.encode()
                real = Path(entry.path).resolve(strict=True)
            except (OSError, RuntimeError, UnicodeEncodeError):
                continue
            if any(real.is_relative_to(root) for root in roots):
                yield str(real), entry.name


def _listing(path: str | None, parent: str | None, found: dict[str, str]) -> Listing:
    ordered = sorted(found.items(), key=lambda pair: (pair[1].casefold(), pair[0]))
    directories = tuple(Directory(name, real) for real, name in ordered[:LIMIT])
    return Listing(path, parent, len(ordered) > LIMIT, directories)
