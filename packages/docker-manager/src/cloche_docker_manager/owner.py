"""Who is at work on a record: a process, told from whoever has its number later.

Source: faults L7, L9.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """A process of this machine, by number and start."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return _start_of(self.pid) == self.started


def this_process() -> Owner:
    return Owner(os.getpid(), _start_of(os.getpid()))


def _start_of(pid: int) -> str:
    """When the process started, in words that no other process of this number has; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie does nothing any more.
    return "" if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"
