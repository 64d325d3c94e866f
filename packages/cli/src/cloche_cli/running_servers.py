"""The servers of this user that `abx mcp start` runs: noted while they run, found by `status`, ended by `stop`.

A note holds a process number with its start time, so that a number which was given to somebody else later is not taken
for the server; transport, address and nothing that is secret. Loading this module loads nothing else: a server starts
quickly.
"""

import json
import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

_KEEP = 256


@dataclass(frozen=True)
class RunningServer:
    """One server.

    Args:
        pid: its process.
        identity: what tells this process from a later one with the same number.
        host: the machine; a home may be shared between several.
        transport: stdio or http.
        url: where clients connect; None on stdio.
        since: when it was started, seconds since 1970.
        parent: the process that started it, in words.
    """

    pid: int
    identity: str
    host: str
    transport: str
    url: str | None
    since: float
    parent: str


def notes_folder(environ: Mapping[str, str], configured: str | None) -> str:
    """Where the notes are."""
    if configured:
        return os.path.abspath(os.path.expanduser(configured))
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "cloche", "mcp", "running")


@contextmanager
def noted(folder: str, transport: str, url: str | None, now: float) -> Generator[None]:
    """Note this process as a server for the duration of the block. A note that cannot be written is done without.

    A signal that would end the process waits from here on until the server listens to it, or the note is gone.
    """
    with _signals_held():
        yield from _noted(folder, transport, url, now)


@contextmanager
def _signals_held() -> Generator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _noted(folder: str, transport: str, url: str | None, now: float) -> Generator[None]:
    pid = os.getpid()
    server = RunningServer(pid, _identity(pid), _host(), transport, url, now, _name_of(os.getppid()))
    path = os.path.join(folder, f"{_host()}-{pid}.json")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(server), file)
    except OSError:
        path = ""
    try:
        yield
    finally:
        if path:
            _forget(path)


def running_servers(folder: str) -> list[RunningServer]:
    """The servers that run, oldest first; notes of those that ended without a word are removed."""
    found: list[RunningServer] = []
    for name in sorted(_names(folder)):
        path = os.path.join(folder, name)
        server = _read(path)
        if server is None or (server.host == _host() and not is_running(server)):
            _forget(path)
        elif server.host == _host():
            found.append(server)
    return sorted(found, key=lambda server: server.since)


def is_running(server: RunningServer) -> bool:
    """Whether the process is there, and is the one that was noted."""
    identity = _identity(server.pid)
    return identity != "" and identity == server.identity


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")][:_KEEP]
    except OSError:
        return []


def _read(path: str) -> RunningServer | None:
    try:
        with open(path, encoding="utf-8") as file:
            return RunningServer(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # somebody else found it stale at the same time


def _host() -> str:
    return os.uname().nodename.replace("/", "_") if hasattr(os, "uname") else "localhost"


def _identity(pid: int) -> str:
    """Start of the machine and start of the process; empty where there is no such process."""
    if not sys.platform.startswith("linux"):
        return _identity_elsewhere(pid)
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name in parentheses may hold anything; proc(5) counts the fields behind it.
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"


def _identity_elsewhere(pid: int) -> str:
    import subprocess

    try:
        told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return told.stdout.strip()


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
