"""This terminal, connected to one in a sandbox."""

import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import anyio

from cloche_cli.invocation import Invocation, ReaderGone, current
from cloche_cli.one_shot import command_status, leave
from cloche_cli.running import run_async
from cloche_cli.usage import Refused
from cloche_contract.errors import ClocheError
from cloche_sdk import AsyncSandbox, AsyncTerminal, CommandResult, CommandTimeout

_READ_BYTES: Final = 65_536
_KILL_BOUND_S: Final = 5
# A sandbox of its own lives on for so long where this process is killed; while it runs, it renews.
_LIFETIME_S: Final = 900
_RENEW_EVERY_S: Final = 300
_HUNG_UP: Final = 128 + 1


@dataclass(frozen=True)
class TerminalRequest:
    """What `abx exec --tty` was asked for. No command is a login shell; no timeout is none."""

    command: str | None = None
    timeout_s: int | None = None
    sandbox: str | None = None
    cwd: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    template: str | None = None
    provider: str | None = None
    egress: Sequence[str] | None = None


def run_terminal(request: TerminalRequest) -> int:
    """Connect this terminal to a command or a shell, and give its exit status.

    Raises:
        Refused: this is no terminal, or the output is for a program.
    """
    invocation = current()
    if invocation.json:
        raise Refused("exclusive", "is for people; leave out --json.", field="--tty")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("terminal", "needs a terminal as stdin and stdout.", field="--tty")
    return run_async(lambda: _run(request, invocation))


async def _run(request: TerminalRequest, invocation: Invocation) -> int:
    mine = request.sandbox is None
    if request.sandbox is None:
        sandbox = await AsyncSandbox.create(
            request.template, timeout=_LIFETIME_S, provider=request.provider, egress=request.egress
        )
        sandbox.link.lifetime_s = _LIFETIME_S
    else:
        sandbox = await AsyncSandbox.connect(request.sandbox, provider=request.provider)
    try:
        cols, rows = os.get_terminal_size(sys.stdin.fileno())
        terminal = await sandbox.pty.create(
            request.command,
            cols=cols or 80,
            rows=rows or 24,
            cwd=request.cwd,
            envs={"TERM": os.environ.get("TERM", "xterm-256color"), **request.envs},
            timeout=request.timeout_s,
            on_data=_show,
        )
        result = await _attend(sandbox, terminal, renews=mine)
    finally:
        await leave(sandbox, keep=not mine)
    return _HUNG_UP if result is None else command_status(result, invocation)


async def _attend(sandbox: AsyncSandbox, terminal: AsyncTerminal, *, renews: bool) -> CommandResult | None:
    """Pass on what is typed and shown until the end of what runs there; None where this terminal went away first."""
    result: CommandResult | None = None
    failure: ClocheError | None = None
    try:
        with raw_mode(sys.stdin.fileno()):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_type, terminal, tasks.cancel_scope)
                tasks.start_soon(_resize, terminal)
                if renews:
                    tasks.start_soon(_renew, sandbox)
                try:
                    result = await terminal.wait()
                except CommandTimeout as late:
                    result = late.result
                except ClocheError as error:
                    failure = error
                tasks.cancel_scope.cancel()
    finally:
        if result is None:
            # Nobody is there to use it any more: hang up, as a terminal does.
            with anyio.CancelScope(shield=True), anyio.move_on_after(_KILL_BOUND_S), suppress(ClocheError):
                await terminal.kill()
    if failure is not None:
        raise failure
    return result


async def _type(terminal: AsyncTerminal, everything: anyio.CancelScope) -> None:
    fd = sys.stdin.fileno()
    # What fails here ends what is waited for, and that tells.
    with suppress(ClocheError):
        while typed := await _typed(fd):
            await terminal.send(typed)
        everything.cancel()


async def _typed(fd: int) -> bytes:
    """What was typed; empty when this terminal is gone."""
    await anyio.wait_readable(fd)
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:
        return b""


async def _resize(terminal: AsyncTerminal) -> None:
    with suppress(ClocheError), anyio.open_signal_receiver(signal.SIGWINCH) as changes:
        async for _ in changes:
            cols, rows = os.get_terminal_size(sys.stdin.fileno())
            await terminal.resize(cols or 80, rows or 24)


async def _renew(sandbox: AsyncSandbox) -> None:
    while True:
        await anyio.sleep(_RENEW_EVERY_S)
        with suppress(ClocheError):
            await sandbox.link.renew()


def _show(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(sys.stdout.fileno(), rest) :]
        except OSError as error:
            raise ReaderGone from error


@contextmanager
def raw_mode(fd: int) -> Generator[None]:
    """Hand every key to the program, also Ctrl+C; the terminal is as before when the block is left."""
    import termios
    import tty

    before = termios.tcgetattr(fd)
    # Drained, not flushed: what was typed ahead is for the program.
    tty.setraw(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        # A terminal that is gone needs no more.
        with suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
