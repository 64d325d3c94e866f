"""Interpreter contexts as the keeper sees them: processes behind a channel that user code can write to."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from . import control, limits
from .config import KeeperHooks, User
from .execution import Event, Finish, Job, Replaced, Run, death_text, error_of, exit_code_of, failure, finish_of
from .failures import AgentError
from .languages import Engine
from .link import LOST
from .processes import BY_FILTER
from .pumps import OutputPipe
from .results import result_line
from .server import run_in_background
from .spawner import Child, Launch, Spawner
from .workspaces import Session, Workspaces

_SIGINT: Final = 2
_SIGKILL: Final = 9
_TICKS_PER_S: Final = 100
"""USER_HZ, the unit of start times in /proc; fixed on every Linux architecture that we run on."""

_LEAVES_CWD: Final = "CLOCHE_LEAVES_CWD"
"""For a program that keeps a context: it is in its working directory only while it runs code."""
_STOPPED: Final = "the execution was stopped and did not end by itself, so the interpreter was replaced"
_ENDED: Final = {"restarted": "ContextRestarting", "removed": "ContextRemoved"}


@dataclass(frozen=True, slots=True)
class Makers:
    """What contexts are made with."""

    spawner: Spawner
    hooks: KeeperHooks
    tasks: asyncio.TaskGroup
    user: User
    workspaces: Workspaces | None = None


class Context:
    """An interpreter's process with a namespace of its own. Executions queue on its lock."""

    def __init__(self, makers: Makers, identity: str, engine: Engine, folders: Sequence[str]) -> None:
        self.identity = identity
        self.language = engine.language
        self.cwd = folders[0]
        self.lock = asyncio.Lock()
        self.executions = 0
        self.removed = False
        self.replaced: Replaced | None = None
        self.engine = engine
        self._spawner = makers.spawner
        self._hooks = makers.hooks
        self._tasks = makers.tasks
        self._user = makers.user
        self._workspaces = makers.workspaces
        self._session: Session | None = None
        self._folders = folders
        self._loop = asyncio.get_running_loop()
        self._child: Child | None = None
        self._channel: socket.socket | None = None
        self._decoder = control.Decoder()
        self._outputs: list[OutputPipe] = []
        self._run: Run | None = None
        self._status: int | None = None
        self._kills_before = 0

    # -- process ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Have a live process.

        Raises:
            AgentError: it could not be started.
        """
        if self._child is not None:
            return
        out, out_child = self._spawner.pipe(self._user, keeper_reads=True)
        err, err_child = self._spawner.pipe(self._user, keeper_reads=True)
        channel, channel_child = socket.socketpair()
        self._kills_before = self._hooks.memory_kills()
        try:
            launch = await self._placed(Launch(self._user, self._folders, {}, self.engine.argv))
            child = await self._spawner.interpreter(launch, [channel_child.fileno(), out_child, err_child])
        except BaseException:
            os.close(out)
            os.close(err)
            channel.close()
            raise
        finally:
            channel_child.close()
            os.close(out_child)
            os.close(err_child)
        channel.setblocking(False)
        self._channel = channel
        self._decoder = control.Decoder()
        self._child = child
        self._status = None
        self.executions = 0
        self._outputs = [
            OutputPipe(out, lambda data: self._on_output("stdout", data)),
            OutputPipe(err, lambda data: self._on_output("stderr", data)),
        ]
        self._loop.add_reader(channel, self._on_channel)
        child.exit.add_done_callback(lambda done: self._on_exit(child, done.result()))

    async def _placed(self, launch: Launch) -> Launch:
        """Return the launch, in the context's session where the sandbox has layers."""
        if self._workspaces is None:
            return launch
        if self._session is None or self._session.gone:
            self._session = await self._workspaces.enter_alone("context")
        else:
            await self._workspaces.advance(self._session, written=True)
        envs = {**launch.envs, _LEAVES_CWD: "1"} if launch.argv else launch.envs
        return self._session.place(replace(launch, envs=envs))

    async def advance(self) -> None:
        """See in the workspace what others have published. Not while code runs.

        Raises:
            AgentError: the workspace cannot be shown.
        """
        if self._workspaces is not None and self._session is not None and not self._session.gone:
            await self._workspaces.advance(self._session, written=False)

    async def publish(self) -> Mapping[str, object]:
        """Publish what code wrote into the workspace; tell what became of it, where the sandbox has layers."""
        if self._workspaces is None or self._session is None:
            return {}
        facts = {"session_id": self._session.session_id, "manifest_version": self._workspaces.version}
        try:
            return await self._workspaces.advance(self._session, written=True)
        except AgentError:
            # The code has run, and its output is not lost for that.
            return {**facts, "outcome": "rejected"}

    async def _settle(self) -> None:
        """Publish what is left, when the context is removed."""
        session, self._session = self._session, None
        if self._workspaces is not None and session is not None and not session.gone:
            await self._workspaces.settle(session)

    async def stop(self, because: Literal["restarted", "removed"]) -> None:
        """End the process on request, and the execution that it is busy with."""
        self.removed = because == "removed"
        self.replaced = None
        if self._run is not None:
            self._run.tell(("ended", because))
        await self.end()
        if self.removed:
            await self._settle()

    def interrupt(self) -> bool:
        """Interrupt the running execution; False when there is none."""
        if self._run is None:
            return False
        self._run.tell(("interrupted", None))
        return True

    async def adopt_environment(self, envs: Mapping[str, str]) -> None:
        """Add variables to the environment of the live process, and begin to count; the next one has them at once."""
        self.executions = 0
        if self._channel is None:
            return
        try:
            async with asyncio.timeout(limits.CONTEXT_START_S):
                await self._loop.sock_sendall(self._channel, control.encode({"environment": dict(envs)}))
        except (OSError, TimeoutError):
            await self.end()

    async def end(self) -> None:
        """Kill the process and all that it started."""
        child, self._child = self._child, None
        if child is None:
            return
        self._close_channel()
        await self._spawner.kill_tree(child)
        for output in self._outputs:
            output.drain()
            output.close()

    def close(self) -> None:
        """Let go of the process: it ends when it notices that, at the latest with its init."""
        self._child = None
        self._close_channel()
        for output in self._outputs:
            output.close()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._loop.remove_reader(self._channel)
            self._loop.remove_writer(self._channel)
            self._channel.close()
            self._channel = None

    # -- execution ----------------------------------------------------------------------------------------------

    async def execute(self, job: Job, run: Run) -> Finish:
        """Run code in the context. The caller holds the lock.

        Raises:
            AgentError: the context could not be started.
        """
        await self.start()
        child = self._child
        if child is None:
            raise AgentError("unavailable", "the interpreter is gone", "interpreter_failed")
        self.executions += 1
        self._run = run
        since_ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S)
        run.sink.line({"type": "number_of_executions", "execution_count": self.executions})
        try:
            await self._ask(job)
            event = await run.wait(job.timeout_s)
            if event is None or event[0] in ("gone", "interrupted", "output_limit"):
                return await self._stop(child, run, event, since_ticks)
            return await self._finish(child, run, event)
        finally:
            self._run = None
            self.resume()

    async def _ask(self, job: Job) -> None:
        channel = self._channel
        if channel is None:
            return
        request = {
            "code": job.code,
            "envs": dict(job.envs),
            "max_result_bytes": job.max_result_bytes,
            "max_results": job.max_results,
            "language": job.language,
        }
        data = control.encode(request)
        try:
            sent = channel.send(data)
            if sent < len(data):
                async with asyncio.timeout(limits.CONTEXT_START_S):
                    await self._loop.sock_sendall(channel, data[sent:])
        except BlockingIOError:
            await self._end_broken()
        except (OSError, TimeoutError):
            return  # its end is on its way as an exit

    async def _end_broken(self) -> None:
        if self._child is not None:
            await self._spawner.signal(self._child, _SIGKILL, group=False)

    async def _stop(self, child: Child, run: Run, why: Event | None, since_ticks: int) -> Finish:
        """Interrupt the code, kill the context where that does not help, and leave nothing of it running."""
        reason: Literal["timeout", "cancelled", "output_limit"] = "timeout" if why is None else "cancelled"
        if why is not None and why[0] == "output_limit":
            reason = "output_limit"
        event = await self._interrupted(child, run)
        if event is not None and event[0] == "ended":
            return self._ended(cast("str", event[1]), run)
        # A client that follows the execution which another one interrupts sees an error, as of any interrupt.
        told = why is not None and why[0] == "interrupted"
        if event is None or event[0] != "done":
            await self.end()
            self.replaced = Replaced(reason)
            error = failure("ExecutionAborted", _STOPPED) if told else None
            return Finish(128 + _SIGKILL, reason, state_kept=False, error=error, files=run.files)
        await self._spawner.kill_tree(child, since_ticks=since_ticks, spare_leader=True)
        self._drain_outputs()
        error = error_of(cast("control.Header", event[1])) if told else None
        return Finish(128 + _SIGINT, reason, state_kept=True, error=error, files=run.files)

    async def _interrupted(self, child: Child, run: Run) -> Event | None:
        """Interrupt until the code stops; return how, or None where it does not."""
        if run.event.done():
            run.again()
        if run.event.done():
            return run.event.result()
        # A client that reads slowly must not keep us from hearing that the code has stopped.
        self.resume()
        for patience in (limits.INTERRUPT_AGAIN_S, limits.INTERRUPT_GRACE_S - limits.INTERRUPT_AGAIN_S):
            # The whole group, as a terminal would: programs that the code waits for must end too.
            await self._spawner.signal(child, _SIGINT, group=True)
            event = await run.wait(patience)
            if event is not None and event[0] in ("gone", "interrupted", "output_limit"):
                run.again()
                event = await run.wait(patience)
            if event is not None:
                return event
        return None

    async def _finish(self, child: Child, run: Run, event: Event) -> Finish:
        if event[0] == "done":
            self._drain_outputs()
            if run.budget.spent:
                return Finish(128 + _SIGINT, "output_limit", files=run.files)
            return finish_of(cast("control.Header", event[1]), run.files, self._hooks.limit_met)
        if event[0] == "ended":
            return self._ended(cast("str", event[1]), run)
        status = cast("int", event[1])
        out_of_memory = self._hooks.memory_kills() > self._kills_before
        await self._spawner.kill_tree(child)
        self._drain_outputs()
        await self.end()
        code = exit_code_of(status)
        reason = "memory_limit" if out_of_memory else "policy" if code == BY_FILTER else "interpreter_died"
        if status == LOST:
            reason, out_of_memory = "sandbox_lost", False
        self.replaced = Replaced("oom" if out_of_memory else "died", code)
        error = failure("InterpreterDied", death_text(code, out_of_memory=out_of_memory))
        return Finish(code, reason, state_kept=False, error=error, files=run.files)

    def _ended(self, because: str, run: Run) -> Finish:
        error = failure(_ENDED[because], f"the context was {because} while the code ran")
        return Finish(128 + _SIGKILL, "cancelled", state_kept=False, error=error, files=run.files)

    def _drain_outputs(self) -> None:
        for output in self._outputs:
            output.drain()

    # -- events of the process ----------------------------------------------------------------------------------

    def _on_output(self, stream: str, data: bytes) -> None:
        run = self._run
        if run is None:
            return  # printed by a thread or program between two executions: nobody reads it
        if data := run.budget.take(data):
            run.sink.output(stream, data)
        if run.sink.paused:
            for output in self._outputs:
                output.pause()

    def resume(self) -> None:
        """The client caught up: read again."""
        for output in self._outputs:
            output.resume()
        if self._channel is not None:
            self._loop.add_reader(self._channel, self._on_channel)

    def _on_channel(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            data = channel.recv(limits.CONTROL_READ_BYTES)
            frames = self._decoder.feed(data)
        except BlockingIOError:
            return
        except (OSError, control.BrokenControl):
            data, frames = b"", []
        for frame in frames:
            self._on_frame(frame)
        if self._run is not None and self._run.sink.paused:
            self._loop.remove_reader(channel)
        if not data:
            # User code closed or broke the channel. Without it the context is of no use.
            self._close_channel()
            run_in_background(self._tasks, self._end_broken())

    def _on_frame(self, frame: control.Frame) -> None:
        # What was printed before a result belongs before it.
        self._drain_outputs()
        header = frame.header
        number = header.get("n")
        if type(number) is int:
            self._acknowledge(number)
        run = self._run
        if run is None:
            return
        if header.get("t") == "result":
            line, files = result_line(frame)
            run.files.extend(files)
            # What is displayed is output too: a loop that displays for ever ends like one that prints.
            run.budget.take(b"".join(frame.parts))
            if line is not None and not run.budget.spent:
                run.sink.line(line)
        elif header.get("t") == "done":
            run.tell(("done", header))

    def _acknowledge(self, number: int) -> None:
        if self._channel is None:
            return
        try:
            self._channel.send(control.encode({"ack": number}))
        except OSError:
            return  # user code that does not read its answers waits for ever, until its timeout

    def _on_exit(self, child: Child, status: int) -> None:
        if child is not self._child:
            return
        self._status = status
        self._drain_outputs()
        self._close_channel()
        if self._run is not None:
            self._run.tell(("died", status))
            return
        # It died between two executions: the next one gets a new process, and is told.
        self._child = None
        out_of_memory = self._hooks.memory_kills() > self._kills_before
        self.replaced = Replaced("oom" if out_of_memory else "died", exit_code_of(status))
        for output in self._outputs:
            output.discard()
