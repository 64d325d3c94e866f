"""One background task: its process, its streams, its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import limits
from .config import KeeperHooks
from .link import LOST
from .output_budget import OutputBudget
from .processes import TOO_MUCH_OUTPUT, Ending, ending_of, explained
from .pumps import OutputPipe
from .spawner import Child, Launch, Spawner
from .task_log import TaskLog
from .workspaces import Session, Workspaces

_LOST = Ending(-1, 0, "sandbox_lost")
_SENT = {"cancelled": "cancelled", "timed_out": "timeout"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task was asked to be. The same again is the same task."""

    launch: Launch
    timeout_s: int
    output_limit: int | None = None


class Task:
    """A command that belongs to the sandbox. `run` is one coroutine from its start to the end of its last process."""

    def __init__(
        self,
        task_id: str,
        wanted: Wanted,
        hooks: KeeperHooks,
        spawner: Spawner,
        secrets: Sequence[bytes],
        on_growth: Callable[[int], None],
    ) -> None:
        self.task_id = task_id
        self.wanted = wanted
        self.state = "running"
        self.ending: Ending | None = None
        self.started_at = 0.0
        self.finished_at: float | None = None
        self.denied: Sequence[Mapping[str, str]] = ()
        self.stdout = TaskLog(secrets, on_growth)
        self.stderr = TaskLog(secrets, on_growth)
        self._hooks = hooks
        self._spawner = spawner
        self._stop = asyncio.Event()
        self._stop_for = "timed_out"
        self._stopped_by = ""
        self._budget = OutputBudget(wanted.output_limit, lambda: self._stop_because("output_limit"))
        self._ended = asyncio.Event()
        self._changed: list[asyncio.Future[None]] = []
        self._outputs: list[OutputPipe] = []
        self._denial_mark = hooks.denial_mark()
        self._workspaces: Workspaces | None = None
        self._session = Session()
        self.published: Mapping[str, object] = {}
        """What became of its changes, where the sandbox has layers."""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.ending is None

    def denials(self) -> Sequence[Mapping[str, str]]:
        """What the network allowlist denied while it ran."""
        return self._hooks.denials_since(self._denial_mark) if self.running else self.denied

    def live_in(self, workspaces: Workspaces, session: Session) -> None:
        """Run in a workspace session of its own, which is published when the task has ended, however it ends."""
        self._workspaces, self._session = workspaces, session

    async def settle(self) -> None:
        """Publish what it wrote."""
        workspaces, self._workspaces = self._workspaces, None
        if workspaces is not None and not self._session.gone:
            self.published = await workspaces.settle(self._session)

    async def start(self, now: float) -> Child:
        """Start its process.

        Raises:
            AgentError: it could not be started.
        """
        user = self.wanted.launch.user
        out, out_child = self._spawner.pipe(user, keeper_reads=True)
        err, err_child = self._spawner.pipe(user, keeper_reads=True)
        try:
            child = await self._spawner.spawn(self._session.place(self.wanted.launch), (out_child, err_child))
        except BaseException:
            os.close(out)
            os.close(err)
            raise
        finally:
            os.close(out_child)
            os.close(err_child)
        self.started_at = now
        self._outputs = [OutputPipe(out, self._taking(self.stdout)), OutputPipe(err, self._taking(self.stderr))]
        return child

    async def run(self, child: Child, clock: Callable[[], float]) -> None:
        """Wait for its end, or end it, then end everything that it started."""
        kills_before = self._hooks.memory_kills()
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((child.exit, stopping), timeout=self.wanted.timeout_s, return_when="FIRST_COMPLETED")
            if not child.exit.done():
                self._stopped_by = self._stop_for
                if self._stopped_by != "output_limit":
                    await self._terminate(child)
        finally:
            stopping.cancel()
        # Asked before the rest of the task is gone, and with it the limit that it was at.
        ended = self._ended_by(child, kills_before) if child.exit.done() else None
        # Also after an end of its own: what a task leaves behind does not outlive it.
        await self._spawner.kill_tree(child)
        # Not awaited itself: an agent that ends would cancel what the link still wants to set.
        await asyncio.wait((child.exit,))
        for output in self._outputs:
            output.drain()
            output.close()
        await self.settle()
        self._finish(ended or self._ended_by(child, kills_before), clock())

    async def cancel(self) -> None:
        """End it, and return when it is over; nothing happens to one that has ended."""
        if self.running:
            self._stop_because("cancelled")
            await self._ended.wait()

    def _stop_because(self, reason: str) -> None:
        if not self._stop.is_set():
            self._stop_for = reason
            self._stop.set()

    def lose(self, now: float) -> None:
        """Its sandbox is lost, and it is with it; what it printed can still be told."""
        if self.running:
            for output in self._outputs:
                output.drain()
            self._finish(_LOST, now)

    async def changed(self, stdout_offset: int, stderr_offset: int, wait_s: float) -> None:
        """Wait until it has ended or has output beyond these offsets, at most so long."""
        try:
            async with asyncio.timeout(wait_s):
                while self.running and self.stdout.size <= stdout_offset and self.stderr.size <= stderr_offset:
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._changed.append(waiter)
                    await waiter
        except TimeoutError:
            return

    async def _terminate(self, child: Child) -> None:
        await self._spawner.signal(child, signal.SIGTERM, group=True)
        await asyncio.wait((child.exit,), timeout=limits.TASK_TERM_GRACE_S)

    def _taking(self, log: TaskLog) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            log.feed(self._budget.take(data))
            self._wake()

        return take

    def _ended_by(self, child: Child, kills_before: int) -> Ending:
        status = child.exit.result()
        if status == LOST:
            return _LOST
        return explained(ending_of(status, self._hooks.memory_kills() > kills_before), self._hooks.limit_met)

    def _finish(self, ended: Ending, now: float) -> None:
        if not self.running:
            return
        self.stdout.finish()
        self.stderr.finish()
        self.denied = tuple(self._hooks.denials_since(self._denial_mark))
        self.finished_at = now
        if ended.stop_reason == "sandbox_lost":
            self.ending, self.state = ended, "unknown"
        elif self._budget.spent and self._stopped_by in ("", "output_limit"):
            # Also where its last words were too many: whether we or its own end came first says nothing.
            self.ending, self.state = TOO_MUCH_OUTPUT, "failed"
        else:
            reason = _SENT.get(self._stopped_by, ended.stop_reason)
            self.ending = Ending(ended.exit_code, ended.signal, reason)
            self.state = self._stopped_by or ("succeeded" if ended.exit_code == 0 else "failed")
        self._ended.set()
        self._wake()

    def _wake(self) -> None:
        for waiter in self._changed:
            if not waiter.done():
                waiter.set_result(None)
        self._changed.clear()
