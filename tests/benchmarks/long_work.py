"""Groups about background tasks and transfers in parts."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread

from cloche_sdk import AsyncSandbox
from cloche_sdk.transfers import PART_BYTES
from tests.benchmarks.measure import Contender, Group
from tests.benchmarks.sandboxes import local_sandboxes

PARTS = 64
GUEST_FILE = "/home/user/parts.bin"


@asynccontextmanager
async def task_group() -> AsyncGenerator[Group]:
    """A background task from its start to its first output, and one look at it."""
    async with AsyncExitStack() as stack:
        sandbox = await _sandbox(stack)
        known = await sandbox.tasks.start("echo done")

        async def first_output() -> float:
            started = time.perf_counter()
            task = await sandbox.tasks.start("echo 42")
            report = await sandbox.tasks.get(task.task_id, wait=30)
            seconds = time.perf_counter() - started
            if report.stdout.text != "42\n":
                raise RuntimeError("another output came back")
            return seconds

        async def look() -> float:
            started = time.perf_counter()
            await sandbox.tasks.get(known.task_id)
            return time.perf_counter() - started

        async def run() -> float:
            started = time.perf_counter()
            await sandbox.commands.run("echo 42")
            return time.perf_counter() - started

        start, command = (
            Contender("start_task to first output", first_output),
            Contender("the same by run_command", run),
        )
        plain = Contender("sh -c, no sandbox", partial(anyio.to_thread.run_sync, _shell))
        yield Group("Background tasks", [start, command, plain, Contender("get_task", look)])


@asynccontextmanager
async def parts_group() -> AsyncGenerator[Group]:
    """A file in parts of 1 MiB, hashed on both sides, against a plain copy that is hashed too."""
    block = os.urandom(PART_BYTES)
    async with AsyncExitStack() as stack:
        sandbox = await _sandbox(stack)
        # In memory, as the sandbox's files are.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cloche-parts-", dir="/dev/shm"))

        async def up() -> float:
            started, transfer = time.perf_counter(), None
            for number in range(PARTS):
                part = await sandbox.transfers.upload(
                    GUEST_FILE, block, transfer_id=transfer, offset=number * PART_BYTES, last=number == PARTS - 1
                )
                transfer = part.transfer_id
            return time.perf_counter() - started

        async def down() -> float:
            started, offset, eof = time.perf_counter(), 0, False
            digest = hashlib.sha256()
            while not eof:
                part = await sandbox.transfers.download(GUEST_FILE, offset=offset)
                digest.update(part.data)
                offset, eof = offset + len(part.data), part.eof
            return time.perf_counter() - started

        into, out = Contender("cloche, upload in parts", up), Contender("cloche, download in parts", down)
        copy = Contender(
            "a plain copy, no sandbox", partial(anyio.to_thread.run_sync, partial(_copy, Path(folder), block))
        )
        yield Group(f"{PARTS} MiB in parts", [into, out, copy])


async def _sandbox(stack: AsyncExitStack) -> AsyncSandbox:
    sandboxes = await stack.enter_async_context(local_sandboxes())
    sandbox = await sandboxes.create(timeout_s=600)
    stack.push_async_callback(sandbox.link.aclose)
    stack.push_async_callback(sandbox.kill)
    return sandbox


def _shell() -> float:
    started = time.perf_counter()
    subprocess.run(["sh", "-c", "echo 42"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - started


def _copy(folder: Path, block: bytes) -> float:
    """Write a file block by block and hash it."""
    started = time.perf_counter()
    digest = hashlib.sha256()
    with (folder / "copy.bin").open("wb") as file:
        for _ in range(PARTS):
            file.write(block)
            digest.update(block)
    return time.perf_counter() - started
