"""Terminals in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from cloche_contract import agent
from cloche_contract.agent import HEADER_TIMEOUT_MS, PROCESS_CONNECT, PROCESS_START
from cloche_contract.errors import InvalidArgument

from .commands import start_message, user_headers
from .data_plane import AgentChannel, agent_client, answered
from .following import Following
from .link import SandboxLink
from .output_limit import limit_headers
from .process_input import send_input
from .process_reader import ProcessReader
from .requests import build
from .results import CommandResult
from .signals import signal_process

__all__ = ["AsyncPty", "AsyncTerminal"]

# A login shell for a person: bash where the template has it.
SHELL = 'exec "$(command -v bash || command -v sh)" -i -l'
ENVIRONMENT: Mapping[str, str] = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}

TerminalCallback = Callable[[bytes], object]


class AsyncPty:
    """Makes terminals in one sandbox and finds those that are there."""

    def __init__(self, link: SandboxLink) -> None:
        self._channel = AgentChannel(link)
        self._link = link

    async def create(
        self,
        command: str | None = None,
        *,
        cols: int = 80,
        rows: int = 24,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int | None = None,
        user: str | None = None,
        output_limit: int | None = None,
        on_data: TerminalCallback | None = None,
    ) -> AsyncTerminal:
        """Start a shell, or a command, on a terminal of its own.

        Args:
            command: a line for `sh -c`; an interactive login shell when left out.
            cols, rows: the size of the terminal, 1 to 65535 each.
            envs: variables on top of TERM, LANG and LC_ALL.
            timeout: seconds until it is killed; left out, it lives as long as the sandbox.
            user: `root`, where the sandbox has one; the default user when left out.
            output_limit: bytes that may appear in all before it is ended, with stop reason `output_limit`; left out, as
                for all output that is taken piece by piece, there is no limit.
            on_data: called with each piece that appears, by `read` and `wait`.

        Raises:
            InvalidArgument: the size is out of range.
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.

        Source: pty(7); agent-protocol, part 2.2.
        """
        tag = f"handle-{self._link.new_id()}"
        message = start_message(command or SHELL, cwd, {**ENVIRONMENT, **(envs or {})})
        message |= {"pty": {"size": _size(cols, rows)}, "tag": tag}
        limit = {} if timeout is None else {HEADER_TIMEOUT_MS: str(timeout * 1000)}
        limit |= limit_headers(self._link, output_limit, streamed=True)
        reader = ProcessReader(on_terminal=on_data)
        following = await Following.begin(
            self._channel, reader, PROCESS_START, message, {**user_headers(user), **limit}, {"tag": tag}
        )
        return AsyncTerminal(self._channel, following)

    async def connect(
        self, pid: int, *, offset: int | None = None, on_data: TerminalCallback | None = None
    ) -> AsyncTerminal:
        """Follow a terminal that is there, from now on or from a position of its output.

        Args:
            offset: the `offset` of an earlier handle, 0 for all that is kept. Left out: only what comes.

        Raises:
            ProcessNotFound: there is no such terminal, or it ended long ago.
        """
        message = {"process": {"pid": pid}, **({} if offset is None else {"offset": offset})}
        reader = ProcessReader(on_terminal=on_data)
        return AsyncTerminal(self._channel, await Following.begin(self._channel, reader, PROCESS_CONNECT, message, {}))

    async def kill(self, pid: int) -> bool:
        """Kill what runs on a terminal, and everything that it started; False when there is none."""
        return await signal_process(self._channel, {"pid": pid}, "SIGNAL_SIGKILL")


class AsyncTerminal:
    """A terminal and what runs on it. As a context manager it lets go of it at the end."""

    def __init__(self, channel: AgentChannel, following: Following) -> None:
        self._channel = channel
        self._following = following

    @property
    def pid(self) -> int:
        """The process id, inside the sandbox, of what runs on it."""
        return self._following.reader.pid or 0

    @property
    def offset(self) -> int:
        """How much has appeared and arrived, in bytes; `connect` takes it up from there."""
        return self._following.reader.offset

    async def send(self, data: str | bytes) -> None:
        """Type into it. A program that does not read is waited for.

        Raises:
            ProcessNotFound: what ran on it has ended.
        """
        await send_input(self._channel, self._following.selector, data, "pty")

    async def resize(self, cols: int, rows: int) -> None:
        """Change its size; the program in the foreground is told.

        Raises:
            InvalidArgument: the size is out of range.
            ProcessNotFound: what ran on it has ended.
        """
        request = build(agent.UpdateRequest, process=dict(self._following.selector), pty={"size": _size(cols, rows)})
        await answered(agent_client(self._channel).process_update(request))

    async def read(self) -> bytes:
        """Wait for the next piece that appears; empty when what ran on it has ended.

        Cancelled while it waits, it lets go of the terminal: `connect` with its `offset` goes on.

        Raises:
            CommandTimeout, SandboxLost, SandboxExpired: it was stopped, or the sandbox is gone.
        """
        return await self._following.next_output()

    async def wait(self) -> CommandResult:
        """Wait for the end of what runs on it; the result has what appeared, as `stdout`.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            SandboxLost: the sandbox ended; where output is known, `result` holds it.
        """
        return await self._following.to_end()

    async def kill(self) -> bool:
        """Kill what runs on it, and everything that it started; False when it has ended already."""
        return await signal_process(self._channel, self._following.selector, "SIGNAL_SIGKILL")

    async def disconnect(self) -> None:
        """Let go of it. What runs on it goes on."""
        await self._following.aclose()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()


def _size(cols: int, rows: int) -> dict[str, Any]:
    """A size of at least one by one: the wire reads 0 as the default."""
    size = build(agent.TerminalSize, cols=cols, rows=rows)
    for name, value in (("cols", cols), ("rows", rows)):
        if value < 1:
            raise InvalidArgument(field=name, rule="minimum", limit=1)
    return size.model_dump()
