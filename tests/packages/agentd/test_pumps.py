"""Pipes of the keeper, output scans and randomness: parts that a whole agent exercises only by chance."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import pytest

from cloche_agentd import context_process, limits
from cloche_agentd.config import KeeperHooks, User
from cloche_agentd.failures import AgentError
from cloche_agentd.outputs import OutputFiles, mark
from cloche_agentd.pumps import InputPipe, OutputPipe


def _pipe() -> tuple[int, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    return read_end, write_end


async def test_drain_takes_what_is_there_without_the_loop() -> None:
    """O6: output before the exit is complete even when the exit is seen first."""
    read_end, write_end = _pipe()
    seen: list[bytes] = []
    pipe = OutputPipe(read_end, seen.append)
    os.write(write_end, b"x" * 50_000)
    pipe.drain()
    assert b"".join(seen) == b"x" * 50_000
    pipe.close()
    os.close(write_end)


async def test_drain_ends_although_a_writer_goes_on() -> None:
    """T6: a background writer does not hold the answer; what comes later is not waited for."""
    read_end, write_end = _pipe()
    seen: list[bytes] = []

    def write_more(data: bytes) -> None:
        seen.append(data)
        with contextlib.suppress(BlockingIOError):
            os.write(write_end, b"later" * 1000)

    pipe = OutputPipe(read_end, write_more)
    os.write(write_end, b"first")
    pipe.drain()
    assert seen == [b"first"]
    pipe.close()
    os.close(write_end)


async def test_discarding_pipe_closes_at_the_writers_end() -> None:
    """T34: nothing is held for a program that has ended."""
    read_end, write_end = _pipe()
    pipe = OutputPipe(read_end, lambda _data: None)
    pipe.discard()
    os.write(write_end, b"x" * 65536)
    os.close(write_end)
    async with asyncio.timeout(5):
        while pipe.open:
            await asyncio.sleep(0)


async def test_input_of_a_program_that_does_not_read_is_bounded() -> None:
    """Queued input has a bound, and the refusal is typed."""
    read_end, write_end = _pipe()
    pipe = InputPipe(write_end)
    pipe.send(b"x" * limits.STDIN_QUEUE_BYTES)
    with pytest.raises(AgentError) as refusal:
        pipe.send(b"x" * 100_000)
    assert refusal.value.code == "resource_exhausted"
    pipe.close()
    os.close(read_end)


async def test_input_to_a_dead_reader_closes_quietly() -> None:
    """A program that closed its input is no error of the agent."""
    read_end, write_end = _pipe()
    pipe = InputPipe(write_end)
    os.close(read_end)
    pipe.send(b"x")
    assert not pipe.open


def test_file_is_told_once_within_one_step_of_the_clock(tmp_path: Path) -> None:
    """Stamps come in steps of milliseconds: a file of the execution before looks as new as this one's start."""
    outputs = OutputFiles(KeeperHooks(), User("user", 0, 0, str(tmp_path)))
    start = mark()
    (tmp_path / "made").write_text("1")
    assert [item["name"] for item in outputs.since(start, str(tmp_path), [])] == ["made"]
    assert outputs.since(start, str(tmp_path), []) == []


class _Recorder(Protocol):
    calls: int


def test_fork_gets_random_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """local-runtime: 100 forks otherwise share one numpy.random value; `random` itself reseeds in a fork."""
    module = ModuleType("numpy.random")
    recorder = cast("_Recorder", module)
    recorder.calls = 0

    def seed() -> None:
        recorder.calls += 1

    module.__dict__["seed"] = seed
    monkeypatch.setitem(sys.modules, "numpy.random", module)
    context_process.reseed()
    assert recorder.calls == 1
