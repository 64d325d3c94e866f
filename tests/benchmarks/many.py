"""Groups about many sandboxes at once, their memory, and large files."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from cloche_sdk import AsyncSandbox
from tests.benchmarks.measure import MEGABYTES, Contender, Goal, Group, Trial
from tests.benchmarks.programs import CODE, plain_python, run_many
from tests.benchmarks.sandboxes import LocalSandboxes, Memory, local_sandboxes

ALIVE = 100
FILE_BYTES = 64 << 20
GUEST_FILE = "/home/user/benchmark.bin"


@asynccontextmanager
async def at_once_group(count: int) -> AsyncGenerator[Group]:
    """Many sandboxes through one provider, each with code, against as many plain interpreters."""
    async with local_sandboxes() as sandboxes:
        with plain_python() as python:
            cloche = Contender(f"cloche, {count} sandboxes", partial(sandboxes.at_once, count))
            programs = partial(anyio.to_thread.run_sync, partial(run_many, (python, "-c", CODE), count))
            plain = Contender(f"python3 -c, {count} times, no sandbox", programs)
            goals = [Goal(cloche.name, plain.name, at_most_ratio=2)]
            yield Group(f"{count} at once: create, run code, kill", [cloche, plain], goals)


@asynccontextmanager
async def memory_group() -> AsyncGenerator[Group]:
    """What each of a hundred idle sandboxes has for itself."""
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(local_sandboxes())
        await sandboxes.settle()
        alive = [await _made(sandboxes, stack) for _ in range(ALIVE)]
        memory = Memory(alive)
        bare = Contender("keeper and init", memory.bare)
        whole = Contender("with a Python context", memory.with_interpreter)
        goals = [Goal(bare.name, at_most=5), Goal(whole.name, at_most=7)]
        yield Group(f"Private dirty memory of an idle sandbox, {ALIVE} alive", [bare, whole], goals, MEGABYTES)


async def _made(sandboxes: LocalSandboxes, stack: AsyncExitStack) -> AsyncSandbox:
    sandbox = await sandboxes.create(timeout_s=600)
    stack.push_async_callback(sandbox.kill)
    return sandbox


@asynccontextmanager
async def file_group() -> AsyncGenerator[Group]:
    """A large file, into a sandbox and out of it, against a pipe to a program that writes or reads one."""
    content = bytes(range(256)) * (FILE_BYTES // 256)
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(local_sandboxes())
        sandbox = await _made(sandboxes, stack)
        # In memory, as the sandbox's files are.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cloche-file-", dir="/dev/shm"))
        path = Path(folder, "benchmark.bin")

        async def write() -> float:
            started = time.perf_counter()
            await sandbox.files.write(GUEST_FILE, content)
            return time.perf_counter() - started

        async def read() -> float:
            started = time.perf_counter()
            found = await sandbox.files.read_bytes(GUEST_FILE)
            seconds = time.perf_counter() - started
            if found != content:
                raise RuntimeError("another content came back")
            return seconds

        into, out = Contender("cloche, files.write", write), Contender("cloche, files.read_bytes", read)
        pipe_in = Contender("a pipe to cat, no sandbox", _in_thread(partial(_pipe_in, path, content)))
        pipe_out = Contender("a pipe from cat, no sandbox", _in_thread(partial(_pipe_out, path, content)))
        goals = [Goal(into.name, pipe_in.name, at_most_ratio=2), Goal(out.name, pipe_out.name, at_most_ratio=2)]
        yield Group("64 MiB in and out", [into, pipe_in, out, pipe_out], goals)


def _in_thread(trial: Callable[[], float]) -> Trial:
    return partial(anyio.to_thread.run_sync, trial)


def _pipe_in(path: Path, content: bytes) -> float:
    started = time.perf_counter()
    with path.open("wb") as file:
        subprocess.run(["cat"], input=content, stdout=file, check=True)
    return time.perf_counter() - started


def _pipe_out(path: Path, content: bytes) -> float:
    started = time.perf_counter()
    found = subprocess.run(["cat", path], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    seconds = time.perf_counter() - started
    if found != content:
        raise RuntimeError("another content came back")
    return seconds
