"""Progress: at once, then at least every 20 s, rising, and only for whoever asked."""

import anyio
import pytest

from cloche_contract.kernel.toolset import ToolCall
from cloche_contract.sandbox import RunCommandInput, RunCommandOutput
from cloche_contract.serving.calls import PROGRESS_INTERVAL_S
from tests.contract.serving_session import MODES, ran, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("mode", MODES)]


class HandClock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._passed = anyio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._passed.acquire()

    def pass_interval(self) -> None:
        self._passed.release()


class Heard:
    """The progress notifications that a client got, and a way to wait for them."""

    def __init__(self) -> None:
        self.values: list[tuple[float, str | None]] = []
        self._more = anyio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.values.append((progress, message))
        self._more.set()

    async def wait_for(self, count: int) -> None:
        while len(self.values) < count:
            self._more = anyio.Event()
            await self._more.wait()


async def test_t28_a_waiting_client_hears_at_once_and_then_at_every_interval(mode: str) -> None:
    clock, heard, done = HandClock(), Heard(), anyio.Event()

    async def wait(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        await done.wait()
        return ran()

    async with serving(mode, {"sleep": clock.sleep}, run_command=wait) as client, anyio.create_task_group() as calls:

        async def call() -> None:
            await client.call_tool("run_command", {"command": "x"}, progress_callback=heard)

        calls.start_soon(call)
        await heard.wait_for(1)
        for count in (2, 3):
            clock.pass_interval()
            await heard.wait_for(count)
        done.set()
    assert heard.values == [(0, "started"), (1, "still running"), (2, "still running")]
    assert set(clock.asked) == {PROGRESS_INTERVAL_S}
    assert PROGRESS_INTERVAL_S <= 20


async def test_t28_values_rise_whatever_the_handler_reports(mode: str) -> None:
    heard = Heard()

    async def report(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        for value in (10, 10, 3, 50):
            await call.report(value, "working")
        return ran()

    async with serving(mode, run_command=report) as client:
        await client.call_tool("run_command", {"command": "x"}, progress_callback=heard)
        await heard.wait_for(5)
    assert [value for value, _ in heard.values] == [0, 10, 11, 12, 50]


async def test_t28_nothing_is_sent_to_whoever_did_not_ask(mode: str) -> None:
    clock = HandClock()

    async def report(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        await call.report(1, "working")
        return ran()

    async with serving(mode, {"sleep": clock.sleep}, run_command=report) as client:
        await client.call_tool("run_command", {"command": "x"})
    assert clock.asked == []


async def test_no_progress_comes_after_the_answer(mode: str) -> None:
    clock, heard = HandClock(), Heard()
    kept: list[ToolCall] = []

    async def keep(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        kept.append(call)
        return ran()

    async with serving(mode, {"sleep": clock.sleep}, run_command=keep) as client:
        await client.call_tool("run_command", {"command": "x"}, progress_callback=heard)
        clock.pass_interval()
        await kept[0].report(7, "late")
        await client.call_tool("run_command", {"command": "x"})
    assert heard.values == [(0, "started")]
