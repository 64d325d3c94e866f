"""Everything that ends the server, and the promise that it ends in time.

Source: faults M3 and M4; decision D27; the seed's "session end destroys every sandbox".
"""

import logging
import os
import signal
import threading

import anyio
import anyio.abc

# A session has 4 s to destroy what it owns; with the last answers (0.5 s) that stays below 5.
MAX_ENDING_S = 4.3
_PARENT_POLL_S = 1.0

logger = logging.getLogger(__name__)


class Ending:
    """Set once, by whichever reason comes first; from then on the process has a deadline."""

    def __init__(self, *, max_ending_s: float = MAX_ENDING_S) -> None:
        self._begun = anyio.Event()
        self._max_ending_s = max_ending_s

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    def begin(self, reason: str) -> None:
        """Start to end. Cleaning up that hangs is cut off by the end of the process."""
        if self._begun.is_set():
            return
        logger.info("ending", extra={"reason": reason})
        cut_off = threading.Timer(self._max_ending_s, _cut_off)
        cut_off.daemon = True
        cut_off.start()
        self._begun.set()

    async def wait(self) -> None:
        await self._begun.wait()


def _cut_off() -> None:
    # A stuck thread keeps the interpreter alive after main() has returned, so a plain exit is not enough.
    os.write(2, b"cloche: cleaning up did not finish in time; sandboxes end at their own deadline\n")
    os._exit(1)


async def end_on_signal(ending: Ending, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """SIGTERM and SIGINT always; SIGHUP unless the process was started to ignore it (nohup).

    One that was held back while the server started arrives now.
    """
    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*wanted) as received:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
        task_status.started()
        async for number in received:
            ending.begin(number.name)


async def end_with_parent(ending: Ending, parent_pid: int) -> None:
    """A killed client may leave stdin open in a sibling process: then only this check notices."""
    while os.getppid() == parent_pid:  # noqa: ASYNC110 - the kernel has no event for it that works on every system
        await anyio.sleep(_PARENT_POLL_S)
    ending.begin("the parent process is gone")
