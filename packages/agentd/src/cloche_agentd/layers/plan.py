"""What publishing a session would do: its changes against the view it read and against the layers in force now.

Only reads. A path that others changed meanwhile is told by its content, not by its times.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Final

from .door import names, open_folder
from .hashing import identical, nothing_new, same, same_content, same_tree
from .merge import TEXT_BYTES, merge_text
from .view import Folder, Found
from .whiteout import attributes, is_opaque, is_whiteout

MAX_DEPTH: Final = 120
PATH_BYTES: Final = 16 * 1024


@dataclass(slots=True)
class Plan:
    """What to do with the tree of a session to make it a layer."""

    entries: int = 0
    size: int = 0
    """Bytes of its files."""
    effective: bool = False
    """Whether the layer would change anything."""
    conflicts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    merged: dict[str, bytes] = field(default_factory=dict[str, bytes])
    modes: dict[str, int] = field(default_factory=dict[str, int])
    dropped: list[str] = field(default_factory=list[str])
    """Sockets and pipes: nothing holds their other end."""
    withdrawn: set[str] = field(default_factory=set[str])
    """Files that were copied up and never changed, where somebody else changed them: theirs hold."""
    opaque: set[str] = field(default_factory=set[str])
    reject_class: str = ""


def plan(upper: int, read: Folder, head: Folder, *, moved: bool) -> Plan:
    """Compare the tree of a session with what it read and with what is in force.

    Args:
        moved: whether others published since the session was made; else `head` is `read`.
    """
    made = Plan()
    _Planner(made, moved=moved).folder(upper, read, head, "", 0)
    if made.conflicts and not made.reject_class:
        made.reject_class = "source_conflict"
    return made


class _Planner:
    def __init__(self, made: Plan, *, moved: bool) -> None:
        self._plan = made
        self._moved = moved

    def folder(self, upper: int, read: Folder | None, head: Folder | None, path: str, depth: int) -> None:
        if depth > MAX_DEPTH or len(path) > PATH_BYTES:
            self._plan.reject_class = "too_deep"
            return
        for name in names(upper):
            status = os.stat(name, dir_fd=upper, follow_symlinks=False)
            self._entry(Found(upper, name, status), read, head, f"{path}/{name}" if path else name, depth)

    def _entry(self, ours: Found, read: Folder | None, head: Folder | None, path: str, depth: int) -> None:
        mode = ours.status.st_mode
        if not _readable(ours):
            self._plan.reject_class = "unreadable"
            self._conflict(path, "unreadable")
            return
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            self._plan.dropped.append(path)
        elif is_whiteout(ours.status):
            self._plan.entries += 1
            self._deletion(ours.name, read, head, path)
        elif stat.S_ISDIR(mode):
            self._plan.entries += 1
            self._folder(ours, read, head, path, depth)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            self._plan.entries += 1
            self._plan.size += ours.status.st_size if stat.S_ISREG(mode) else 0
            self._file(ours, _find(read, ours.name), _find(head, ours.name), path, (read, head))
        else:
            self._plan.reject_class = "special_file"

    def _conflict(self, path: str, reason: str) -> None:
        self._plan.conflicts.append((path, reason))

    def _removable(self, read: Folder | None, head: Folder | None, name: str) -> bool:
        """Whether what we remove is nothing that others made or changed."""
        return not self._moved or nothing_new(read, head, name)

    def _untouched(self, read: Folder | None, head: Folder | None, name: str) -> bool:
        return not self._moved or same_tree(read, head, name)

    # -- deletions ----------------------------------------------------------------------------------------------

    def _deletion(self, name: str, read: Folder | None, head: Folder | None, path: str) -> None:
        if _find(head, name) is None:
            return
        self._plan.effective = True
        if not self._removable(read, head, name):
            self._conflict(path, "deleted")

    # -- files and links ----------------------------------------------------------------------------------------

    def _file(
        self, ours: Found, was: Found | None, now: Found | None, path: str, views: tuple[Folder | None, Folder | None]
    ) -> None:
        if self._untouched(*views, ours.name):
            if now is None or not identical(ours, now):
                self._plan.effective = True
        elif now is not None and not now.is_folder and same(ours, now):
            return
        elif was is not None and not was.is_folder and same(ours, was):
            self._plan.withdrawn.add(path)
            self._plan.entries -= 1
            self._plan.size -= ours.status.st_size
        elif was is None or now is None:
            self._conflict(path, "added" if was is None else "deleted")
        elif not all(stat.S_ISREG(each.status.st_mode) for each in (ours, was, now)):
            self._conflict(path, "kind")
        else:
            self._merge(ours, was, now, path)

    def _merge(self, ours: Found, was: Found, now: Found, path: str) -> None:
        mode = three_way(*(stat.S_IMODE(each.status.st_mode) for each in (was, ours, now)))
        if mode is None:
            self._conflict(path, "mode")
            return
        self._plan.effective = True
        if not same_content(ours, now):
            content = _merged(was, ours, now)
            if content is None:
                self._conflict(path, "content")
                return
            self._plan.merged[path] = content
        if mode != stat.S_IMODE(ours.status.st_mode):
            self._plan.modes[path] = mode

    # -- folders ------------------------------------------------------------------------------------------------

    def _folder(self, ours: Found, read: Folder | None, head: Folder | None, path: str, depth: int) -> None:
        inner = open_folder(ours.folder, ours.name)
        was = read.enter(ours.name) if read is not None else None
        now = head.enter(ours.name) if head is not None else None
        try:
            if is_opaque(inner) and was is not None:
                # Deleted and made again: nothing of what was below it is left.
                self._replaced(ours.name, read, head, path, "deleted")
                self._plan.opaque.add(path)
                self.folder(inner, None, None, path, depth + 1)
            elif was is None and _find(read, ours.name) is not None:
                self._replaced(ours.name, read, head, path, "kind")
                self.folder(inner, None, None, path, depth + 1)
            elif was is not None and _find(head, ours.name) is None and only_opened(inner, was, depth):
                # It is here because something in it was opened for writing; others deleted it.
                self._plan.withdrawn.add(path)
                self._plan.entries -= 1
            elif now is None and (was is not None or _find(head, ours.name) is not None):
                self._conflict(path, "deleted" if was is not None else "kind")
            else:
                self._both(ours, was, now, path)
                self.folder(inner, was, now, path, depth + 1)
        finally:
            os.close(inner)
            for each in (was, now):
                if each is not None:
                    each.close()

    def _replaced(self, name: str, read: Folder | None, head: Folder | None, path: str, reason: str) -> None:
        self._plan.effective = True
        if _find(head, name) is None or not self._removable(read, head, name):
            self._conflict(path, reason)

    def _both(self, ours: Found, was: Folder | None, now: Folder | None, path: str) -> None:
        if now is None:
            self._plan.effective = True
            return
        mine, theirs = stat.S_IMODE(ours.status.st_mode), _mode(now)
        mode = three_way(_mode(was), mine, theirs) if was is not None else mine
        if mode is None:
            self._conflict(path, "mode")
            return
        if mode != mine:
            self._plan.modes[path] = mode
        if mode != theirs or attributes(ours.folder, ours.name) != _attributes(now):
            self._plan.effective = True


def only_opened(folder: int, was: Folder, depth: int) -> bool:
    """Whether an open folder of a session shows nothing that differs from what it has read there."""
    facts = os.fstat(folder)
    if depth > MAX_DEPTH or is_opaque(folder) or stat.S_IMODE(facts.st_mode) != _mode(was):
        return False
    if attributes(folder, ".") != _attributes(was):
        return False
    for name in names(folder):
        ours = Found(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))
        read = was.find(name)
        if read is None or is_whiteout(ours.status) or ours.is_folder != read.is_folder:
            return False
        if not (_only_opened_below(ours, was, depth) if ours.is_folder else same(ours, read)):
            return False
    return True


def _only_opened_below(ours: Found, was: Folder, depth: int) -> bool:
    below = was.enter(ours.name)
    if below is None:
        return False
    with below:
        inner = open_folder(ours.folder, ours.name)
        try:
            return only_opened(inner, below, depth + 1)
        finally:
            os.close(inner)


def _readable(found: Found) -> bool:
    """Whether we can read it: where the host has no right beyond its id, a mode of 000 holds for it as well."""
    mode = found.status.st_mode
    needed = 0o500 if stat.S_ISDIR(mode) else 0o400
    if mode & needed == needed or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return True
    right = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
    return os.access(found.name, right, dir_fd=found.folder, effective_ids=True)


def three_way(was: int, ours: int, theirs: int) -> int | None:
    """Return the value that keeps the change of whoever made one; None where both made different ones."""
    if ours in (was, theirs):
        return theirs
    return ours if theirs == was else None


def _mode(folder: Folder) -> int:
    return stat.S_IMODE(os.fstat(folder.fds[0]).st_mode)


def _attributes(folder: Folder) -> dict[str, bytes]:
    return attributes(folder.fds[0], ".")


def _find(folder: Folder | None, name: str) -> Found | None:
    return folder.find(name) if folder is not None else None


def _merged(was: Found, ours: Found, now: Found) -> bytes | None:
    if max(each.status.st_size for each in (was, ours, now)) > TEXT_BYTES:
        return None
    return merge_text(*(_content(each) for each in (was, ours, now)))


def _content(found: Found) -> bytes:
    file = os.open(found.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=found.folder)
    with os.fdopen(file, "rb") as stream:
        return stream.read(TEXT_BYTES + 1)
