"""Removes a folder with all it holds, in steps: other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

_STEP: Final = 500


async def remove_tree(folder: str, become: Callable[[], AbstractContextManager[None]]) -> None:
    """Remove `folder` and everything below it; links are removed, never followed.

    Args:
        become: gives the rights of the user for one step.

    Raises:
        OSError: something cannot be removed.
    """
    pending = [folder]
    while pending:
        with become():
            below, emptied = _clear(pending[-1])
        if emptied:
            pending.pop()
        pending.extend(below)
        await asyncio.sleep(0)


def _clear(folder: str) -> tuple[list[str], bool]:
    """Remove some files of a folder, and itself when it is empty.

    Returns:
        Folders inside it, to remove first; and whether the folder itself is gone.
    """
    below: list[str] = []
    try:
        with os.scandir(folder) as scan:
            entries = list(itertools.islice(scan, _STEP))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)
        if below or len(entries) == _STEP:
            return below, False
        os.rmdir(folder)
    except FileNotFoundError:
        pass  # somebody else was faster
    return [], True
