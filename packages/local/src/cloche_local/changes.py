"""What a live sandbox changed: its root as programs see it, compared with the template below it.

Runs in the keeper, in small slices between requests. The tree belongs to user code that goes on working: each name is
opened below a folder that is already open, no link is followed, no mount is entered, and what is kept is bounded. It
reads no mark of overlayfs: whatever the kernel writes for a deletion, a replaced folder or a copy, the root shows what
holds. Standard library only. Source: openat2(2).
"""

import asyncio
import base64
import binascii
import errno
import json
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from cloche_local import syscalls as sys_

# Requests of clients wait for a slice.
_SLICE_S = 0.002
_MAX_DEPTH = 256
_MAX_NAMES = 50_000
_MAX_HELD = 100_000
_MAX_LOOKED_AT = 1_000_000
_LONGEST_S = 20.0
# Equal sizes up to this are compared byte by byte; beyond it a file that was written counts as changed.
_COMPARED_BYTES = 1 << 20
_PAGE_BYTES = 512 << 10
_TREES = (b"/", b"/dev/shm")
_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "symlink"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)

Key = tuple[int, tuple[bytes, ...]]


class BadCursor(ValueError):
    """The cursor is not one that a page of changes gave."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One entry of a folder, as the kernel tells it."""

    kind: str
    mode: int
    owner: tuple[int, int]
    size: int
    written: tuple[int, int]
    identity: tuple[int, int]
    links: int
    target: bytes | None

    @property
    def is_folder(self) -> bool:
        return self.kind == "directory"


@dataclass(slots=True)
class Page:
    """A part of the changes, and the sums of all of them."""

    limit: int
    after: Key | None
    entries: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    counts: dict[str, int] = field(default_factory=lambda: {"added": 0, "modified": 0, "deleted": 0})
    added_bytes: int = 0
    last: Key | None = None
    has_more: bool = False
    incomplete: set[str] = field(default_factory=set[str])
    _bytes: int = 0

    def add(self, key: Key, change: str, entry: dict[str, object]) -> None:
        """Count a change, and keep it where it belongs on this page."""
        self.counts[change] += 1
        if self.after is not None and key <= self.after:
            return
        if len(self.entries) >= self.limit or self._bytes > _PAGE_BYTES:
            self.has_more = True
            return
        entry = {"change": change, **entry}
        self.entries.append(entry)
        # As it will be written: a name of control characters takes six times its bytes.
        self._bytes += len(json.dumps(entry))
        self.last = key

    def document(self) -> dict[str, object]:
        """The page as the wire carries it."""
        cursor = _write_cursor(self.last) if self.has_more and self.last is not None else None
        return {
            "entries": self.entries,
            "next": cursor,
            **self.counts,
            "added_bytes": self.added_bytes,
            "incomplete": sorted(self.incomplete),
        }


@dataclass(slots=True)
class _Folder:
    """A folder on the way down: its name as it is now, and in the template; -1 where it is not there."""

    path: tuple[bytes, ...]
    now_fd: int
    before_fd: int
    names: Iterator[bytes]
    held: int

    def close(self) -> None:
        for fd in (self.now_fd, self.before_fd):
            if fd >= 0:
                os.close(fd)


class Comparison:
    """One walk over the sandbox's root."""

    def __init__(self, template_fd: int, page: Page) -> None:
        self._template_fd = template_fd
        self._page = page
        self._tree = 0
        self._stack: list[_Folder] = []
        self._held = 0
        self._looked_at = 0
        self._linked: set[tuple[int, int]] = set()

    def steps(self) -> Generator[None]:
        """Compare; yields after each entry. Closing the generator lets go of everything."""
        try:
            for self._tree, tree in enumerate(_TREES):
                self._enter_tree(tree)
                while self._stack:
                    self._next_entry()
                    yield
                    if self._looked_at > _MAX_LOOKED_AT:
                        self._page.incomplete.add("too_many")
                        return
        finally:
            while self._stack:
                self._stack.pop().close()

    def _enter_tree(self, tree: bytes) -> None:
        before_fd = os.dup(self._template_fd) if tree == b"/" else -1
        try:
            now_fd = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            self._page.incomplete.add("unreadable")
            if before_fd >= 0:
                os.close(before_fd)
            return
        if before_fd >= 0:
            self._compare((), _facts(now_fd), _facts(before_fd), None)
        self._push((), now_fd, before_fd)

    def _push(self, path: tuple[bytes, ...], now_fd: int, before_fd: int) -> None:
        names: set[bytes] = set()
        for fd in (now_fd, before_fd):
            if fd >= 0:
                self._list(fd, names)
        self._held += len(names)
        self._stack.append(_Folder(path, now_fd, before_fd, iter(sorted(names)), len(names)))

    def _list(self, fd: int, names: set[bytes]) -> None:
        try:
            reader = sys_.open_beneath(fd, b".", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            self._page.incomplete.add("unreadable")
            return
        try:
            with os.scandir(reader) as entries:
                for entry in entries:
                    if len(names) >= _MAX_NAMES or self._held + len(names) >= _MAX_HELD:
                        self._page.incomplete.add("too_many")
                        return
                    names.add(os.fsencode(entry.name))
        except OSError:
            self._page.incomplete.add("unreadable")
        finally:
            os.close(reader)

    def _next_entry(self) -> None:
        folder = self._stack[-1]
        name = next(folder.names, None)
        if name is None:
            self._held -= folder.held
            self._stack.pop().close()
            return
        self._looked_at += 1
        now_fd = before_fd = -1
        try:
            now_fd = self._open(folder.now_fd, name)
            before_fd = self._open(folder.before_fd, name)
        except OSError:
            # Something is mounted here, which is not the sandbox's to change.
            if now_fd >= 0:
                os.close(now_fd)
            return
        path = (*folder.path, name)
        now = _facts(now_fd) if now_fd >= 0 else None
        before = _facts(before_fd) if before_fd >= 0 else None
        self._compare(path, now, before, folder)
        now_fd = _only_folder(now, now_fd)
        before_fd = _only_folder(before, before_fd)
        if now_fd < 0 and before_fd < 0:
            return
        if len(path) >= _MAX_DEPTH:
            self._page.incomplete.add("too_deep")
            for fd in (now_fd, before_fd):
                if fd >= 0:
                    os.close(fd)
            return
        self._push(path, now_fd, before_fd)

    def _open(self, folder_fd: int, name: bytes) -> int:
        """The entry itself, whatever it is; -1 where there is none (any more).

        Raises:
            OSError: EXDEV, a mount.
        """
        if folder_fd < 0:
            return -1
        try:
            return sys_.open_beneath(folder_fd, name, os.O_PATH | os.O_NOFOLLOW)
        except FileNotFoundError:
            return -1
        except PermissionError:
            self._page.incomplete.add("unreadable")
            raise

    # -- one entry --------------------------------------------------------------------------------------------------

    def _compare(
        self, path: tuple[bytes, ...], now: Facts | None, before: Facts | None, folder: _Folder | None
    ) -> None:
        if now is None:
            if before is not None:
                self._tell(path, "deleted", before, {})
            return
        if before is None:
            self._tell(path, "added", now, {})
            self._count_bytes(now)
            return
        changed = self._differences(now, before, folder, path)
        if not changed:
            return
        self._tell(path, "modified", now, {"changed": changed, "before": _shown(before)})
        if {"content", "kind"} & set(changed):
            self._count_bytes(now)

    def _differences(self, now: Facts, before: Facts, folder: _Folder | None, path: tuple[bytes, ...]) -> list[str]:
        if now.kind != before.kind:
            return ["kind"]
        found: list[str] = []
        if now.kind == "file" and folder is not None and not self._same_content(now, before, folder, path[-1]):
            found.append("content")
        if now.target != before.target:
            found.append("target")
        if now.mode != before.mode and now.kind != "symlink":
            found.append("mode")
        if now.owner != before.owner:
            found.append("owner")
        return found

    def _same_content(self, now: Facts, before: Facts, folder: _Folder, name: bytes) -> bool:
        if now.size != before.size:
            return False
        # The time of an inode's last change cannot be set by programs: equal, it is the template's own file.
        if now.written == before.written:
            return True
        if now.size > _COMPARED_BYTES:
            return False
        try:
            return _content(folder.now_fd, name) == _content(folder.before_fd, name)
        except OSError:
            self._page.incomplete.add("unreadable")
            return False

    def _count_bytes(self, now: Facts) -> None:
        if now.kind != "file":
            return
        if now.links > 1 and len(self._linked) < _MAX_NAMES:
            if now.identity in self._linked:
                return
            self._linked.add(now.identity)
        self._page.added_bytes += now.size

    def _tell(self, path: tuple[bytes, ...], change: str, facts: Facts, more: Mapping[str, object]) -> None:
        prefix = b"" if self._tree == 0 else _TREES[self._tree]
        entry = {**_text("path", prefix + b"/" + b"/".join(path)), **_shown(facts), **more}
        if facts.target is not None:
            entry.update(_text("target", facts.target))
        if change != "deleted" and facts.links > 1 and not facts.is_folder:
            entry["links"] = facts.links
        self._page.add((self._tree, path), change, entry)


def _only_folder(facts: Facts | None, fd: int) -> int:
    """Keep the descriptor of a folder, close any other."""
    if facts is not None and facts.is_folder:
        return fd
    if fd >= 0:
        os.close(fd)
    return -1


def _facts(fd: int) -> Facts:
    found = os.fstat(fd)
    kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "device")
    return Facts(
        kind=kind,
        mode=stat.S_IMODE(found.st_mode),
        owner=(found.st_uid, found.st_gid),
        size=found.st_size if kind == "file" else 0,
        written=(found.st_mtime_ns, found.st_ctime_ns),
        identity=(found.st_dev, found.st_ino),
        links=found.st_nlink,
        target=os.readlink(b"", dir_fd=fd) if kind == "symlink" else None,
    )


def _shown(facts: Facts) -> dict[str, object]:
    uid, gid = facts.owner
    return {"kind": facts.kind, "mode": f"{facts.mode:o}", "size": facts.size, "uid": uid, "gid": gid}


def _content(folder_fd: int, name: bytes) -> bytes:
    """The bytes of a file as it is now. It may have become something else meanwhile, which must not hold us up.

    Raises:
        OSError: it is no file any more, or may not be read.
    """
    reader = sys_.open_beneath(folder_fd, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(reader).st_mode):
            raise FileNotFoundError(errno.ENOENT, "no longer a file")
        return os.pread(reader, _COMPARED_BYTES + 1, 0)
    finally:
        os.close(reader)


def _text(name: str, raw: bytes) -> dict[str, object]:
    """A name as text; with its bytes where text cannot hold them."""
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {name: raw.decode(errors="replace"), f"{name}_base64": base64.b64encode(raw).decode()}


def _write_cursor(key: Key) -> str:
    tree, path = key
    return base64.urlsafe_b64encode(b"%d/" % tree + b"/".join(path)).decode()


def read_cursor(text: str) -> Key | None:
    """The place after which a page begins; None for the first one.

    Raises:
        BadCursor: no page gave it.
    """
    if not text:
        return None
    try:
        tree, _, path = base64.urlsafe_b64decode(text).partition(b"/")
    except (binascii.Error, ValueError):
        raise BadCursor from None
    if tree not in (b"0", b"1"):
        raise BadCursor
    return int(tree), tuple(path.split(b"/")) if path else ()


class Changes:
    """The comparisons of one sandbox, one at a time: each holds memory of the keeper."""

    def __init__(self, template_fd: int, rights: Callable[[], AbstractContextManager[None]]) -> None:
        """Compare with the template behind `template_fd`.

        Args:
            rights: what lets the keeper read folders that user code closed, inside the block.
        """
        self._template_fd = template_fd
        self._rights = rights
        self._one = asyncio.Lock()

    async def page(self, limit: int, cursor: str) -> Mapping[str, object]:
        """One page of what is different now, in the order of the paths.

        Raises:
            BadCursor: no page gave this cursor.
        """
        page = Page(limit, read_cursor(cursor))
        async with self._one:
            deadline = time.monotonic() + _LONGEST_S
            steps = Comparison(self._template_fd, page).steps()
            try:
                while self._slice(steps):
                    if time.monotonic() > deadline:
                        page.incomplete.add("too_slow")
                        break
                    await asyncio.sleep(0)
            finally:
                steps.close()
        return page.document()

    def _slice(self, steps: Generator[None]) -> bool:
        """Compare for a moment; False when there is nothing left."""
        end = time.monotonic() + _SLICE_S
        with self._rights():
            for _step in steps:
                if time.monotonic() > end:
                    return True
        return False
