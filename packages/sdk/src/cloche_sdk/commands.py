"""Commands in a sandbox."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import MISSING

from cloche_contract import agent
from cloche_contract.agent import HEADER_KILL_ON_DISCONNECT, HEADER_TIMEOUT_MS, PROCESS_START
from cloche_contract.errors import CommandTimeout as CatalogueCommandTimeout
from cloche_contract.errors import ProcessNotFound, ProviderFailed, SandboxExpired, SandboxLost

from .data_plane import AgentChannel, agent_client, answered
from .link import SandboxLink
from .output import OutputCapture, TextDecoder
from .results import CommandResult, Denial, ProcessInfo

__all__ = ["AsyncCommandHandle", "AsyncCommands", "CommandInterrupted", "CommandTimeout", "OutputCallback"]

OutputCallback = Callable[[str], object]

DEFAULT_TIMEOUT_S = 60
KILLED_EXIT_CODE = 137
DENIALS_KEPT = 16
UNKNOWN_EXIT_CODE = -1


class CommandTimeout(CatalogueCommandTimeout):
    """The command took too long and was stopped; `result` holds what it wrote until then."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result


class CommandInterrupted(SandboxLost):
    """The sandbox ended while the command ran; `result` holds what it wrote until then."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result


def denials(entries: Sequence[Mapping[str, Any]]) -> tuple[Denial, ...]:
    """The denials that an agent reports, at most 16."""
    return tuple(Denial(str(entry["target"]), entry.get("rule")) for entry in entries[:DENIALS_KEPT])


def raise_for_end(result: CommandResult) -> None:
    """Raise what a caller must not overlook: a timeout, or the loss of the sandbox."""
    if result.stop_reason == "timeout":
        raise CommandTimeout(result)
    if result.stop_reason == "sandbox_lost":
        raise CommandInterrupted(result)


class ProcessReader:
    """Collects the events of one process."""

    def __init__(self, on_stdout: OutputCallback | None, on_stderr: OutputCallback | None) -> None:
        self.pid: int | None = None
        self._captures = {"stdout": OutputCapture(), "stderr": OutputCapture()}
        callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._callbacks = {name: (call, TextDecoder()) for name, call in callbacks.items() if call is not None}
        self._end: Mapping[str, Any] | None = None
        self._denied: tuple[Denial, ...] = ()

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of the stream."""
        event: Mapping[str, Any] = message.get("event", {})
        output: Mapping[str, str] | None = event.get("data")
        if output is not None:
            for name, encoded in output.items():
                self._take_output(name, base64.b64decode(encoded))
        elif "start" in event:
            self.pid = int(event["start"]["pid"])
        elif "denied" in event:
            self._denied = denials(event["denied"].get("targets", ()))
        elif "end" in event:
            self._end = event["end"]

    def _take_output(self, name: str, data: bytes) -> None:
        capture = self._captures.get(name)
        if capture is None:
            return
        capture.feed(data)
        if name in self._callbacks:
            call, decoder = self._callbacks[name]
            call(decoder.feed(data))

    def result(self, interrupted_by: str | None = None) -> CommandResult:
        """How it ended; `interrupted_by` where no end was sent."""
        for call, decoder in self._callbacks.values():
            rest = decoder.feed(b"", final=True)
            if rest:
                call(rest)
        end = self._end
        if end is None:
            exit_code = KILLED_EXIT_CODE if interrupted_by == "timeout" else UNKNOWN_EXIT_CODE
            stop_reason = interrupted_by or "sandbox_lost"
        else:
            exit_code, stop_reason = int(end.get("exitCode", 0)), str(end.get("stopReason") or "exit")
        return CommandResult(
            exit_code=exit_code,
            stop_reason=stop_reason,
            stdout_captured=self._captures["stdout"].result(),
            stderr_captured=self._captures["stderr"].result(),
            denied=self._denied,
        )


class AsyncCommands:
    """Runs shell commands in one sandbox; each starts in a shell of its own."""

    def __init__(self, link: SandboxLink) -> None:
        self._channel = AgentChannel(link)

    async def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """Run a command to its end. A non-zero exit code is data, not an error.

        Args:
            cwd: working directory; the template's when left out.
            timeout: seconds until the command and everything that it started is killed.
            user: `root`, where the sandbox has one; the default user when left out.
            on_stdout, on_stderr: called with each piece of output as it comes, uncapped.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        result = await self.execute(
            command, cwd=cwd, envs=envs, timeout=timeout, user=user, on_stdout=on_stdout, on_stderr=on_stderr
        )
        raise_for_end(result)
        return result

    async def execute(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """As `run`, but a timeout or a lost sandbox is data too: `stop_reason` tells."""
        reader = ProcessReader(on_stdout, on_stderr)
        message = _start_message(command, cwd, envs)
        headers = _start_headers(timeout, user)
        # Leaving this block cuts the stream, and the agent then kills the whole tree.
        headers[HEADER_KILL_ON_DISCONNECT] = "1"
        try:
            with self._channel.overdue_after(timeout):
                async with aclosing(self._channel.stream(PROCESS_START, message, headers=headers)) as messages:
                    async for found in messages:
                        reader.take(found)
        except CatalogueCommandTimeout:
            return reader.result("timeout")
        except (SandboxLost, SandboxExpired):
            if reader.pid is None:
                raise
            return reader.result("sandbox_lost")
        return reader.result()

    async def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> AsyncCommandHandle:
        """Start a command and return while it runs; `wait` on the handle collects its output.

        The command is killed after `timeout` seconds, whether or not anybody waits.
        """
        reader = ProcessReader(on_stdout, on_stderr)
        messages = self._channel.stream(
            PROCESS_START, _start_message(command, cwd, envs), headers=_start_headers(timeout, user)
        )
        try:
            async for found in messages:
                reader.take(found)
                if reader.pid is not None:
                    return AsyncCommandHandle(self, reader, messages)
        except BaseException:
            await messages.aclose()
            raise
        raise ProviderFailed

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
        request = agent.SendSignalRequest(process=agent.ProcessSelector(pid=pid), signal="SIGNAL_SIGKILL")
        try:
            await answered(agent_client(self._channel).process_send_signal(request))
        except ProcessNotFound:
            return False
        return True


class AsyncCommandHandle:
    """A command that runs."""

    def __init__(
        self, commands: AsyncCommands, reader: ProcessReader, messages: AsyncGenerator[Mapping[str, Any], None]
    ) -> None:
        self._commands = commands
        self._reader = reader
        self._messages = messages

    @property
    def pid(self) -> int:
        """Its process id inside the sandbox."""
        return self._reader.pid or 0

    async def wait(self) -> CommandResult:
        """Wait for its end.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            SandboxLost: the sandbox ended; where output is known, `result` holds it.
        """
        try:
            async with aclosing(self._messages):
                async for found in self._messages:
                    self._reader.take(found)
        except CatalogueCommandTimeout:
            result = self._reader.result("timeout")
        except (SandboxLost, SandboxExpired):
            result = self._reader.result("sandbox_lost")
        else:
            result = self._reader.result()
        raise_for_end(result)
        return result

    async def kill(self) -> bool:
        """Kill it and everything that it started; False when it has ended already."""
        return await self._commands.kill(self.pid)

    async def disconnect(self) -> None:
        """Let go of it; it goes on, and its output is no longer collected."""
        await self._messages.aclose()


def _start_message(command: str, cwd: str | None, envs: Mapping[str, str] | None) -> Mapping[str, Any]:
    process: dict[str, Any] = {"cmd": "/bin/sh", "args": ["-c", command]}
    if envs:
        process["envs"] = dict(envs)
    if cwd is not None:
        process["cwd"] = cwd
    return {"process": process}


def _start_headers(timeout_s: int, user: str | None) -> dict[str, str]:
    headers = {HEADER_TIMEOUT_MS: str(timeout_s * 1000)}
    if user is not None:
        headers["authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
    return headers
