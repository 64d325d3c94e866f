"""A sandbox for one program: made, used, killed, whatever happens in between."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict, cast

import anyio

from cloche_cli.documents import code_document, command_document
from cloche_cli.exit_status import TIMEOUT
from cloche_cli.figures import is_image, save_figures
from cloche_cli.invocation import Invocation, current, write_out
from cloche_cli.piping import fed_to_the_end
from cloche_cli.running import run_async
from cloche_cli.sandboxes import usable_id
from cloche_contract.errors import InvalidArgument, NotFound
from cloche_sdk import AsyncSandbox, CommandResult, CommandTimeout, Doors, Execution

_MARGIN_S: Final = 60  # a sandbox outlives its program by what making and killing may take
_SHORTEST_KEPT_S: Final = 300
_LONGEST_COMMAND: Final = 65_536
_LEAVING_BOUND_S: Final = 5
_STOPPED: Final = {
    "cancelled": "Run it again.",
    "memory_limit": "Let it use less memory at a time, or raise --memory where the provider can hold it.",
    "pids_limit": "Let it start fewer processes at a time.",
    "output_limit": "Let it write to a file instead.",
    "disk_full": "Let it write less.",
    "policy": "The sandbox does not allow what it tried.",
    "interpreter_died": "Look at its output: it ended its interpreter or used too much memory.",
    "sandbox_lost": "Run it again: its sandbox ended.",
}


@dataclass(frozen=True)
class RunRequest:
    """What `abx run` was asked for."""

    code: str
    language: str
    timeout_s: int
    template: str | None = None
    provider: str | None = None
    egress: Sequence[str] | None = None
    figures: Path = Path()
    keep: bool = False


@dataclass(frozen=True)
class ExecRequest:
    """What `abx exec` was asked for."""

    command: str
    timeout_s: int
    sandbox: str | None = None
    cwd: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    template: str | None = None
    provider: str | None = None
    egress: Sequence[str] | None = None
    stdin: bool = False


class _CommandOptions(TypedDict):
    cwd: str | None
    envs: Mapping[str, str]
    timeout: int
    on_stdout: Callable[[str], None] | None
    on_stderr: Callable[[str], None] | None


def shell_line(words: Sequence[str]) -> str:
    """One word is a line for the shell; several are quoted, so that each arrives as it is.

    Raises:
        InvalidArgument: blank, longer than 64 KiB, or with a NUL.
    """
    line = words[0] if len(words) == 1 else shlex.join(words)
    if not line.strip():
        raise InvalidArgument(field="command", rule="minLength", limit=1)
    if len(line) > _LONGEST_COMMAND:
        raise InvalidArgument(field="command", rule="maxLength", limit=_LONGEST_COMMAND)
    return line


def run_program(request: RunRequest) -> int:
    """Run a program in a sandbox of its own and give its exit status."""
    invocation = current()
    return run_async(lambda: _run_program(request, invocation))


def run_command(request: ExecRequest) -> int:
    """Run a shell command and give its exit status."""
    invocation = current()
    return run_async(lambda: _run_command(request, invocation))


async def _run_program(request: RunRequest, invocation: Invocation) -> int:
    shortest_s = _SHORTEST_KEPT_S if request.keep else 0
    sandbox = await _create(request.template, max(request.timeout_s, shortest_s), request.provider, request.egress)
    keep = False  # until it ran: an interrupted command leaves nothing, whatever was asked
    try:
        result = await _execute(sandbox, request, invocation)
        keep = request.keep
    finally:
        await leave(sandbox, keep=keep)
    saved = save_figures(result.results, request.figures)
    kept = usable_id(Doors(), sandbox.provider, sandbox.sandbox_id) if keep else None
    if invocation.json:
        invocation.emit({**code_document(result), "figures": [str(path) for path in saved], "sandbox_id": kept})
    else:
        _tell_results(result, saved, invocation, kept)
    return command_status(result, invocation)


async def _execute(sandbox: AsyncSandbox, request: RunRequest, invocation: Invocation) -> Execution:
    on_stdout, on_stderr = (None, None) if invocation.json else (write_out, _to_stderr)
    try:
        return await sandbox.run_code(
            request.code, request.language, timeout=request.timeout_s, on_stdout=on_stdout, on_stderr=on_stderr
        )
    except CommandTimeout as stopped:
        return cast("Execution", stopped.result)  # what run_code raises carries what run_code returns


async def _run_command(request: ExecRequest, invocation: Invocation) -> int:
    mine = request.sandbox is None
    if request.sandbox is None:
        sandbox = await _create(request.template, request.timeout_s, request.provider, request.egress)
    else:
        sandbox = await AsyncSandbox.connect(request.sandbox, provider=request.provider)
    on_stdout, on_stderr = (None, None) if invocation.json else (write_out, _to_stderr)
    options = _CommandOptions(
        cwd=request.cwd, envs=request.envs, timeout=request.timeout_s, on_stdout=on_stdout, on_stderr=on_stderr
    )
    try:
        if request.stdin:
            handle = await sandbox.commands.start(request.command, stdin=True, **options)
            result = await fed_to_the_end(handle)
        else:
            result = await sandbox.commands.run(request.command, **options)
    except CommandTimeout as stopped:
        result = stopped.result
    finally:
        await leave(sandbox, keep=not mine)
    if invocation.json:
        invocation.emit(command_document(result))
    return command_status(result, invocation)


async def _create(
    template: str | None, timeout_s: int, provider: str | None, egress: Sequence[str] | None
) -> AsyncSandbox:
    return await AsyncSandbox.create(template, timeout=timeout_s + _MARGIN_S, provider=provider, egress=egress)


async def leave(sandbox: AsyncSandbox, *, keep: bool) -> None:
    """Kill the sandbox, or only let go of it. Bounded, and also when this process is told to end."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_LEAVING_BOUND_S):
        try:
            if not keep:
                with suppress(NotFound):  # it may have ended by itself
                    await sandbox.kill()
        finally:
            await sandbox.close()


def _tell_results(result: Execution, saved: Sequence[Path], invocation: Invocation, kept: str | None) -> None:
    for shown in result.results:
        if shown.is_main_result and shown.text is not None and not is_image(shown):
            invocation.write(shown.text + "\n")
    if result.error is not None and not result.stderr_captured.total_bytes:
        sys.stderr.write(result.error.traceback.rstrip("\n") + "\n")
    for path in saved:
        invocation.note(f"saved {path}")
    for file in result.output_files:
        where = "in the sandbox" if kept else "in the sandbox, gone with it: --keep keeps both"
        invocation.note(f"wrote {file.path}, {file.size} bytes ({where})")
    if kept is not None:
        invocation.note(f"sandbox {kept} lives until its timeout; `abx sandbox kill {kept}` ends it")


def command_status(result: CommandResult, invocation: Invocation) -> int:
    """The exit status for a result; what ended it, and what was denied to it, is told."""
    for denial in result.denied:
        invocation.note(f"denied by the network allowlist: {denial.target}")
        rule = denial.rule or "a rule for its address"
        invocation.note(f"fix: --allow-net with {rule}, or abx sandbox network ID --allow for a living sandbox.")
    if result.timed_out:
        invocation.note("error: The program did not end in time and was stopped, with everything it had started.")
        invocation.note("fix: Give it more time with --timeout.")
        return TIMEOUT
    if result.stop_reason != "exit":
        invocation.note(f"error: The program was ended from outside ({result.stop_reason}).")
        invocation.note(f"fix: {_STOPPED[result.stop_reason]}")
    return result.exit_code


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
