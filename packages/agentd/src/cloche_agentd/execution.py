"""One execution: what is asked for, what happens to it, how it ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from . import control, limits
from .link import LOST
from .output_budget import OutputBudget
from .sink import ExecutionSink


@dataclass(frozen=True, slots=True)
class Job:
    """One execution that is asked for."""

    code: str
    envs: Mapping[str, str]
    timeout_s: float | None
    max_result_bytes: int = limits.RESULT_BYTES
    max_results: int = limits.RESULTS
    language: str = ""
    output_limit: int | None = None


@dataclass(slots=True)
class Finish:
    """How an execution ended."""

    exit_code: int
    stop_reason: str = "exit"
    state_kept: bool = True
    error: dict[str, str] | None = None
    files: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Replaced:
    """Why a context has a new process. `exit_code` is that of the former one, 128 + signal where one ended it."""

    reason: Literal["timeout", "cancelled", "output_limit", "oom", "died"]
    exit_code: int = 128 + signal.SIGKILL

    def line(self) -> dict[str, object]:
        """Return the line that tells it to the next execution."""
        if self.reason in ("timeout", "cancelled", "output_limit"):
            text = "the interpreter did not stop when it was interrupted and was killed; its state is lost"
        else:
            text = death_text(self.exit_code, out_of_memory=self.reason == "oom")
        return {"type": "context_restarted", "reason": self.reason, "exit_code": self.exit_code, "text": text}


Event = tuple[
    Literal["done", "died", "gone", "interrupted", "ended", "output_limit"], control.Header | int | str | None
]
"""With the last frame, the wait status, or the name of what ended the context."""


class Run:
    """The execution that a context is busy with."""

    def __init__(self, sink: ExecutionSink, output_limit: int | None = None) -> None:
        self.sink = sink
        self.budget = OutputBudget(output_limit, lambda: self.tell(("output_limit", None)))
        self.files: list[str] = []
        self.event: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._over: Event | None = None

    def tell(self, event: Event) -> None:
        """Wake whoever waits for this execution."""
        if event[0] in ("done", "died", "ended"):
            self._over = self._over or event
        if not self.event.done():
            self.event.set_result(event)

    async def wait(self, seconds: float | None) -> Event | None:
        """Return what happened, or None when nothing did for `seconds`."""
        await asyncio.wait([self.event], timeout=seconds)
        return self.event.result() if self.event.done() else None

    def again(self) -> None:
        """Wait for another event: the code may still run. It may be over as well, just after what was told first."""
        self.event = asyncio.get_running_loop().create_future()
        if self._over is not None:
            self.event.set_result(self._over)


def exit_code_of(status: int) -> int:
    """Return the exit code that a wait status tells."""
    if status == LOST:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


_HINTS: Mapping[int, str] = {
    signal.SIGKILL: ", as happens when memory runs out",
    signal.SIGSYS: " for a system call that no sandbox may make",
}


def death_text(exit_code: int, *, out_of_memory: bool) -> str:
    """Say how an interpreter died."""
    if out_of_memory:
        return "the interpreter was killed because memory ran out; its state is lost"
    if exit_code <= 128:
        return f"the interpreter ended with exit code {exit_code}; its state is lost"
    number = exit_code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = _HINTS.get(number, "")
    return f"the interpreter was killed by {name}{hint}; its state is lost"


def finish_of(header: control.Header, files: list[str], limit_met: Callable[[], str | None]) -> Finish:
    """Return the end that the context tells, as far as its shape is right."""
    code = header.get("exit_code")
    exit_code = code if type(code) is int and 0 <= code <= 255 else 1
    reason = "memory_limit" if header.get("memory") is True else "exit"
    if exit_code and reason == "exit":
        reason = limit_met() or reason
    return Finish(exit_code, reason, error=error_of(header), files=files)


def error_of(header: control.Header) -> dict[str, str] | None:
    """Return the error that the context tells, bounded."""
    told = header.get("error")
    if not isinstance(told, dict):
        return None
    fields = cast("dict[object, object]", told)
    return {name: str(fields.get(name, ""))[: limits.TRACEBACK_CHARS * 2] for name in ("name", "value", "traceback")}


def failure(name: str, value: str) -> dict[str, str]:
    """Return an error of ours in the shape of an exception of the code."""
    return {"name": name, "value": value, "traceback": f"{name}: {value}"}
