"""Which limit a sandbox is at just now. The kernel refuses and counts nothing, so a failure is explained by looking."""

import os
from contextlib import suppress

from cloche_local.spec import Limits

# What failed may have let go of some already.
_NEARLY = 0.9
_ROOM_BYTES = 1 << 16


def limit_met(limits: Limits) -> str | None:
    """The stop reason `disk_full` or `pids_limit`, or None. Asked by the keeper, inside the sandbox's root."""
    facts = os.statvfs("/")
    if facts.f_bavail * facts.f_frsize < _ROOM_BYTES or facts.f_favail == 0:
        return "disk_full"
    # Not against the sum that the kernel holds: in that are the keeper and, for a moment, what is left of the sandbox
    # that had the same ids before, and /proc inside shows neither.
    if count_tasks() >= limits.pids * _NEARLY:
        return "pids_limit"
    return None


def count_tasks() -> int:
    """Processes and threads inside, as its /proc shows them: all of them count for the limit."""
    tasks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # Field 20; the name before it may hold anything.
                tasks += int(file.read().rpartition(b")")[2].split()[17])
    return tasks
