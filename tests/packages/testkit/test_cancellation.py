"""The cancellation helper visits every await and delivers the cancellation there."""

import anyio
import pytest

from cloche_testkit.cancellation import cancel_at_each_await


async def test_it_cancels_at_each_await_in_turn() -> None:
    reached: list[int] = []

    async def run() -> None:
        done = 0
        try:
            for _ in range(3):
                await anyio.lowlevel.cancel_shielded_checkpoint()
                done += 1
            await anyio.sleep(0)
            done += 1
        finally:
            reached.append(done)

    rounds = await cancel_at_each_await(run, _nothing)
    assert rounds == len(reached) - 1
    assert reached[-1] == 4
    assert set(reached) >= {3, 4}


async def test_a_clean_up_that_awaits_is_allowed_to_finish() -> None:
    log: list[str] = []

    async def run() -> None:
        log.append("open")
        try:
            await anyio.sleep(0)
            await anyio.sleep(0)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)
            log.append("closed")

    async def balanced(_number: int) -> None:
        assert log.count("open") == log.count("closed")

    await cancel_at_each_await(run, balanced)
    assert log.count("closed") == log.count("open") >= 3


async def test_what_was_left_behind_is_found() -> None:
    left: list[int] = []

    async def leaky() -> None:
        left.append(1)
        await anyio.sleep(0)
        left.clear()

    async def nothing_left(number: int) -> None:
        assert left == [], f"left behind when cancelled at await {number}"

    with pytest.raises(AssertionError, match="await 1"):
        await cancel_at_each_await(leaky, nothing_left)


async def _nothing(_number: int) -> None:
    return None
