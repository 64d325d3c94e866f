"""Commands in a sandbox."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any

import anyio
from pydantic import MISSING

from cloche_contract import agent
from cloche_contract.agent import HEADER_KILL_ON_DISCONNECT, HEADER_TIMEOUT_MS, PROCESS_CONNECT, PROCESS_START
from cloche_contract.errors import ClocheError, CommandTimeout, SandboxExpired, SandboxLost

from .data_plane import AgentChannel, agent_client, answered
from .endings import raise_for_end
from .following import Following, Messages, read_to_end
from .link import SandboxLink
from .output import OutputCallback
from .output_limit import limit_headers
from .process_input import close_input, feed_and_close, send_input
from .process_reader import ProcessReader
from .relay import Relay
from .results import CommandResult, ProcessInfo
from .signals import signal_process

__all__ = ["AsyncCommandHandle", "AsyncCommands"]

DEFAULT_TIMEOUT_S = 60
KILL_BOUND_S = 2.0


class AsyncCommands:
    """Runs shell commands in one sandbox; each starts in a shell of its own."""

    def __init__(self, link: SandboxLink) -> None:
        self._channel = AgentChannel(link)
        self._link = link

    async def run(
        self,
        command: str,
        *,
        stdin: str | bytes | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """Run a command to its end. A non-zero exit code is data, not an error.

        Args:
            stdin: what it reads; it then reads the end of its input. Left out, its input is empty.
            cwd: working directory; the template's when left out.
            timeout: seconds until the command and everything that it started is killed.
            user: `root`, where the sandbox has one; the default user when left out.
            clean: keep output as a terminal would show it: without colours, and of a progress bar its last state.
            output_limit: bytes that it may print in all before it is ended, with stop reason `output_limit`; 0 is no
                limit. Left out: ABX_OUTPUT_LIMIT (256 MiB), or none where a callback takes the output.
            on_stdout, on_stderr: called with each piece of output as it comes, uncapped and as it was written.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        result = await self.execute(
            command,
            stdin=stdin,
            cwd=cwd,
            envs=envs,
            timeout=timeout,
            user=user,
            clean=clean,
            output_limit=output_limit,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )
        raise_for_end(result)
        return result

    async def execute(
        self,
        command: str,
        *,
        stdin: str | bytes | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """As `run`, but a timeout or a lost sandbox is data too: `stop_reason` tells."""
        reader = ProcessReader(on_stdout, on_stderr, clean=clean)
        message = start_message(command, cwd, envs, stdin=stdin is not None)
        streamed = on_stdout is not None or on_stderr is not None
        headers = {**user_headers(user), HEADER_TIMEOUT_MS: str(timeout * 1000)}
        headers |= limit_headers(self._link, output_limit, streamed=streamed)
        # Leaving this block cuts the stream, and the agent then kills the whole tree.
        headers[HEADER_KILL_ON_DISCONNECT] = "1"
        try:
            with self._channel.overdue_after(timeout):
                async with aclosing(self._channel.stream(PROCESS_START, message, headers=headers)) as messages:
                    if stdin is None:
                        await read_to_end(messages, reader)
                    else:
                        await self._read_and_feed(messages, reader, stdin)
        except CommandTimeout:
            return reader.result("timeout")
        except (SandboxLost, SandboxExpired):
            if reader.pid is None:
                raise
            return reader.result("sandbox_lost")
        except anyio.get_cancelled_exc_class():
            await self._kill_cancelled(reader.pid)
            raise
        return reader.result()

    async def _kill_cancelled(self, pid: int | None) -> None:
        """Kill what a cancelled call has left, where the agent does not do that by itself."""
        if pid is None or self._link.runs_our_agent:
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(KILL_BOUND_S), suppress(ClocheError):
            await self.kill(pid)

    async def _read_and_feed(self, messages: Messages, reader: ProcessReader, data: str | bytes) -> None:
        """Write the input while the output is read: a command may do both at once."""
        async for found in messages:
            reader.take(found)
            if reader.pid is not None:
                break
        feeding, reading = Relay(), Relay()
        async with anyio.create_task_group() as tasks:

            async def feed() -> None:
                with feeding:
                    await feed_and_close(self._channel, {"pid": reader.pid}, data)
                if feeding.error is not None:
                    # A command that got a part of its input must not take it for all of it.
                    tasks.cancel_scope.cancel()

            tasks.start_soon(feed)
            with reading:
                await read_to_end(messages, reader)
            tasks.cancel_scope.cancel()
        if (error := reading.error or feeding.error) is not None:
            raise error

    async def start(
        self,
        command: str,
        *,
        stdin: bool = False,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> AsyncCommandHandle:
        """Start a command and return while it runs; `wait` on the handle collects its output.

        The command is killed after `timeout` seconds, whether or not anybody waits. A connection that is lost
        does not end it: `wait` connects again and goes on where it was.

        Args:
            stdin: keep its input open, for `send_stdin`; else it is empty.
            output_limit: as for `run`.

        Raises:
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        # A number may be given to another process later; this name is not.
        tag = f"handle-{self._link.new_id()}"
        message = {**start_message(command, cwd, envs, stdin=stdin), "tag": tag}
        streamed = on_stdout is not None or on_stderr is not None
        headers = {**user_headers(user), HEADER_TIMEOUT_MS: str(timeout * 1000)}
        headers |= limit_headers(self._link, output_limit, streamed=streamed)
        reader = ProcessReader(on_stdout, on_stderr)
        following = await Following.begin(self._channel, reader, PROCESS_START, message, headers, {"tag": tag})
        return AsyncCommandHandle(self._channel, following)

    async def connect(
        self,
        pid: int,
        *,
        offset: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> AsyncCommandHandle:
        """Follow a command that runs, also one that another process started, or learn how it ended.

        Args:
            offset: where its output is taken up: the `offset` of an earlier handle, 0 for all of it. Of long output
                the beginning and the end are kept; `skipped_bytes` of the result tells. Left out: only what comes.

        Raises:
            ProcessNotFound: there is no such command, or it ended long ago.
        """
        message = {"process": {"pid": pid}, **({} if offset is None else {"offset": offset})}
        reader = ProcessReader(on_stdout, on_stderr)
        return AsyncCommandHandle(
            self._channel, await Following.begin(self._channel, reader, PROCESS_CONNECT, message, {})
        )

    async def list(self) -> tuple[ProcessInfo, ...]:
        """What the agent started and still runs."""
        answer = await answered(agent_client(self._channel).process_list(agent.ProcessListRequest()))
        found = [] if answer.processes is MISSING else answer.processes
        return tuple(
            ProcessInfo(
                pid=process.pid,
                command=process.config.cmd,
                args=() if process.config.args is MISSING else tuple(process.config.args),
                tag=None if process.tag is MISSING else process.tag,
            )
            for process in found
        )

    async def kill(self, pid: int) -> bool:
        """Kill a process and everything that it started; False when there is no such process."""
        return await signal_process(self._channel, {"pid": pid}, "SIGNAL_SIGKILL")

    async def send_stdin(self, pid: int, data: str | bytes) -> None:
        """Write to the input of a command that was started with `stdin`.

        Raises:
            ProcessNotFound: it has ended.
            InvalidArgument: its input is not open.
        """
        await send_input(self._channel, {"pid": pid}, data, "stdin")

    async def close_stdin(self, pid: int) -> None:
        """Let a command read the end of its input."""
        await close_input(self._channel, {"pid": pid})


class AsyncCommandHandle:
    """A command that runs. As a context manager it lets go of it at the end."""

    def __init__(self, channel: AgentChannel, following: Following) -> None:
        self._channel = channel
        self._following = following

    @property
    def pid(self) -> int:
        """Its process id inside the sandbox."""
        return self._following.reader.pid or 0

    @property
    def offset(self) -> int:
        """How much of its output has arrived, in bytes of both streams; `connect` takes it up from there."""
        return self._following.reader.offset

    async def wait(self) -> CommandResult:
        """Wait for its end.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            SandboxLost: the sandbox ended; where output is known, `result` holds it.
            ProcessNotFound: the connection was lost, and how the command ended is no longer known.
        """
        return await self._following.to_end()

    async def send_stdin(self, data: str | bytes) -> None:
        """Write to its input. Returns when all of it is taken; a command that does not read is waited for.

        Raises:
            ProcessNotFound: it has ended.
            InvalidArgument: it was started without `stdin`, or closed its input.
        """
        await send_input(self._channel, self._following.selector, data, "stdin")

    async def close_stdin(self) -> None:
        """Let it read the end of its input, after what was written."""
        await close_input(self._channel, self._following.selector)

    async def interrupt(self) -> bool:
        """Interrupt it and what it started, as Ctrl+C would; False when it has ended already."""
        return await signal_process(self._channel, self._following.selector, "SIGNAL_SIGINT")

    async def kill(self) -> bool:
        """Kill it and everything that it started; False when it has ended already."""
        return await signal_process(self._channel, self._following.selector, "SIGNAL_SIGKILL")

    async def disconnect(self) -> None:
        """Let go of it; it goes on, and the agent keeps its output for whoever connects to it."""
        await self._following.aclose()

    async def __aenter__(self) -> AsyncCommandHandle:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()


def start_message(
    command: str, cwd: str | None, envs: Mapping[str, str] | None, *, stdin: bool = False
) -> dict[str, Any]:
    """The request that starts a shell command."""
    process: dict[str, Any] = {"cmd": "/bin/sh", "args": ["-c", command]}
    if envs:
        process["envs"] = dict(envs)
    if cwd is not None:
        process["cwd"] = cwd
    return {"process": process, "stdin": True} if stdin else {"process": process}


def user_headers(user: str | None) -> dict[str, str]:
    """The headers that say who runs it."""
    if user is None:
        return {}
    return {"authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}
