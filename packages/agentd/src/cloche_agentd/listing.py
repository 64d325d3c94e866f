"""What is below a folder, in steps and within bounds: a folder of millions of names must not fill the keeper."""

from __future__ import annotations

import asyncio
import itertools
import os
import posixpath
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from . import limits

_STEP: Final = 2000


@dataclass(slots=True)
class Listing:
    """The first paths in order, as (shown path, real path), and how many there are."""

    limit: int
    total: int = 0
    entries: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, shown: str, real: str) -> None:
        """Count one path, and keep it as long as it may be among the first."""
        self.total += 1
        self.entries.append((shown, real))
        if len(self.entries) > 2 * self.limit + _STEP:
            self.cut()

    def cut(self) -> None:
        """Keep the first paths only."""
        self.entries.sort()
        del self.entries[self.limit :]


async def list_below(
    folder: str, shown: str, depth: int, limit: int, become: Callable[[], AbstractContextManager[None]]
) -> Listing:
    """Return what is in `folder` down to `depth` levels. Links are not followed, unreadable folders left out.

    Raises:
        OSError: `folder` itself cannot be read.
    """
    listing = Listing(limit)
    pending = [(folder, shown, 1)]
    while pending:
        real, name, level = pending.pop()
        try:
            with become():
                scan = os.scandir(real)
        except OSError:
            if level == 1:
                raise
            continue
        with scan:
            while entries := list(itertools.islice(scan, _STEP)):
                for entry in entries:
                    path = posixpath.join(name, entry.name)
                    listing.add(path, entry.path)
                    if level < depth and len(pending) < limits.LIST_ENTRIES and entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, path, level + 1))
                if listing.total >= limits.LIST_SCAN:
                    pending.clear()
                    break
                await asyncio.sleep(0)
    listing.cut()
    return listing
