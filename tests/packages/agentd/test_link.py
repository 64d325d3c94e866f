"""The link between keeper and init, and what the keeper makes of a hostile init."""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import os
import socket

import pytest

from cloche_agentd import limits, link
from cloche_agentd.link import LOST, InitLink, LinkLost, open_link


async def test_large_requests_travel_beside_the_message() -> None:
    """A request beyond one packet arrives whole, with its descriptors in order."""
    keeper_end, init_end = open_link()
    read_end, write_end = os.pipe()
    lost: list[bool] = []
    keeper = InitLink(keeper_end, lambda: lost.append(True))
    asking = asyncio.ensure_future(keeper.call({"op": "x", "env": "v" * 3_000_000}, [write_end]))
    await asyncio.sleep(0)
    received = link.receive(init_end)
    assert received is not None
    message, fds = received
    assert len(str(message["env"])) == 3_000_000
    assert len(fds) == 1
    os.write(fds[0], b"same pipe")
    assert os.read(read_end, 100) == b"same pipe"
    link.answer(init_end, {"id": message["id"], "found": True})
    assert (await asking)["found"] is True
    keeper.close()
    init_end.close()
    for fd in (read_end, write_end, *fds):
        os.close(fd)


async def test_exit_that_follows_the_start_at_once_is_not_missed() -> None:
    """The exit may be the very next message, before the caller runs again."""
    keeper_end, init_end = open_link()
    keeper = InitLink(keeper_end, lambda: None)
    starting = asyncio.ensure_future(keeper.start({"op": "spawn"}, []))
    await asyncio.sleep(0)
    link.answer(init_end, {"id": 1, "pid": 77})
    link.answer(init_end, {"pid": 77, "status": 256})
    started = await starting
    assert isinstance(started, tuple)
    assert await started[1] == 256
    keeper.close()
    init_end.close()


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b"[]",
        b"5",
        b'{"pid": "x"}',
        b'{"status": 1}',
        b'{"pid": 5, "status": -1}',
        b"[" * 50_000,
        b"x" * 70_000,
    ],
)
async def test_hostile_messages_end_the_link(data: bytes) -> None:
    """What is not a known shape ends the trust in this init; callers are told at once."""
    keeper_end, init_end = open_link()
    lost = asyncio.Event()
    keeper = InitLink(keeper_end, lost.set)
    asking = asyncio.ensure_future(keeper.call({"op": "x"}))
    await asyncio.sleep(0)
    init_end.send(data)
    with pytest.raises(LinkLost):
        await asyncio.wait_for(asking, 5)
    assert lost.is_set()
    init_end.close()


async def test_descriptors_from_init_are_dropped() -> None:
    """The keeper never takes a descriptor: the kernel closes what a hostile init sends along."""
    keeper_end, init_end = open_link()
    keeper = InitLink(keeper_end, lambda: None)
    asking = asyncio.ensure_future(keeper.call({"op": "x"}))
    await asyncio.sleep(0)
    before = len(os.listdir("/proc/self/fd"))
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 0, 0]))
    init_end.sendmsg([json.dumps({"id": 1, "found": False}).encode()], [rights])
    await asking
    assert len(os.listdir("/proc/self/fd")) == before
    keeper.close()
    init_end.close()


async def test_answers_nobody_asked_for_are_ignored() -> None:
    """Unknown ids and pids change nothing, and are not remembered."""
    keeper_end, init_end = open_link()
    keeper = InitLink(keeper_end, lambda: None)
    for number in range(50):
        link.answer(init_end, {"id": 1000 + number, "pid": number + 1})
        link.answer(init_end, {"pid": 5000 + number, "status": 0})
    asking = asyncio.ensure_future(keeper.call({"op": "x"}))
    await asyncio.sleep(0)
    link.answer(init_end, {"id": 1, "found": True})
    assert (await asking)["found"] is True
    keeper.close()
    init_end.close()


async def test_an_init_that_makes_the_keeper_talk_and_never_listens_is_given_up() -> None:
    """Each answer that nobody asked for makes the keeper say something: what waits to be read is bounded."""
    keeper_end, init_end = open_link()
    lost = asyncio.Event()
    InitLink(keeper_end, lost.set)
    init_end.setblocking(False)
    async with asyncio.timeout(20):
        while not lost.is_set():
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                init_end.send(b'{"id": 1000, "pid": 5}')
            await asyncio.sleep(0)
    init_end.close()


async def test_two_children_with_one_number_end_the_link() -> None:
    """The exit of the first would never be told: its stream would wait for ever."""
    keeper_end, init_end = open_link()
    lost = asyncio.Event()
    keeper = InitLink(keeper_end, lost.set)
    starting = [asyncio.ensure_future(keeper.start({"op": "spawn"}, [])) for _ in range(2)]
    await asyncio.sleep(0)
    for number in (1, 2):
        link.answer(init_end, {"id": number, "pid": 77})
    started = await starting[0]
    assert isinstance(started, tuple)
    with pytest.raises(LinkLost):
        await starting[1]
    assert await started[1] == LOST
    assert lost.is_set()
    init_end.close()


async def test_a_flood_of_messages_does_not_keep_the_keeper_from_other_work() -> None:
    """Other callbacks run between two portions of what init sends."""
    keeper_end, init_end = open_link()
    keeper = InitLink(keeper_end, lambda: None)
    asking = asyncio.ensure_future(keeper.call({"op": "x"}))
    await asyncio.sleep(0)
    for _ in range(3 * limits.LINK_READS):
        link.answer(init_end, {"pid": 5, "status": 0})
    link.answer(init_end, {"id": 1, "found": True})
    turns = 0
    async with asyncio.timeout(20):
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
    # In one portion it takes three.
    assert turns > 4
    keeper.close()
    init_end.close()
