"""Code in a sandbox, through the interpreter of its agent."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio

from cloche_contract.agent import HEADER_KILL_ON_DISCONNECT, HEADER_SANDBOX_PORT, INTERPRETER_EXECUTE
from cloche_contract.errors import CommandTimeout, InvalidArgument, SandboxExpired, SandboxLost

from .contexts import INTERPRETER_PORT
from .data_plane import AgentChannel
from .endings import KILLED_EXIT_CODE, UNKNOWN_EXIT_CODE, denials, raise_for_end
from .following import leave
from .link import SandboxLink
from .output import CapturedText, OutputCallback, OutputCapture
from .output_limit import output_limit_bytes
from .results import CodeError, CodeResult, Execution, OutputFile
from .terminal_text import CleanCapture
from .unpublished import unpublished

__all__ = ["CodeRequest", "execute_code", "run_code"]

DEFAULT_TIMEOUT_S = 30
INTERRUPT_GRACE_S = 2.0
RESULTS_KEPT = 100
RESULTS_KEPT_BYTES = 16_777_216
# Keys of a result line that are not a representation of the value.
_NOT_FORMATS = frozenset({"type", "is_main_result", "extra", "timestamp"})


@dataclass(frozen=True)
class CodeRequest:
    """Code, and where and how it runs.

    `context` is the id of an interpreter; without one it is the default one of the language, python where that is
    left out. `output_limit` bytes are printed at most, 0 is no limit; None is the setting, or no limit where a callback
    takes the output. Of results, at most `max_results` come with more than their text, each form of at most
    `max_result_bytes`; the rest become output files.
    """

    code: str
    language: str | None = None
    context: str | None = None
    timeout_s: int = DEFAULT_TIMEOUT_S
    envs: Mapping[str, str] | None = None
    output_limit: int | None = None
    clean: bool = False
    max_results: int | None = None
    max_result_bytes: int | None = None


class ExecutionReader:
    """Collects the lines of one execution."""

    def __init__(
        self, on_stdout: OutputCallback | None, on_stderr: OutputCallback | None, *, clean: bool = False
    ) -> None:
        self.begun = False
        make = CleanCapture if clean else OutputCapture
        self._captures = {"stdout": make(), "stderr": make()}
        self._callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._results: list[CodeResult] = []
        self._results_bytes = 0
        self._left_out = 0
        self._replaced = False
        self._error: CodeError | None = None
        self._end: Mapping[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether the end was told."""
        return self._end is not None

    def take(self, line: Mapping[str, Any]) -> None:
        """Take one line; kinds that are not known are skipped, for the protocol grows."""
        self.begun = True
        kind = line.get("type")
        if kind == "stdout" or kind == "stderr":
            text = str(line.get("text", ""))
            self._captures[kind].feed(text.encode("utf-8", "replace"))
            self._replaced = self._replaced or bool(line.get("replaced"))
            call = self._callbacks[kind]
            if call is not None:
                call(text)
        elif kind == "result":
            self._take_result(line)
        elif kind == "error":
            self._error = CodeError(*(str(line.get(key, "")) for key in ("name", "value", "traceback")))
        elif kind == "end_of_execution":
            self._end = line

    def _take_result(self, line: Mapping[str, Any]) -> None:
        formats = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in line.items()
            if key not in _NOT_FORMATS and value is not None
        }
        size = sum(map(len, formats.values()))
        if len(self._results) >= RESULTS_KEPT or self._results_bytes + size > RESULTS_KEPT_BYTES:
            self._left_out += 1
            return
        self._results_bytes += size
        self._results.append(CodeResult(formats, bool(line.get("is_main_result"))))

    def result(self, interrupted_by: str | None = None) -> Execution:
        """How it ended; `interrupted_by` where no end was sent."""
        end: Mapping[str, Any] = self._end or {}
        if self._end is None:
            stop_reason = interrupted_by or "sandbox_lost"
            exit_code = KILLED_EXIT_CODE if stop_reason == "timeout" else UNKNOWN_EXIT_CODE
        else:
            stop_reason = str(end.get("stop_reason") or ("timeout" if end.get("timed_out") else "exit"))
            exit_code = int(end.get("exit_code", 1 if self._error is not None else 0))
        return Execution(
            exit_code=exit_code,
            stop_reason=stop_reason,
            stdout_captured=self._captured("stdout", end),
            stderr_captured=self._captured("stderr", end),
            results=tuple(self._results),
            error=self._error,
            state_kept=bool(end.get("state_kept", False)),
            output_files=tuple(
                OutputFile(str(file["name"]), str(file["path"]), int(file["size"]))
                for file in end.get("output_files", ())
            ),
            results_left_out=self._left_out,
            restarted_because=end.get("context_restarted"),
            text_replaced=self._replaced or bool(end.get("replaced")),
            denied=denials(end.get("denied", ())),
            unpublished=unpublished(end.get("published", {})),
        )

    def _captured(self, name: str, end: Mapping[str, Any]) -> CapturedText:
        """The stream with the count of the agent, which saw its bytes before any were replaced."""
        captured = self._captures[name].result()
        total = end.get(f"{name}_bytes")
        return replace(captured, total_bytes=total) if isinstance(total, int) else captured


async def execute_code(
    link: SandboxLink,
    request: CodeRequest,
    *,
    on_stdout: OutputCallback | None = None,
    on_stderr: OutputCallback | None = None,
) -> Execution:
    """Run code. A timeout or a lost sandbox is data: `stop_reason` tells.

    Raises:
        InvalidArgument: a language and a context were given.
        UnsupportedLanguage, ContextNotFound, InterpreterFailed: nothing ran.
        SandboxLost, SandboxExpired: the sandbox is gone, and nothing ran.
    """
    reader = ExecutionReader(on_stdout, on_stderr, clean=request.clean)
    streamed = on_stdout is not None or on_stderr is not None
    message = _message(request, output_limit_bytes(link, request.output_limit, streamed=streamed))
    # Leaving the block below cuts the stream; the agent then interrupts the code, and kills it 2 s later.
    headers = {HEADER_SANDBOX_PORT: INTERPRETER_PORT, HEADER_KILL_ON_DISCONNECT: "1"}
    channel = AgentChannel(link)
    try:
        with channel.overdue_after(request.timeout_s), _kept_here(link, request.timeout_s):
            async with aclosing(channel.stream(INTERPRETER_EXECUTE, message, headers=headers)) as lines:
                async for line in lines:
                    reader.take(line)
                    if reader.ended:
                        await leave(lines)
    except CommandTimeout:
        return reader.result("timeout")
    except (SandboxLost, SandboxExpired):
        if not reader.begun:
            raise
        return reader.result("sandbox_lost")
    return reader.result()


@contextmanager
def _kept_here(link: SandboxLink, timeout_s: float) -> Generator[None]:
    """The timeout of code, where the interpreter knows none: cutting the stream interrupts the code there.

    Raises:
        CommandTimeout: it is over.
    """
    with anyio.move_on_after(math.inf if link.runs_our_agent else timeout_s + INTERRUPT_GRACE_S) as scope:
        yield
    if scope.cancelled_caught:
        raise CommandTimeout


def _message(request: CodeRequest, output_limit: int) -> dict[str, Any]:
    if request.context is not None and request.language is not None:
        # The interpreter has a language of its own.
        raise InvalidArgument(field="language", rule="not")
    where = {"language": request.language or "python"} if request.context is None else {"context_id": request.context}
    message: dict[str, Any] = {"code": request.code, **where, "timeout_ms": request.timeout_s * 1000}
    if output_limit:
        message["output_limit"] = output_limit
    if request.envs:
        message["env_vars"] = dict(request.envs)
    for name in ("max_results", "max_result_bytes"):
        if (value := getattr(request, name)) is not None:
            message[name] = value
    return message


async def run_code(
    link: SandboxLink,
    request: CodeRequest,
    *,
    on_stdout: OutputCallback | None = None,
    on_stderr: OutputCallback | None = None,
) -> Execution:
    """As `execute_code`, but a timeout or a lost sandbox is raised."""
    execution = await execute_code(link, request, on_stdout=on_stdout, on_stderr=on_stderr)
    raise_for_end(execution)
    return execution
