"""Commands: their output, their subscribers, their end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from . import connect, limits
from .config import KeeperHooks
from .failures import AgentError
from .link import LOST
from .output_budget import OutputBudget
from .pumps import InputPipe, OutputPipe
from .replay import History
from .server import run_in_background
from .spawner import Child, Launch, Spawner, sandbox_lost
from .terminal import Size, Terminal


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended. `exit_code` is 128 + signal where a signal ended it."""

    exit_code: int
    signal: int
    stop_reason: str

    def event(self) -> dict[str, object]:
        """Return the end event of a process stream."""
        end: dict[str, object] = {"exitCode": self.exit_code, "exited": not self.signal, "stopReason": self.stop_reason}
        if self.signal:
            end["status"] = f"signal: {_signal_name(self.signal)}"
            end["signal"] = self.signal
        else:
            end["status"] = f"exit status {self.exit_code}"
        if self.exit_code:
            end["error"] = end["status"]
        return {"event": {"end": end}}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def ending_of(status: int, memory_killed: bool) -> Ending:
    """Return the ending that a raw wait status tells."""
    code = os.waitstatus_to_exitcode(status)
    # A shell tells the signal that ended its program as an exit code.
    told = 128 - code if code < 0 else code
    reason = "policy" if told == BY_FILTER else "exit"
    if memory_killed and told == 128 + signal.SIGKILL:
        reason = "memory_limit"
    return Ending(told, max(-code, 0), reason)


def explained(ending: Ending, limit_met: Callable[[], str | None]) -> Ending:
    """Return the ending with the limit that the sandbox is at, where the program failed and nothing else says why."""
    if ending.stop_reason != "exit" or ending.exit_code == 0:
        return ending
    return replace(ending, stop_reason=limit_met() or "exit")


BY_FILTER: Final = 128 + signal.SIGSYS
"""How a program ends that the system call filter kills; nothing else sends this signal (seccomp(2))."""
TIMED_OUT: Final = Ending(128 + signal.SIGKILL, int(signal.SIGKILL), "timeout")
TOO_MUCH_OUTPUT: Final = Ending(128 + signal.SIGKILL, int(signal.SIGKILL), "output_limit")
Frame = bytes
Conclusion = Callable[[], Awaitable[Frame]]


@dataclass(frozen=True, slots=True, eq=False)
class Subscriber:
    """One stream that follows a command. Called back by it; never blocks."""

    write: Callable[[Frame], None]
    end: Callable[[Frame], None]
    paused: Callable[[], bool]


class Process:
    """A running command, or one that has ended and whose end is kept for late readers."""

    def __init__(
        self,
        child: Child,
        config: Mapping[str, object],
        tag: str | None,
        stdin: InputPipe | None,
        history: History,
    ) -> None:
        self.child = child
        self.pid = child.number
        self.config: Mapping[str, object] = config
        self.tag = tag
        self.stdin = stdin
        self.history = history
        self.terminal: Terminal | None = None
        self.ending: Ending | None = None
        self.last_frame: Frame = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.subscribers: list[Subscriber] = []
        self.outputs: list[OutputPipe] = []
        self.timer: asyncio.TimerHandle | None = None
        self.stopped_by = ""
        self.conclude: Conclusion | None = None
        self.budget = OutputBudget(None, lambda: None)
        self.denial_mark = 0

    def follow(self, stdout_fd: int, stderr_fd: int) -> None:
        """Start reading the command's output."""
        self.outputs = [
            OutputPipe(stdout_fd, lambda data: self._publish("stdout", data)),
            OutputPipe(stderr_fd, lambda data: self._publish("stderr", data)),
        ]

    def follow_terminal(self, terminal: Terminal) -> None:
        """Start reading the command's terminal."""
        self.terminal = terminal
        self.outputs = [terminal.reader(lambda data: self._publish("pty", data))]

    def subscribe(self, subscriber: Subscriber, position: int | None = None) -> None:
        """Send events to a stream from now on, the start event first; or from a position of the output on."""
        start: dict[str, object] = {"pid": self.pid}
        first = self.history.total if position is None else min(position, self.history.total)
        if first:
            start["offset"] = first
        subscriber.write(connect.message({"event": {"start": start}}))
        for piece in self.history.since(first):
            if piece.stream:
                subscriber.write(connect.data_frame(piece.stream, piece.data))
            else:
                subscriber.write(connect.message({"event": {"skipped": {"bytes": piece.skipped}}}))
        if self.ending is not None:
            subscriber.end(self.last_frame)
            return
        self.subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop sending to a stream; output that nobody reads is dropped."""
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)
        self.resume()

    def resume(self) -> None:
        """Read output again if every stream keeps up."""
        if self.ending is None and not any(subscriber.paused() for subscriber in self.subscribers):
            for output in self.outputs:
                output.resume()

    def drain(self) -> None:
        """Hand over the output that is there."""
        for output in self.outputs:
            output.drain()

    def finish(self, ending: Ending, last_frame: Frame) -> None:
        """Hand over the output that is there, end every stream, and keep draining for processes left behind."""
        if self.ending is not None:
            return
        if self.timer is not None:
            self.timer.cancel()
        self.drain()
        self.ending = ending
        self.last_frame = last_frame
        self.config = {}  # it may be large, and ended commands are not listed
        for subscriber in self.subscribers:
            subscriber.end(last_frame)
        self.subscribers.clear()
        if self.stdin is not None:
            self.stdin.close()
        for output in self.outputs:
            output.discard()
        if self.terminal is not None:
            self.terminal.close()
        if not self.ended.done():
            self.ended.set_result(None)

    def _publish(self, stream: str, data: bytes) -> None:
        data = self.budget.take(data)
        if not data:
            return
        self.history.add(stream, data)
        if not self.subscribers:
            return
        frame = connect.data_frame(stream, data)
        for subscriber in self.subscribers:
            subscriber.write(frame)
        if any(subscriber.paused() for subscriber in self.subscribers):
            for output in self.outputs:
                output.pause()


class Processes:
    """All commands of the sandbox."""

    def __init__(self, spawner: Spawner, hooks: KeeperHooks, tasks: asyncio.TaskGroup) -> None:
        self._spawner = spawner
        self._hooks = hooks
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, Process] = {}
        self._ended: dict[int, Process] = {}
        self._kept_bytes = 0

    async def start(
        self,
        launch: Launch,
        config: Mapping[str, object],
        tag: str | None,
        *,
        stdin: bool,
        size: Size | None = None,
        timeout_s: float | None,
        output_limit: int | None = None,
        conclude: Conclusion | None = None,
    ) -> Process:
        """Start a command, on a terminal of this size if there is one.

        Its tree is killed after `timeout_s`, and its streams then end with deadline_exceeded; and when it prints more
        than `output_limit` bytes over all streams, and they then end with the stop reason `output_limit`.

        What `conclude` returns when it has ended is sent before its end.

        Raises:
            AgentError: it could not be started.
        """
        if len(self._running) >= limits.PROCESSES:
            raise AgentError("resource_exhausted", "too many processes", "command_failed_to_start")
        kills_before = self._hooks.memory_kills()
        denial_mark = self._hooks.denial_mark()
        if size is not None:
            process = await self._start_on_terminal(launch, config, tag, size)
        else:
            process = await self._start_on_pipes(launch, config, tag, stdin=stdin)
        process.denial_mark = denial_mark
        process.conclude = conclude
        process.budget = OutputBudget(output_limit, lambda: self._stop(process, "output_limit"))
        self._running[process.pid] = process
        process.child.exit.add_done_callback(lambda done: self._on_exit(process, done.result(), kills_before))
        if timeout_s is not None:
            process.timer = self._loop.call_later(timeout_s, self._stop, process, "timeout")
        return process

    async def _start_on_pipes(
        self, launch: Launch, config: Mapping[str, object], tag: str | None, *, stdin: bool
    ) -> Process:
        out, out_child = self._spawner.pipe(launch.user, keeper_reads=True)
        err, err_child = self._spawner.pipe(launch.user, keeper_reads=True)
        theirs = [out_child, err_child]
        ours = [out, err]
        if stdin:
            inp, inp_child = self._spawner.pipe(launch.user, keeper_reads=False)
            theirs.insert(0, inp_child)
            ours.append(inp)
        try:
            child = await self._spawner.spawn(launch, theirs)
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        process = Process(child, config, tag, InputPipe(ours[2]) if stdin else None, History(self._keep))
        process.follow(out, err)
        return process

    async def _start_on_terminal(
        self, launch: Launch, config: Mapping[str, object], tag: str | None, size: Size
    ) -> Process:
        terminal = Terminal(launch.user, self._hooks, size)
        try:
            child = await self._spawner.spawn_on_terminal(launch, terminal.path)
        except BaseException:
            terminal.close()
            raise
        process = Process(child, config, tag, InputPipe(terminal.writer_fd()), History(self._keep))
        process.follow_terminal(terminal)
        return process

    def find(self, pid: int | None, tag: str | None, *, ended: bool = False) -> Process:
        """Return the command with this pid or tag.

        Raises:
            AgentError: not_found.
        """
        found = self._running.get(pid) if pid is not None else None
        if found is None and pid is not None and ended:
            found = self._ended.get(pid)
        if found is None and pid is None and tag is not None:
            everywhere = [*self._running.values(), *(self._ended.values() if ended else ())]
            found = next((process for process in everywhere if process.tag == tag), None)
        if found is None:
            raise AgentError("not_found", "process not found", "process_not_found")
        return found

    def running(self) -> list[Process]:
        """Return the commands that have not ended."""
        return list(self._running.values())

    def kill_soon(self, process: Process) -> None:
        """Kill a command's tree without waiting for it."""
        if process.ending is None:
            run_in_background(self._tasks, self._spawner.kill_tree(process.child))

    async def signal(self, process: Process, number: int) -> None:
        """Signal a command. SIGKILL takes its whole tree and returns when it is gone.

        Raises:
            AgentError: not_found.
        """
        if number == signal.SIGKILL:
            await self._spawner.kill_tree(process.child)
        elif not await self._spawner.signal(process.child, number, group=True):
            raise AgentError("not_found", "process not found", "process_not_found")

    # -- endings ------------------------------------------------------------------------------------------------

    def _on_exit(self, process: Process, status: int, kills_before: int) -> None:
        if status == LOST:
            self._finish(process, Ending(137, int(signal.SIGKILL), "sandbox_lost"), connect.end_with(sandbox_lost()))
            return
        # Its last words may be more than it may print.
        process.drain()
        if process.stopped_by:
            # The kill is on its way through the tree; the streams end when it is done.
            return
        ending = ending_of(status, self._hooks.memory_kills() > kills_before)
        ending = explained(ending, self._hooks.limit_met)
        self._finish(process, ending, connect.message(ending.event()) + connect.END_OK)

    def _stop(self, process: Process, because: Literal["timeout", "output_limit"]) -> None:
        if process.ending is None and not process.stopped_by:
            process.stopped_by = because
            run_in_background(self._tasks, self._kill_stopped(process))

    async def _kill_stopped(self, process: Process) -> None:
        await self._spawner.kill_tree(process.child)
        if process.stopped_by == "timeout":
            text = "the command did not end in time and was killed"
            error = AgentError("deadline_exceeded", text, "command_timeout")
            self._finish(process, TIMED_OUT, connect.end_with(error))
        else:
            last = connect.message(TOO_MUCH_OUTPUT.event()) + connect.END_OK
            self._finish(process, TOO_MUCH_OUTPUT, last)

    def _finish(self, process: Process, ending: Ending, last_frame: Frame) -> None:
        if process.conclude is not None:
            # It has ended: nothing stops it any more.
            process.stopped_by = process.stopped_by or "exit"
            conclude, process.conclude = process.conclude, None
            run_in_background(self._tasks, self._conclude(process, ending, last_frame, conclude))
            return
        denied = [dict(entry) for entry in self._hooks.denials_since(process.denial_mark)]
        if denied:
            last_frame = connect.message({"event": {"denied": {"targets": denied}}}) + last_frame
        ended = {"exit_code": ending.exit_code, "stop_reason": ending.stop_reason}
        self._hooks.record("command_ended", ended)
        for entry in denied:
            self._hooks.record("denied", {"target": entry["target"]})
        process.finish(ending, last_frame)
        if self._running.pop(process.pid, None) is not None:
            if (former := self._ended.pop(process.pid, None)) is not None:
                former.history.drop()
            self._ended[process.pid] = process
            while len(self._ended) > limits.EXITED_KEPT:
                self._ended.pop(next(iter(self._ended))).history.drop()

    async def _conclude(self, process: Process, ending: Ending, last_frame: Frame, conclude: Conclusion) -> None:
        self._finish(process, ending, await conclude() + last_frame)

    def _keep(self, spent_bytes: int) -> None:
        """Account for kept output, and forget some where there is too much of it."""
        self._kept_bytes += spent_bytes
        if spent_bytes <= 0 or self._kept_bytes <= limits.REPLAY_TOTAL_BYTES:
            return
        largest_first = sorted(self._running.values(), key=lambda process: -process.history.cost)
        for process in [*self._ended.values(), *largest_first]:
            process.history.drop()
            if self._kept_bytes <= limits.REPLAY_TOTAL_BYTES:
                return
