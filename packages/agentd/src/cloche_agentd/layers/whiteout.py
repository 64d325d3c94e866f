"""The marks of layers: a deleted name (whiteout) and a folder that hides what is below it (opaque).

Layers of a store have the kernel's marks for overlays with `userxattr`: a character device 0:0, and the attribute
user.overlay.opaque. Trees that other tools made may have the marks of archives (.wh. names) or other attributes:
`adopt` turns them into ours.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from .door import Door, below, lstat, names, open_folder

OPAQUE: Final = "user.overlay.opaque"
_OVERLAY: Final = ("user.overlay.", "trusted.overlay.", "user.fuseoverlayfs.")
_OPAQUE_ELSEWHERE: Final = (OPAQUE, "trusted.overlay.opaque", "user.fuseoverlayfs.opaque")
_WHITEOUT_ELSEWHERE: Final = ("user.overlay.whiteout", "trusted.overlay.whiteout")
_ARCHIVE_MARK: Final = ".wh."
_ARCHIVE_OPAQUE: Final = ".wh..wh..opq"
_ARCHIVE_OWN: Final = ".wh..wh."


def is_whiteout(status: os.stat_result) -> bool:
    """Whether this is the mark of a deleted name."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(folder: int) -> bool:
    """Whether an open folder hides what is below it."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


def own_attributes(folder: int, name: str) -> list[str]:
    """Return the names of those extended attributes that belong to overlays, not to the file."""
    return [each for each in os.listxattr(below(folder, name), follow_symlinks=False) if each.startswith(_OVERLAY)]


def attributes(folder: int, name: str) -> dict[str, bytes]:
    """Return the extended attributes of a file, without those of overlays."""
    path = below(folder, name)
    found = os.listxattr(path, follow_symlinks=False)
    return {each: os.getxattr(path, each, follow_symlinks=False) for each in found if not each.startswith(_OVERLAY)}


def set_opaque(door: Door, folder: int, name: str) -> None:
    """Make a folder hide what is below it."""
    door.setxattr(folder, name, OPAQUE, b"y")


def clean(door: Door, folder: int, name: str, *, opaque: bool) -> None:
    """Remove what an overlay wrote beside a file, and leave the folder opaque or not."""
    there = False
    for attribute in own_attributes(folder, name):
        if opaque and attribute == OPAQUE:
            there = True
        else:
            door.removexattr(folder, name, attribute)
    if opaque and not there:
        set_opaque(door, folder, name)


def adopt(door: Door, folder: int, *, archive_marks: bool) -> None:
    """Turn the marks of other tools, in a tree that is not in use yet, into ours.

    Args:
        archive_marks: names that begin with .wh. are marks, as in image archives; else they are names.
    """
    for name in names(folder):
        status = lstat(folder, name)
        if status is None:
            continue
        if stat.S_ISDIR(status.st_mode):
            _adopt_folder(door, folder, name, archive_marks=archive_marks)
        elif archive_marks and name.startswith(_ARCHIVE_MARK):
            _adopt_archive_mark(door, folder, name)
        elif _is_marked(folder, name, status):
            _replace(door, folder, name)
        elif not is_whiteout(status):
            clean(door, folder, name, opaque=False)


def _adopt_folder(door: Door, folder: int, name: str, *, archive_marks: bool) -> None:
    inner = open_folder(folder, name)
    try:
        found = set(own_attributes(folder, name))
        path = below(folder, name)
        opaque = any(os.getxattr(path, each) == b"y" for each in _OPAQUE_ELSEWHERE if each in found)
        opaque = opaque or (archive_marks and lstat(inner, _ARCHIVE_OPAQUE) is not None)
        adopt(door, inner, archive_marks=archive_marks)
        clean(door, folder, name, opaque=opaque)
    finally:
        os.close(inner)


def _adopt_archive_mark(door: Door, folder: int, name: str) -> None:
    door.unlink(folder, name)
    hidden = name.removeprefix(_ARCHIVE_MARK)
    # Names with the prefix twice are the tool's own notes. A mark beside content of the same name loses.
    if not name.startswith(_ARCHIVE_OWN) and hidden not in ("", ".", "..") and lstat(folder, hidden) is None:
        door.whiteout(folder, hidden)


def _is_marked(folder: int, name: str, status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode) or status.st_size:
        return False
    return any(each in _WHITEOUT_ELSEWHERE for each in own_attributes(folder, name))


def _replace(door: Door, folder: int, name: str) -> None:
    door.unlink(folder, name)
    door.whiteout(folder, name)
