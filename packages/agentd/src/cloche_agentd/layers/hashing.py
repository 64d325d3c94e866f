"""Whether two files are the same: kind, mode, content, target, attributes."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Final

from .door import open_file
from .view import Folder, Found
from .whiteout import attributes

_PIECE: Final = 1024 * 1024


def fingerprint(found: Found) -> str:
    """Return a text that is equal for equal files: kind, mode, and content or target; of a folder, its mode."""
    kind, mode = stat.S_IFMT(found.status.st_mode), stat.S_IMODE(found.status.st_mode)
    if stat.S_ISLNK(kind):
        target = os.fsencode(os.readlink(found.name, dir_fd=found.folder))
        return f"link:{hashlib.sha256(target).hexdigest()}"
    content = content_hash(found) if stat.S_ISREG(kind) else ""
    return f"{kind:o}:{mode:o}:{content}"


def content_hash(found: Found) -> str:
    """Return the SHA-256 of a regular file."""
    digest = hashlib.sha256()
    file = open_file(found.folder, found.name)
    try:
        while piece := os.read(file, _PIECE):
            digest.update(piece)
    finally:
        os.close(file)
    return digest.hexdigest()


def same_content(one: Found, other: Found) -> bool:
    """Whether two regular files hold the same bytes."""
    if one.status.st_size != other.status.st_size:
        return False
    return _same_inode(one, other) or content_hash(one) == content_hash(other)


def same(one: Found | None, other: Found | None) -> bool:
    """Whether two names are the same, folders by their mode alone. Absent is the same as absent."""
    if one is None or other is None:
        return one is other
    if _same_inode(one, other):
        return True
    regular = stat.S_ISREG(one.status.st_mode) and stat.S_ISREG(other.status.st_mode)
    if regular and one.status.st_size != other.status.st_size:
        return False
    if stat.S_IFMT(one.status.st_mode) != stat.S_IFMT(other.status.st_mode):
        return False
    return fingerprint(one) == fingerprint(other)


def identical(one: Found, other: Found) -> bool:
    """Whether nothing at all differs: also times, owners and attributes. For files and links."""
    if _same_inode(one, other):
        return True
    mine, theirs = one.status, other.status
    if (mine.st_mtime_ns, mine.st_size, mine.st_mode) != (theirs.st_mtime_ns, theirs.st_size, theirs.st_mode):
        return False
    if (mine.st_uid, mine.st_gid) != (theirs.st_uid, theirs.st_gid):
        return False
    if attributes(one.folder, one.name) != attributes(other.folder, other.name):
        return False
    return same(one, other)


def same_tree(one: Folder | None, other: Folder | None, name: str) -> bool:
    """Whether a name is the same in two views, with everything below it."""
    mine = one.find(name) if one is not None else None
    theirs = other.find(name) if other is not None else None
    if not same(mine, theirs):
        return False
    if mine is None or not mine.is_folder or one is None or other is None:
        return True
    inner, outer = one.enter(name), other.enter(name)
    if inner is None or outer is None:
        return inner is outer
    with inner, outer:
        found = inner.names()
        return found == outer.names() and all(same_tree(inner, outer, each) for each in found)


def nothing_new(one: Folder | None, other: Folder | None, name: str) -> bool:
    """Whether all that the other view has at and below a name is the same in the first: it may have less."""
    theirs = other.find(name) if other is not None else None
    if theirs is None or other is None:
        return True
    mine = one.find(name) if one is not None else None
    if mine is None or one is None or not same(mine, theirs):
        return False
    inner, outer = one.enter(name), other.enter(name)
    if inner is None or outer is None:
        return inner is outer
    with inner, outer:
        return all(nothing_new(inner, outer, each) for each in outer.names())


def _same_inode(one: Found, other: Found) -> bool:
    # A folder of one layer may stand under folders of others: its own inode says nothing about what it shows.
    mine, theirs = one.status, other.status
    return not one.is_folder and (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino)
