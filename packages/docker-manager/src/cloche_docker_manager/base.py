"""The shared base: one read-only copy of a workspace, by its content, for every sandbox that is made of it.

It is made once: whoever comes while it is made waits, and whoever comes later finds it, without reading a file when
nothing has changed. Blocks; call it in a worker thread.

Source: checklist 241, 246, 251, 252; systems 5.5.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cloche_contract.errors import BackendUnavailable, BaseUnusable

from .prune import remove_folder
from .registry import write_atomically
from .workspace_tree import OPEN_FOLDER, Entry, entries_of, open_below, open_workspace, signature, told

_CHUNK = 1 << 20
_ATTEMPTS = 3
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What overlay file systems keep for themselves must not come out of a workspace.
_FOREIGN_ATTRIBUTE = "user.overlay."


@dataclass(frozen=True)
class BuiltBase:
    """A base on this machine."""

    folder: Path
    root_hash: str


def ensure_base(cache_dir: Path, workspace: str) -> BuiltBase:
    """Find the base of a workspace as it is now, or make it.

    Raises:
        WorkspaceNotFound: the workspace is not there, or cannot be read.
        BaseUnusable: something in it cannot be copied, or it changes all the time.
        BackendUnavailable: the cache directory cannot be used.
    """
    bases = cache_dir / "bases"
    root = open_workspace(workspace)
    try:
        with _one_at_a_time(bases, workspace) as index:
            for _ in range(_ATTEMPTS):
                entries = list(entries_of(root))
                found = _known(index, bases, signature(entries)) or _copied(bases, index, root, entries)
                if found is not None:
                    return found
    finally:
        os.close(root)
    raise BaseUnusable(reason="changing")


@contextmanager
def _one_at_a_time(bases: Path, workspace: str) -> Generator[Path]:
    """Hold the lock of a workspace; yields the file that remembers its base."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    try:
        bases.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(bases / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as exc:
        raise BackendUnavailable(cause="docker_state_unusable") from exc
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield bases / f".{name}.json"
    finally:
        os.close(fd)


def _known(index: Path, bases: Path, now: str) -> BuiltBase | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = cast("dict[str, str]", json.loads(index.read_bytes()))
        folder = bases / said["root_hash"].removeprefix("sha256:") / "rootfs"
        if said["signature"] == now and folder.is_dir():
            return BuiltBase(folder, said["root_hash"])
    return None


def _copied(bases: Path, index: Path, root: int, entries: list[Entry]) -> BuiltBase | None:
    """Copy, and put the copy in its place; None where something changed meanwhile."""
    draft = bases / f".building-{secrets.token_hex(8)}"
    try:
        with told():
            (draft / "rootfs").mkdir(mode=0o755, parents=True)
            target = os.open(draft / "rootfs", OPEN_FOLDER)
            try:
                root_hash = _copy(root, target, entries)
                _sync(target)
            finally:
                os.close(target)
        after = list(entries_of(root))
        if signature(after) != signature(entries):
            return None
        folder = _placed(draft, bases / root_hash.removeprefix("sha256:"))
    finally:
        if draft.exists():
            remove_folder(draft)
    write_atomically(index, json.dumps({"signature": signature(after), "root_hash": root_hash}).encode())
    return BuiltBase(folder, root_hash)


def _placed(draft: Path, place: Path) -> Path:
    """Rename into place; where another workspace of the same content was first, its copy is the base."""
    with suppress(OSError):
        draft.rename(place)
    if not (place / "rootfs").is_dir():
        raise BackendUnavailable(cause="docker_state_unusable")
    return place / "rootfs"


def _copy(source: int, target: int, entries: list[Entry]) -> str:
    """Copy every entry with its mode, times and attributes; return the hash of what was copied."""
    digest = hashlib.sha256()
    for entry in sorted(entries, key=lambda one: one.path):
        head, tail = os.path.split(entry.path)
        with open_below(source, head) as from_fd, open_below(target, head) as to_fd:
            content = _copy_one(from_fd, to_fd, tail, entry)
        digest.update(entry.path + b"\0" + f"{entry.facts.st_mode:o}".encode() + b"\0" + content + b"\n")
    # Innermost first: a folder's time changes with what is put into it.
    for entry in sorted(entries, key=lambda one: one.path, reverse=True):
        if entry.kind == stat.S_IFDIR:
            with open_below(target, entry.path) as fd:
                _settle(fd, entry)
    return f"sha256:{digest.hexdigest()}"


def _copy_one(from_fd: int, to_fd: int, name: bytes, entry: Entry) -> bytes:
    match entry.kind:
        case stat.S_IFDIR:
            os.mkdir(name, 0o700, dir_fd=to_fd)
            return b""
        case stat.S_IFLNK:
            link = os.readlink(name, dir_fd=from_fd)
            os.symlink(link, name, dir_fd=to_fd)
            times = (entry.facts.st_atime_ns, entry.facts.st_mtime_ns)
            os.utime(name, ns=times, dir_fd=to_fd, follow_symlinks=False)
            return link
        case _:
            return _copy_file(from_fd, to_fd, name, entry)


def _copy_file(from_fd: int, to_fd: int, name: bytes, entry: Entry) -> bytes:
    # Not blocking: what was a file a moment ago may be a pipe now.
    reading = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=from_fd)
    try:
        if _identity(os.fstat(reading)) != _identity(entry.facts):
            raise BaseUnusable(reason="changing")
        writing = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=to_fd
        )
        try:
            content = _pour(reading, writing, entry)
            _copy_attributes(reading, writing)
            _settle(writing, entry)
        finally:
            os.close(writing)
        if _identity(os.fstat(reading)) != _identity(entry.facts):
            raise BaseUnusable(reason="changing")
    finally:
        os.close(reading)
    return content


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino


def _pour(reading: int, writing: int, entry: Entry) -> bytes:
    """Copy the content, holes as holes; return its hash."""
    digest = hashlib.sha256()
    sparse = entry.facts.st_blocks * 512 < entry.facts.st_size
    while chunk := os.read(reading, _CHUNK):
        digest.update(chunk)
        if sparse and not chunk.strip(b"\0"):
            os.lseek(writing, len(chunk), os.SEEK_CUR)
            continue
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(writing, rest) :]
    if sparse:
        os.ftruncate(writing, entry.facts.st_size)
    return digest.digest()


def _copy_attributes(reading: int, writing: int) -> None:
    with suppress(OSError):
        for name in os.listxattr(reading):
            if name.startswith("user.") and not name.startswith(_FOREIGN_ATTRIBUTE):
                os.setxattr(writing, name, os.getxattr(reading, name))


def _settle(fd: int, entry: Entry) -> None:
    os.fchmod(fd, stat.S_IMODE(entry.facts.st_mode))
    os.utime(fd, ns=(entry.facts.st_atime_ns, entry.facts.st_mtime_ns))


def _sync(folder: int) -> None:
    """Bring the whole copy to the disk at once, before it can be found (syncfs(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(folder) != 0:
        raise OSError(ctypes.get_errno(), "syncfs")
