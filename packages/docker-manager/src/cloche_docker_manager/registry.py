"""The records of sandboxes: one file each, written whole or not at all, shared by every manager of this user.

Every method blocks for no longer than a few file operations.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from cloche_contract.errors import BackendUnavailable, SandboxNotFound, SandboxStateConflict

from .owner import Owner, this_process

logger = logging.getLogger(__name__)

LABEL_MANAGER = "dev.cloche.manager"
LABEL_SANDBOX = "dev.cloche.sandbox"
State = Literal["creating", "ready", "stopping", "stopped", "failed"]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_VERSION = 1


@dataclass(frozen=True)
class Base:
    """The shared copy that a sandbox stands on."""

    source: str
    target: str
    root_hash: str


@dataclass(frozen=True)
class Record:
    """One sandbox. `agent_port` and `interpreter_port` are on 127.0.0.1; `owner` is who creates or destroys it now.

    One with a `lifetime_s` ends by itself: its agent knows when. `end_at` is what the agent was told last by a manager.
    """

    id: str
    workspace_root: str
    image: str
    state: State
    token: str
    owner: Owner | None = None
    agent_port: int | None = None
    interpreter_port: int | None = None
    base: Base | None = None
    template: str | None = None
    started_at: float = 0.0
    lifetime_s: int | None = None
    end_at: float | None = None
    cores: int | None = None
    memory_mb: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def container(self) -> str:
        return f"cloche-{self.id}"

    @property
    def volume(self) -> str:
        return f"cloche-{self.id}-store"

    @property
    def abandoned(self) -> bool:
        """Whether whoever was at work on it is gone."""
        return self.state in ("creating", "stopping") and (self.owner is None or not self.owner.alive)


class Registry:
    """Records below the state directory."""

    def __init__(self, state_dir: Path) -> None:
        """Make the folders.

        Raises:
            BackendUnavailable: they cannot be made or written.
        """
        self._folder = state_dir / "records"
        self._lock = state_dir / "lock"
        with _told():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(state_dir, 0o700)
            self.manager = self._identity(state_dir / "manager")

    def _identity(self, path: Path) -> str:
        """The value of our labels: other managers of the same engine have another one."""
        with self.exclusive():
            if not path.exists():
                write_atomically(path, secrets.token_hex(16).encode())
        return path.read_text(encoding="ascii").strip()

    @property
    def labels(self) -> dict[str, str]:
        """The label of everything that this manager makes in an engine."""
        return {LABEL_MANAGER: self.manager}

    def labels_of(self, record: Record) -> dict[str, str]:
        return {**self.labels, LABEL_SANDBOX: record.id}

    # -- reading --------------------------------------------------------------------------------------------------

    def all(self) -> list[Record]:
        """Every record, by id. A file that holds none is left where it is."""
        found = (self._read(path) for path in sorted(self._folder.glob("*.json")))
        return [record for record in found if record is not None]

    def get(self, sandbox_id: str) -> Record:
        """Return one record.

        Raises:
            SandboxNotFound: there is none.
        """
        record = self._read(self._path(sandbox_id)) if _ID.match(sandbox_id) else None
        if record is None:
            raise SandboxNotFound
        return record

    def knows(self, sandbox_id: str) -> bool:
        """Whether there is a record, even one that cannot be read."""
        return bool(_ID.match(sandbox_id)) and self._path(sandbox_id).exists()

    def _path(self, sandbox_id: str) -> Path:
        return self._folder / f"{sandbox_id}.json"

    def _read(self, path: Path) -> Record | None:
        try:
            data = cast("dict[str, Any]", json.loads(path.read_bytes()))
            return _record(data) if data.pop("version") == _VERSION else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            logger.warning("a record cannot be read", extra={"record": path.stem})
            return None

    # -- writing --------------------------------------------------------------------------------------------------

    def put(self, record: Record) -> None:
        """Write a record in place of what was there.

        Raises:
            BackendUnavailable: the state directory cannot be written; the record is as it was.
        """
        data = {"version": _VERSION, **asdict(record)}
        with _told():
            write_atomically(self._path(record.id), json.dumps(data).encode())

    def take(self, sandbox_id: str, wanted: tuple[State, ...], state: State) -> Record:
        """Put a record into another state, as its owner from now on.

        Raises:
            SandboxNotFound: there is none.
            SandboxStateConflict: it is in none of the wanted states, or somebody who lives is at work on it.
        """
        with self.exclusive():
            record = self.get(sandbox_id)
            if record.state not in wanted and not record.abandoned:
                raise SandboxStateConflict(state=record.state)
            taken = replace(record, state=state, owner=this_process())
            self.put(taken)
        return taken

    def settle(self, record: Record, state: State) -> Record:
        """Write the state that a record is left in, and nobody at work on it."""
        settled = replace(record, state=state, owner=None)
        self.put(settled)
        return settled

    def note_end(self, sandbox_id: str, lifetime_s: int, end_at: float) -> None:
        """Write down when a sandbox ends that is ready.

        Raises:
            SandboxNotFound: there is none.
        """
        with self.exclusive():
            record = self.get(sandbox_id)
            if record.state == "ready":
                self.put(replace(record, lifetime_s=lifetime_s, end_at=end_at))

    def remove(self, sandbox_id: str) -> None:
        with _told(), suppress(FileNotFoundError):
            self._path(sandbox_id).unlink()
            _sync_folder(self._folder)

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Be the only manager of this user that takes a record, or makes something that all of them share."""
        with _told():
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


@contextmanager
def _told() -> Generator[None]:
    """Name what cannot be used where a folder is full, read-only or somebody else's."""
    try:
        yield
    except OSError as exc:
        raise BackendUnavailable(cause="docker_state_unusable") from exc


def _record(data: Mapping[str, Any]) -> Record:
    fields = dict(data)
    fields["owner"] = Owner(**fields["owner"]) if fields["owner"] else None
    fields["base"] = Base(**fields["base"]) if fields["base"] else None
    record = Record(**fields)
    if not _ID.match(record.id):
        raise ValueError("a record with an id that is none")
    return record


def write_atomically(path: Path, data: bytes) -> None:
    """Put a private file in place of another, so that a stop at any moment leaves the old one or the new one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
