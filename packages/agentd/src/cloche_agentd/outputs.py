"""Which files an execution made or changed: a bounded look at the working directory, by change time."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Sequence
from typing import Final

from . import limits
from .config import KeeperHooks, User
from .paths import display

_CLOCK_REALTIME_COARSE: Final = 5
"""The clock that file systems stamp changes with; the time module has no name for it."""
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


def mark() -> int:
    """Return now, in nanoseconds, as a file system would stamp it."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


class OutputFiles:
    """Looks for files below a folder that changed since a mark. The keeper's own uploads are known and left out."""

    def __init__(self, hooks: KeeperHooks, user: User) -> None:
        self._hooks = hooks
        self._user = user
        self._known: dict[str, int] = {}

    def uploaded(self, path: str) -> None:
        """Remember a file that a client wrote, so that it is not taken for the code's work."""
        try:
            self._remember(path, os.lstat(path).st_ctime_ns)
        except OSError:
            return

    def _remember(self, path: str, changed_ns: int) -> None:
        self._known.pop(path, None)
        self._known[path] = changed_ns
        while len(self._known) > limits.KNOWN_FILES:
            del self._known[next(iter(self._known))]

    def since(self, start_ns: int, folder: str, more: Sequence[str]) -> list[dict[str, object]]:
        """Return at most 100 changed files, sorted by path, and those named in `more`."""
        with self._hooks.become(self._user):
            found = self._scan(folder, start_ns)
            for path in more:
                try:
                    found[path] = os.lstat(path).st_size
                except OSError:
                    continue
        listed = sorted(found)[: limits.OUTPUT_FILES]
        return [{"name": display(posixpath.basename(p)), "path": display(p), "size": found[p]} for p in listed]

    def _scan(self, folder: str, start_ns: int) -> dict[str, int]:
        found: dict[str, int] = {}
        pending = [(folder, 1)]
        looked_at = 0
        while pending:
            current, depth = pending.pop(0)
            try:
                scan = os.scandir(current)
            except OSError:
                continue
            with scan:
                for item in scan:
                    looked_at += 1
                    if looked_at > limits.SCAN_ENTRIES:
                        return found
                    if item.name.startswith(".") or item.name in _SKIPPED:
                        continue
                    self._look(item, start_ns, found, pending, depth)
        return found

    def _look(
        self,
        item: os.DirEntry[str],
        start_ns: int,
        found: dict[str, int],
        pending: list[tuple[str, int]],
        depth: int,
    ) -> None:
        try:
            if item.is_dir(follow_symlinks=False):
                if depth < limits.SCAN_DEPTH:
                    pending.append((item.path, depth + 1))
            elif item.is_file(follow_symlinks=False):
                status = item.stat(follow_symlinks=False)
                # Stamps come in steps of some milliseconds: what was told already may look as new as the mark.
                if status.st_ctime_ns >= start_ns and self._known.get(item.path) != status.st_ctime_ns:
                    found[item.path] = status.st_size
                    self._remember(item.path, status.st_ctime_ns)
        except OSError:
            return
