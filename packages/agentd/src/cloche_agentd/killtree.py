"""Find and kill everything that one command or interpreter started, daemons included. Runs in init."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from . import limits

MARKER: Final = "CLOCHE_TASK"
"""Environment variable that tells which command a process belongs to, whatever its parent and session are."""

_ENVIRON_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One process of /proc."""

    pid: int
    state: str
    ppid: int
    pgid: int
    sid: int
    start_ticks: int


def read_table() -> dict[int, Row]:
    """Return the processes that we can see. Zombies are left out: they run nothing."""
    rows: dict[int, Row] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            row = _read_row(name)
            if row is not None and row.state not in "ZX":
                rows[row.pid] = row
    return rows


def _read_row(name: str) -> Row | None:
    try:
        raw = _read(f"/proc/{name}/stat", 4096)
    except OSError:
        return None
    # The program name may hold spaces and brackets; the fields start after the last one.
    fields = raw[raw.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    numbers = [int(fields[index]) for index in (1, 2, 3, 19)]
    return Row(int(name), fields[0].decode(), *numbers)


def _read(path: str, size: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def _has_marker(pid: int, entry: bytes) -> bool:
    try:
        environ = _read(f"/proc/{pid}/environ", _ENVIRON_BYTES)
    except OSError:
        return False
    return b"\0" + entry + b"\0" in b"\0" + environ + b"\0"


@dataclass(frozen=True, slots=True)
class Tree:
    """What belongs together: everything below or in the session of `leader`, and everything with the marker."""

    leader: int
    marker: str | None
    spare: frozenset[int]
    since_ticks: int = 0

    def members(self, table: dict[int, Row]) -> set[int]:
        """Return the pids of the tree in this table."""
        found = {row.pid for row in table.values() if self.leader in (row.pid, row.sid, row.pgid)}
        if self.marker is not None:
            entry = f"{MARKER}={self.marker}".encode()
            found.update(pid for pid in table if pid not in found and _has_marker(pid, entry))
        found -= self.spare
        children: dict[int, list[int]] = {}
        for row in table.values():
            children.setdefault(row.ppid, []).append(row.pid)
        pending = [*found, self.leader]
        while pending:
            for child in children.get(pending.pop(), ()):
                if child not in found and child not in self.spare:
                    found.add(child)
                    pending.append(child)
        return {pid for pid in found if table[pid].start_ticks >= self.since_ticks}


def kill_tree(tree: Tree, reap: Callable[[], None]) -> int:
    """Kill the tree and wait until it is gone; return how many processes are left (0 unless unkillable).

    First everything is stopped, again and again until no new member appears: a process that forks while it is
    looked for would otherwise leave a child behind.
    """
    stopped: set[int] = set()
    started = time.monotonic()
    while time.monotonic() < started + limits.KILL_STOP_S:
        fresh = tree.members(read_table()) - stopped
        if not fresh:
            break
        _signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    left: set[int] = stopped
    started = time.monotonic()
    while time.monotonic() < started + limits.KILL_WAIT_S:
        _signal_all(left, signal.SIGKILL)
        reap()
        left = tree.members(read_table())
        if not left:
            return 0
        time.sleep(limits.KILL_ROUND_PAUSE_S)
    return len(left)


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def everything_below(pid: int, spare: frozenset[int]) -> Tree:
    """Return the tree of all descendants of `pid`, without itself."""
    return Tree(pid, None, spare | {pid})
