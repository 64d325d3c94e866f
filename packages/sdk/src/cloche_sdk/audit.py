"""The audit file: one line for each tool call: who, which tool, which sandbox, how it ended, how long it took.

It never holds an argument, a result, a path or a secret.

A file that the operator names is required: a call that cannot be written down is not carried out. The default file is
kept where it can be: what is lost is told once in the log and counted in the next line. Source: ADR 26.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from cloche_contract.errors import AuditUnavailable
from cloche_contract.kernel.doors import Clock
from cloche_contract.kernel.toolset import CallReport

from .config import Settings
from .providers import Doors

__all__ = ["AuditFile", "audit_file", "audit_path", "read_lines"]

logger = logging.getLogger(__name__)

MOST_BYTES = 8 << 20
KEPT_FILES = 4
_OWED_LINES = 1000
OFF = "off"
_WITHOUT_DEFAULT = frozenset({"create_sandbox", "list_sandboxes"})


def audit_path(settings: Settings, environ: Mapping[str, str]) -> tuple[str, bool] | None:
    """Where the audit file is, and whether the operator named it; None where it is switched off."""
    named = settings.text("audit_file")
    if named == OFF:
        return None
    if named is not None:
        return os.path.abspath(os.path.expanduser(named)), True
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "cloche", "audit.jsonl"), False


def audit_file(doors: Doors, principal: str | None, default: Callable[[], str | None]) -> AuditFile | None:
    """The audit file of one session; None where it is switched off.

    Args:
        default: tells the sandbox that calls without an id use.
    """
    found = audit_path(doors.settings, doors.environ)
    if found is None:
        return None
    path, required = found
    user = os.getuid() if hasattr(os, "getuid") else doors.environ.get("USERNAME", "")
    who = f"user:{user}" if principal is None else f"principal:{principal}"
    about = {"who": who, "session": doors.ids.new_id()[:12]}
    return AuditFile(path, doors.clock, required=required, about=about, default=default)


class AuditFile:
    """Tells the calls of one session. Several processes write one file: each line is one append."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        *,
        required: bool,
        about: Mapping[str, str],
        default: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._path = path
        self._clock = clock
        self._required = required
        self._about = about
        self._default = default
        # Lines that a required file still has to take; the calls are over.
        self._owed: deque[bytes] = deque()
        self._lost = 0

    def begin(self) -> None:
        """See that the call can be written down.

        Raises:
            AuditUnavailable: the file is required and takes nothing.
        """
        if not self._required:
            return
        try:
            self._append(self._owed)
        except OSError as error:
            logger.error("audit file takes nothing, calls are refused", extra={"error": error.errno})
            raise AuditUnavailable from None
        self._owed.clear()

    def end(self, report: CallReport) -> None:
        """Write the line of a call that is over. Never fails: the call has happened."""
        line = self._line(report)
        try:
            self._append([*self._owed, line])
        except OSError as error:
            self._keep(line, error)
        else:
            self._owed.clear()
            self._lost = 0

    def _line(self, report: CallReport) -> bytes:
        outcome = "ok" if report.error is None else "cancelled" if report.error == "cancelled" else "error"
        fields: dict[str, object] = {
            "time": self._clock.now().isoformat(timespec="milliseconds"),
            **self._about,
            "tool": report.tool,
            "sandbox": self._sandbox(report),
            "outcome": outcome,
            "error": report.error if outcome == "error" else None,
            "ms": round(report.duration_s * 1000),
        }
        if self._lost:
            fields["lost"] = self._lost
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    def _sandbox(self, report: CallReport) -> str | None:
        if report.sandbox_id is None and report.tool not in _WITHOUT_DEFAULT:
            return self._default()
        return report.sandbox_id or None

    def _keep(self, line: bytes, error: OSError) -> None:
        if self._required and len(self._owed) < _OWED_LINES:
            self._owed.append(line)
            return
        if not self._lost:
            logger.warning("audit file takes nothing, calls are not recorded", extra={"error": error.errno})
        self._lost += 1

    def _append(self, lines: Iterable[bytes]) -> None:
        """Append lines, each in one write.

        Raises:
            OSError: they, or a part of them, could not be written.
        """
        fd = self._open()
        try:
            if os.fstat(fd).st_size > MOST_BYTES:
                fd = self._rotated(fd)
            for line in lines:
                if os.write(fd, line) != len(line):
                    raise OSError(28, "the file took a part of a line")
        finally:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _rotated(self, fd: int) -> int:
        """Move a full file aside, once among all processes, and open the new one."""
        turn = f"{self._path}.turn"
        try:
            os.close(os.open(turn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            # Another process is at it; one that died at it is not waited for.
            with suppress(OSError):
                if self._clock.now().timestamp() - os.stat(turn).st_mtime > 60:
                    os.unlink(turn)
            return fd
        try:
            if os.path.samestat(os.fstat(fd), os.stat(self._path)):
                for number in range(KEPT_FILES - 1, 0, -1):
                    with suppress(FileNotFoundError):
                        os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
                os.replace(self._path, f"{self._path}.1")
            os.close(fd)
            return self._open()
        finally:
            os.unlink(turn)


def read_lines(path: str) -> list[Mapping[str, object]]:
    """Every line that can be read, oldest first, of the file and of those that were moved aside."""
    found: list[Mapping[str, object]] = []
    for name in [*(f"{path}.{number}" for number in range(KEPT_FILES, 0, -1)), path]:
        with suppress(OSError):
            for raw in Path(name).read_bytes().splitlines():
                with suppress(ValueError):
                    line = cast("object", json.loads(raw))
                    if isinstance(line, dict):
                        found.append(cast("Mapping[str, object]", line))
    return found
