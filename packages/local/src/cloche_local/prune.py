"""Removing what is dead: what ended sandboxes, broken starts and older versions left on the host.

Nothing alive is touched: life is a lock that its keeper holds, checked at the moment of the removal. Nothing that is
not ours is touched: only names that we give, below folders that we made, of this user.
"""

import errno
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cloche_contract.common import LeftoverKind
from cloche_contract.provider import Leftover, PruneRequest, PruneResult
from cloche_local import journal
from cloche_local.imported import IMPORTING_PREFIX
from cloche_local.limits import Group, find_hierarchy, left_groups
from cloche_local.paths import Paths
from cloche_local.state import NEW_PREFIX, StateFolder, is_locked, is_sandbox_id, remove_left, try_lock
from cloche_local.templates import BUILDING_PREFIX, SKELETON_PREFIX
from cloche_local.tree import remove_tree

# What is younger may be in the making.
_YOUNG_S = 60.0
_ORDER: tuple[LeftoverKind, ...] = (
    "sandbox",
    "unfinished",
    "socket",
    "control_group",
    "template",
    "log",
    "old_state",
)


def sweep(state: StateFolder, paths: Paths) -> int:
    """Remove what ended sandboxes left, as every start and list does; returns of how many."""
    removed = state.sweep()
    if paths.cgroup_root:
        hierarchy = find_hierarchy(paths.cgroup_root)
        for sandbox_id in left_groups(hierarchy):
            if not state.is_alive(sandbox_id):
                Group(hierarchy, sandbox_id).remove()
    state.trim_logs()
    return len(removed)


@dataclass(frozen=True, slots=True)
class _Dead:
    """Something that looked dead, and its removal, which looks again.

    The removal returns True when it is gone by it, False when it is in use after all; an OSError says that it stays.
    """

    kind: LeftoverKind
    path: str
    remove: Callable[[], bool]


class Pruner:
    """One look at everything that may be left."""

    def __init__(self, state: StateFolder, paths: Paths, request: PruneRequest) -> None:
        self._state = state
        self._paths = paths
        self._request = request
        self._now = time.time()

    def run(self) -> PruneResult:
        """Remove what is dead, or only tell it."""
        removed: list[Leftover] = []
        failed: list[Leftover] = []
        for dead in sorted(self._find(), key=lambda dead: (_ORDER.index(dead.kind), dead.path)):
            told = Leftover(kind=dead.kind, path=dead.path, size=_size(dead.path))
            if self._request.dry_run:
                removed.append(told)
                continue
            try:
                if dead.remove():
                    removed.append(told)
            except FileNotFoundError:
                pass  # somebody else removed it
            except OSError:
                failed.append(told)
        return PruneResult(removed=removed, failed=failed, size=sum(each.size for each in removed))

    def _find(self) -> Iterator[_Dead]:
        yield from self._folders()
        yield from self._logs()
        yield from self._sockets()
        yield from self._groups()
        yield from self._old_states()

    # -- the state folder -------------------------------------------------------------------------------------------

    def _folders(self) -> Iterator[_Dead]:
        records, unreadable = self._state.look()
        used = {record.skeleton for record in records}
        # A sandbox that does not tell its template may stand on any.
        templates_known = not unreadable and "" not in used
        for name, facts in _entries(self._state.path):
            path = f"{self._state.path}/{name}"
            if name.startswith(IMPORTING_PREFIX) and self._is_old(facts) and _is_free(path):
                yield _Dead("unfinished", path, lambda path=path: _remove_import(path))
            if not stat.S_ISDIR(facts.st_mode):
                continue
            if is_sandbox_id(name):
                if not is_locked(f"{path}/lock", missing=False):
                    yield _Dead("sandbox", path, lambda name=name, path=path: self._remove_sandbox(name, path))
            elif name.startswith((NEW_PREFIX, BUILDING_PREFIX)):
                if self._is_old(facts) and not is_locked(f"{path}/lock", missing=False):
                    yield _Dead("unfinished", path, lambda path=path: _remove_tree(path))
            elif name.startswith(SKELETON_PREFIX) and templates_known and name not in used and _is_free(path):
                yield _Dead("template", path, lambda name=name, path=path: self._remove_skeleton(name, path))

    def _remove_sandbox(self, sandbox_id: str, path: str) -> bool:
        socket_path = f"{self._paths.runtime}/{sandbox_id}"
        if not os.path.lexists(f"{path}/lock"):
            # A folder appears with its lock held, so one without a lock file is half removed.
            return _remove_tree(path)
        with try_lock(f"{path}/lock") as taken:
            if not taken:
                return False
            journal.add_end(journal.path_of(self._state.path, sandbox_id), "found_dead")
            remove_left(path, socket_path)
        return _remove_tree(path)

    def _remove_skeleton(self, name: str, path: str) -> bool:
        """Whoever makes a sandbox holds the folder; whoever lives on it has a record that is read once more."""
        import fcntl

        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            records, unreadable = self._state.look()
            if unreadable or any(record.skeleton in ("", name) for record in records):
                return False
            gone = f"{self._state.path}/{BUILDING_PREFIX}{name}-{os.getpid()}"
            # Renamed while it is held: whoever waits for it finds another folder at its name, and makes a new one.
            os.rename(path, gone)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return _remove_tree(gone)

    def _logs(self) -> Iterator[_Dead]:
        folder = f"{self._state.path}/{journal.FOLDER}"
        for name, facts in _entries(folder):
            sandbox_id = journal.id_of(name)
            age_s = self._now - facts.st_mtime
            if not is_sandbox_id(sandbox_id) or age_s < self._request.logs_older_than:
                continue
            if not self._state.is_alive(sandbox_id) and (age_s > _YOUNG_S or journal.has_ended(_events(folder, name))):
                yield _Dead("log", f"{folder}/{name}", lambda name=name: _remove_file(f"{folder}/{name}"))

    # -- beside it --------------------------------------------------------------------------------------------------

    def _sockets(self) -> Iterator[_Dead]:
        """Sockets that nobody listens on. The folder may be shared with other state folders, so each is tried."""
        for name, facts in _entries(self._paths.runtime):
            path = f"{self._paths.runtime}/{name}"
            if not is_sandbox_id(name) or not stat.S_ISSOCK(facts.st_mode) or not self._is_old(facts):
                continue
            if not self._state.is_alive(name) and _is_refused(path):
                yield _Dead("socket", path, lambda path=path: _is_refused(path) and _remove_file(path))

    def _groups(self) -> Iterator[_Dead]:
        if not self._paths.cgroup_root:
            return
        hierarchy = find_hierarchy(self._paths.cgroup_root)
        for sandbox_id in left_groups(hierarchy):
            if self._state.is_alive(sandbox_id):
                continue
            for folder in Group(hierarchy, sandbox_id).folders():
                # One with a process in it belongs to a sandbox of another state folder; the kernel keeps it as well.
                if not _text(f"{folder}/cgroup.procs").strip():
                    yield _Dead("control_group", folder, lambda folder=folder: _remove_group(folder))

    def _old_states(self) -> Iterator[_Dead]:
        """State folders of versions before this one, once nothing in them is alive."""
        ours = Path(self._state.path)
        number = _version(ours.name)
        if number is None:
            return
        for name, facts in _entries(str(ours.parent)):
            found = _version(name)
            if found is None or found >= number or not stat.S_ISDIR(facts.st_mode):
                continue
            path = str(ours.parent / name)
            if not _holds_life(path):
                yield _Dead("old_state", path, lambda path=path: not _holds_life(path) and _remove_tree(path))

    def _is_old(self, facts: os.stat_result) -> bool:
        return self._now - facts.st_mtime > _YOUNG_S


def _entries(folder: str) -> list[tuple[str, os.stat_result]]:
    """Names in the folder that are this user's, and what they are. No link is followed."""
    found: list[tuple[str, os.stat_result]] = []
    if not hasattr(os, "geteuid"):
        return found
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                if facts.st_uid == os.geteuid():
                    found.append((entry.name, facts))
    return found


def _size(path: str) -> int:
    """Bytes on the disk, without following links."""
    total = 0
    with suppress(OSError):
        facts = os.lstat(path)
        total = facts.st_blocks * 512
        if stat.S_ISDIR(facts.st_mode):
            total += sum(_size(entry.path) for entry in os.scandir(path))
    return total


def _remove_tree(path: str) -> bool:
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    return True


def _remove_import(path: str) -> bool:
    if not _is_free(path):
        return False
    if os.path.isdir(path):
        remove_tree(path)
    else:
        os.unlink(path)
    return True


def _remove_file(path: str) -> bool:
    os.unlink(path)
    return True


def _remove_group(folder: str) -> bool:
    os.rmdir(folder)
    return True


def _events(folder: str, name: str) -> list[dict[str, object]]:
    return [dict(event) for event in journal.read(f"{folder}/{name}") or []]


def _is_free(path: str) -> bool:
    """Whether no process holds the folder of a template."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def _is_refused(path: str) -> bool:
    """Whether nobody listens on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        folder_fd = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return probe.connect_ex(f"/proc/self/fd/{folder_fd}/{os.path.basename(path)}") == errno.ECONNREFUSED
        finally:
            os.close(folder_fd)


def _holds_life(path: str) -> bool:
    return any(is_locked(f"{path}/{name}/lock", missing=False) for name, _facts in _entries(path))


def _version(name: str) -> int | None:
    digits = name.removeprefix("v")
    return int(digits) if name.startswith("v") and digits.isascii() and digits.isdigit() else None


def _text(path: str) -> str:
    with suppress(OSError), open(path, encoding="ascii") as file:
        return file.read()
    return "unknown"
