"""The end of a container's lifetime, and what its control group tells."""

from __future__ import annotations

import datetime
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

_EARLIEST_S: Final = 0.001
_KILLS: Final = "oom_kill"
_MEMORY: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class Lifetime:
    """Ends this process at a deadline by SIGTERM, for which it has a handler. Nobody outside needs to live for that."""

    def __init__(self, deadline: float, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.deadline = deadline
        signal.signal(signal.SIGALRM, _end)
        if deadline:
            self._arm(deadline - clock())

    def renew(self, lifetime_s: int) -> None:
        """Live so long from now."""
        self.deadline = self._clock() + lifetime_s
        self._arm(lifetime_s)

    def facts(self) -> Mapping[str, object]:
        """Tell the deadline."""
        end = datetime.datetime.fromtimestamp(self.deadline, datetime.UTC).isoformat() if self.deadline else None
        return {"deadline": end}

    def _arm(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, _EARLIEST_S))


def _end(_number: int, _frame: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def memory_kills() -> int:
    """How many processes of this container the kernel has killed for memory, as far as its control group tells."""
    for path in _MEMORY:
        try:
            with open(path, encoding="ascii") as stream:
                words = stream.read().split()
            return int(words[words.index(_KILLS) + 1])
        except (OSError, ValueError, IndexError):
            continue
    return 0
