"""Cloche's own side of the trials: sandboxes through the SDK."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from cloche_contract.errors import ClocheError
from cloche_contract.provider import CreateRequest, InspectRequest
from cloche_sdk import AsyncSandbox
from cloche_sdk.providers import Doors, ProviderPool
from tests.benchmarks.programs import ANSWER, CODE

WARM_TEMPLATE = "code-interpreter-v1"
_SETTLED_S = 8
NUMPY_CODE = "import numpy\nprint(int(numpy.arange(7).sum()) * 2)"


class LocalSandboxes:
    """Create, run and kill through one provider; one trial of a create gives one for `kill`."""

    def __init__(self, pool: ProviderPool) -> None:
        self._pool = pool
        self._kill_seconds: list[float] = []

    async def create(self, template: str = "base", timeout_s: int = 120) -> AsyncSandbox:
        """A sandbox, as a server makes one that has made others before."""
        return await AsyncSandbox.create_in(self._pool, CreateRequest(template=template, timeout=timeout_s), "local")

    async def create_to_first_result(self, template: str) -> float:
        """Seconds from the request to the output of code."""
        started = time.perf_counter()
        return await self._use(await self.create(template), started)

    async def create_right_after(self, template: str) -> float:
        """The same in the moment after another create, which took what waited first."""
        first = await self.create(template)
        try:
            return await self.create_to_first_result(template)
        finally:
            await first.kill()
            await first.link.aclose()

    async def alone_to_first_result(self) -> float:
        """As a program does that makes sandboxes by `AsyncSandbox.create`."""
        started = time.perf_counter()
        sandbox = await AsyncSandbox.create("base", timeout=60, provider="local")
        try:
            return await self._use(sandbox, started)
        finally:
            await sandbox.close()

    async def _use(self, sandbox: AsyncSandbox, started: float) -> float:
        try:
            await self.answer(sandbox, CODE)
            seconds = time.perf_counter() - started
        finally:
            killed = time.perf_counter()
            await sandbox.kill()
            self._kill_seconds.append(time.perf_counter() - killed)
            await sandbox.link.aclose()
        return seconds

    async def kill(self) -> float:
        """What the last kill took for its caller."""
        return self._kill_seconds[-1]

    async def first_call(self, template: str, code: str) -> float:
        """Seconds of the first code in a sandbox that is there."""
        sandbox = await self.create(template)
        started = time.perf_counter()
        return await self._use_made(sandbox, code, started)

    async def _use_made(self, sandbox: AsyncSandbox, code: str, started: float) -> float:
        try:
            await self.answer(sandbox, code)
            return time.perf_counter() - started
        finally:
            await sandbox.kill()
            await sandbox.link.aclose()

    async def answer(self, sandbox: AsyncSandbox, code: str) -> float:
        """Seconds of one `run_code` that must print the answer."""
        started = time.perf_counter()
        execution = await sandbox.run_code(code)
        seconds = time.perf_counter() - started
        if execution.stdout.strip() != ANSWER:
            raise RuntimeError("the code did not print its answer")
        return seconds

    async def at_once(self, count: int) -> float:
        """Seconds until `count` sandboxes were made, ran code and are gone; fails where one of them fails."""
        failures: list[ClocheError] = []

        async def one() -> None:
            try:
                await self.create_to_first_result("base")
            except ClocheError as error:
                failures.append(error)

        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(one)
        seconds = time.perf_counter() - started
        if failures:
            raise RuntimeError(f"{count - len(failures)} of {count} worked; the first failure: {failures[0].code}")
        return seconds

    async def settle(self) -> None:
        """Give what makes the sandboxes the time to practise that a server gives it before it has many."""
        sandbox = await self.create()
        await sandbox.kill()
        await sandbox.link.aclose()
        await anyio.sleep(_SETTLED_S)

    async def is_warm(self) -> bool:
        """Wait until the stage with numpy serves; False where numpy is not installed for it."""
        with anyio.move_on_after(30):
            while True:
                sandbox = await self.create(WARM_TEMPLATE)
                try:
                    execution = await sandbox.run_code("import sys; print('numpy' in sys.modules)")
                finally:
                    await sandbox.kill()
                    await sandbox.link.aclose()
                if execution.stdout.strip() == "True":
                    return True
                await anyio.sleep(0.2)
        return False


@asynccontextmanager
async def local_sandboxes() -> AsyncGenerator[LocalSandboxes]:
    """Sandboxes of one provider."""
    pool = ProviderPool(Doors())
    try:
        yield LocalSandboxes(pool)
    finally:
        await pool.aclose()


class Memory:
    """The private dirty memory of idle sandboxes, one after the other."""

    def __init__(self, alive: list[AsyncSandbox]) -> None:
        self._alive = alive
        self._next = 0

    async def bare(self) -> float:
        """Megabytes of the next sandbox's keeper and init."""
        sandbox = self._alive[self._next % len(self._alive)]
        keeper, init, _interpreters = await _processes(sandbox)
        return (_private_dirty_kb(keeper) + _private_dirty_kb(init)) / 1024

    async def with_interpreter(self) -> float:
        """The same with its Python context."""
        sandbox = self._alive[self._next % len(self._alive)]
        self._next += 1
        keeper, init, interpreters = await _processes(sandbox)
        return sum(map(_private_dirty_kb, (keeper, init, *interpreters))) / 1024


async def _processes(sandbox: AsyncSandbox) -> tuple[int, int, list[int]]:
    inspected = await sandbox.link.provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))
    keeper = int(inspected.facts["keeper_pid"])
    with anyio.fail_after(20):
        while True:
            inits = _children(keeper)
            if inits and (interpreters := _children(inits[0])):
                return keeper, inits[0], interpreters
            await anyio.sleep(0.01)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _private_dirty_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1])
    raise RuntimeError("the kernel tells no private memory")
