"""Removes a tree of any depth and any mode by handles, with one open folder at a time."""

from __future__ import annotations

import os
import stat
from typing import Final

from .door import Door, lstat, open_folder

_PASSABLE: Final = 0o700


def remove(door: Door, folder: int, name: str) -> None:
    """Remove a name and everything below it; a name that is not there is no error.

    Folders inside are first moved up beside it, so that depth costs nothing: a session can make trees that are
    deeper than any stack.

    Raises:
        OSError: something cannot be removed.
    """
    status = lstat(folder, name)
    if status is None:
        return
    if not stat.S_ISDIR(status.st_mode):
        door.unlink(folder, name)
        return
    waiting, count = [name], 0
    while waiting:
        current = waiting.pop()
        _let_in(door, folder, current)
        inner = open_folder(folder, current)
        try:
            for each in os.listdir(inner):
                found = lstat(inner, each)
                if found is not None and stat.S_ISDIR(found.st_mode):
                    count += 1
                    moved = f"{name}.{door.token()}.{count}"
                    _let_in(door, inner, each)
                    door.rename(inner, each, folder, moved)
                    waiting.append(moved)
                elif found is not None:
                    door.unlink(inner, each)
        finally:
            os.close(inner)
        door.rmdir(folder, current)


def _let_in(door: Door, folder: int, name: str) -> None:
    """Overlays leave a folder of mode 000, and sessions may too."""
    status = lstat(folder, name)
    if status is not None and status.st_mode & _PASSABLE != _PASSABLE:
        door.chmod(folder, name, _PASSABLE)
