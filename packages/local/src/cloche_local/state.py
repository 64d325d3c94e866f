"""What a sandbox leaves on the host's disk, and how another process of the same user finds it.

`STATE/ID/` holds record.json (written once), deadline (one line, rewritten in place, empty until the sandbox runs),
token, log, and lock, which the keeper holds as long as it lives. A folder whose lock can be taken is a dead sandbox.
Standard library only: the zygote cleans up with it.
"""

import errno
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

from cloche_local import journal

# A folder is made under a name with this prefix and renamed once its lock is held.
NEW_PREFIX = ".new-"
RECORD_VERSION = 1
"""Of what a record holds. A reader of another version serves a record only if it can read all of it."""
_ABANDONED_S = 60.0
KEPT_LOGS = 400
MOST_LOGS = 500
# What the agent of a record without it speaks.
_FIRST_PROTOCOL = "1"

RecordProblem = Literal["newer", "older", "damaged"]
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


class Unreadable(Exception):
    """A sandbox lives, and this version cannot tell what it is."""

    def __init__(self, problem: RecordProblem) -> None:
        super().__init__(problem)
        self.problem: RecordProblem = problem


@dataclass(frozen=True, slots=True)
class Record:
    """One live sandbox, as its folder tells."""

    sandbox_id: str
    template: str
    metadata: Mapping[str, str]
    started_at: float
    end_at: float
    expired: bool
    keeper_pid: int
    keeper_start: int
    init_pid: int
    runtime_folder: str
    socket_name: str
    pids: int
    disk_mb: int
    memory_mb: int | None
    cpus: int | None
    users: str
    binds: tuple[str, ...]
    namespaces: tuple[str, ...]
    idempotency: str
    has_egress: bool
    skeleton: str
    """Name of the template's folder that it stands on; empty where the record does not tell."""
    agent_protocol: str
    port: int | None = None
    """The port of its listener; None where it has none."""

    @property
    def socket_path(self) -> str:
        """The agent's socket on the host."""
        return f"{self.runtime_folder}/{self.socket_name}"


def is_sandbox_id(name: str) -> bool:
    """Whether `name` may name a folder of ours; anything else never reaches the file system."""
    return 0 < len(name) <= 64 and _ID_CHARACTERS.issuperset(name)


class StateFolder:
    """The folder of all sandboxes of this user."""

    def __init__(self, path: str) -> None:
        self.path = path

    def ensure(self) -> None:
        """Make the folder, readable by nobody else.

        Raises:
            OSError: it cannot be made, or it is not ours alone.
        """
        os.makedirs(self.path, 0o700, exist_ok=True)
        facts = os.stat(self.path)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "the state folder belongs to others or is writable by them")
        os.makedirs(self.staging, 0o700, exist_ok=True)
        os.makedirs(f"{self.path}/{journal.FOLDER}", 0o700, exist_ok=True)
        os.close(os.open(self.keys_lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))

    @property
    def staging(self) -> str:
        """An empty folder that each sandbox covers in its own mount namespace."""
        return f"{self.path}/.mnt"

    @property
    def keys_lock(self) -> str:
        """The file whose lock is held while a create with an idempotency key looks and makes."""
        return f"{self.path}/.keys"

    def folder(self, sandbox_id: str) -> str:
        """The folder of one sandbox. The id must be one (`is_sandbox_id`)."""
        if not is_sandbox_id(sandbox_id):
            raise ValueError("not a sandbox id")
        return f"{self.path}/{sandbox_id}"

    def is_alive(self, sandbox_id: str) -> bool:
        """Whether a keeper holds the sandbox's lock, whatever its record says."""
        # Looked for first: a machine without such locks has no such folder either, and says so without them.
        if not is_sandbox_id(sandbox_id) or not os.path.isdir(self.folder(sandbox_id)):
            return False
        try:
            return is_locked(f"{self.folder(sandbox_id)}/lock")
        except OSError:
            return False

    def read(self, sandbox_id: str) -> Record | None:
        """The record of a live sandbox; None where there is none.

        Raises:
            Unreadable: one lives, and this version cannot read what it is.
        """
        if not self.is_alive(sandbox_id):
            return None
        folder = self.folder(sandbox_id)
        try:
            if os.stat(f"{folder}/deadline").st_size == 0:
                # In the making.
                return None
            fields = _read_json(f"{folder}/record.json")
            deadline = _read_json(f"{folder}/deadline")
        except FileNotFoundError:
            if not self.is_alive(sandbox_id):
                # It ended while we looked.
                return None
            raise Unreadable("damaged") from None
        except (OSError, ValueError):
            raise Unreadable("damaged") from None
        version = fields.get("version")
        if isinstance(version, int) and version != RECORD_VERSION:
            raise Unreadable("newer" if version > RECORD_VERSION else "older")
        return _record(fields, deadline)

    def read_token(self, sandbox_id: str) -> str:
        """The agent's access token.

        Raises:
            OSError: the sandbox is gone.
        """
        with open(f"{self.folder(sandbox_id)}/token", encoding="ascii") as file:
            return file.read()

    def records(self) -> list[Record]:
        """Every live sandbox that can be read, newest first."""
        return self.look()[0]

    def look(self) -> tuple[list[Record], dict[str, RecordProblem]]:
        """Every live sandbox that can be read, newest first, and why each other one cannot."""
        try:
            names = sorted(os.listdir(self.path))
        except OSError:
            return [], {}
        found: list[Record] = []
        unreadable: dict[str, RecordProblem] = {}
        for name in names:
            try:
                record = self.read(name)
            except Unreadable as told:
                unreadable[name] = told.problem
            else:
                found += [] if record is None else [record]
        return sorted(found, key=lambda record: (record.started_at, record.sandbox_id), reverse=True), unreadable

    def sweep(self) -> list[str]:
        """Remove what dead sandboxes left; returns the ids that were removed."""
        removed: list[str] = []
        with suppress(OSError):
            for name in os.listdir(self.path):
                if is_sandbox_id(name) and self._sweep_one(name):
                    removed.append(name)
                elif name.startswith(NEW_PREFIX):
                    self._sweep_abandoned(f"{self.path}/{name}")
        return removed

    def trim_logs(self) -> None:
        """Keep the newest logs of ended sandboxes: they come and go by the thousand, and nobody may ever prune."""
        folder = f"{self.path}/{journal.FOLDER}"
        with suppress(OSError):
            if len(os.listdir(folder)) <= MOST_LOGS:
                return
            with os.scandir(folder) as entries:
                oldest_first = sorted((entry.stat(follow_symlinks=False).st_mtime, entry.name) for entry in entries)
            for _written, name in oldest_first[:-KEPT_LOGS]:
                if not self.is_alive(journal.id_of(name)):
                    os.unlink(f"{folder}/{name}")

    def _sweep_one(self, sandbox_id: str) -> bool:
        folder = self.folder(sandbox_id)
        with suppress(OSError), try_lock(f"{folder}/lock") as taken:
            if not taken:
                return False
            socket_path = ""
            with suppress(OSError, ValueError, KeyError):
                fields = _read_json(f"{folder}/record.json")
                socket_path = f"{fields['runtime_folder']}/{fields['socket_name']}"
            journal.add_end(journal.path_of(self.path, sandbox_id), "found_dead")
            # Under the lock: a second sweep waits for nothing and finds nothing.
            remove_left(folder, socket_path)
            return True
        return False

    def _sweep_abandoned(self, folder: str) -> None:
        with suppress(OSError):
            if time.time() - os.stat(folder).st_mtime < _ABANDONED_S:
                return
            if not is_locked(f"{folder}/lock", missing=False):
                remove_left(folder, "")


def _record(fields: Mapping[str, Any], deadline: Mapping[str, Any]) -> Record:
    try:
        remaining_s = float(deadline["boot"]) - time.clock_gettime(time.CLOCK_BOOTTIME)
        return Record(
            sandbox_id=str(fields["sandbox_id"]),
            template=str(fields["template"]),
            metadata=cast("Mapping[str, str]", fields["metadata"]),
            started_at=float(fields["started_at"]),
            end_at=float(deadline["wall"]),
            expired=remaining_s <= 0,
            keeper_pid=int(fields["keeper_pid"]),
            keeper_start=int(fields["keeper_start"]),
            init_pid=int(fields["init_pid"]),
            runtime_folder=str(fields["runtime_folder"]),
            socket_name=str(fields["socket_name"]),
            pids=int(fields["pids"]),
            disk_mb=int(fields["disk_mb"]),
            memory_mb=fields["memory_mb"],
            cpus=fields["cpus"],
            users=str(fields["users"]),
            binds=tuple(fields["binds"]),
            namespaces=tuple(fields["namespaces"]),
            idempotency=str(fields["idempotency"]),
            has_egress=fields.get("has_egress") is True,
            skeleton=str(fields.get("skeleton", "")),
            agent_protocol=str(fields.get("agent_protocol", _FIRST_PROTOCOL)),
            port=fields.get("port"),
        )
    except (KeyError, TypeError, ValueError):
        raise Unreadable("damaged") from None


def _read_json(path: str) -> dict[str, Any]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(fd, encoding="utf-8") as file:
        value = json.load(file)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast("dict[str, Any]", value)


def is_locked(path: str, *, missing: bool | None = None) -> bool:
    """Whether a keeper holds this lock.

    Args:
        missing: the answer where there is no such file; None raises FileNotFoundError.
    """
    try:
        # Shared: two processes that look at once do not take each other for a keeper.
        with try_lock(path, exclusive=False) as taken:
            return not taken
    except FileNotFoundError:
        if missing is None:
            raise
        return missing


@contextmanager
def try_lock(path: str, *, exclusive: bool = True) -> Generator[bool]:
    """Hold the lock inside the block, or yield False where another process does."""
    # Opened first: what is not there is not there on a system without such locks, either.
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        import fcntl

        try:
            fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)


def remove_left(folder: str, socket_path: str) -> None:
    """Remove a dead sandbox's folder and socket; nothing happens when another process did."""
    import shutil

    if socket_path:
        with suppress(OSError):
            os.unlink(socket_path)
    shutil.rmtree(folder, ignore_errors=True)


def read_start_time(pid: int | str) -> int:
    """Start time of a process in clock ticks since boot; with the pid it names a process for good.

    Raises:
        OSError: no such process.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; field 22 is counted from behind it.
        return int(file.read().rpartition(b")")[2].split()[19])
