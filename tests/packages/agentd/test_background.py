"""Work of the agent that nobody awaits."""

from __future__ import annotations

import asyncio
import warnings

from cloche_agentd.server import run_in_background


async def test_work_that_comes_when_the_agent_ends_is_dropped_in_silence() -> None:
    """The end of an interpreter may be noticed after the agent's task group has closed."""
    ran: list[str] = []

    async def work() -> None:
        ran.append("work")

    async with asyncio.TaskGroup() as tasks:
        run_in_background(tasks, work())
    assert ran == ["work"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in_background(tasks, work())
    assert ran == ["work"]


async def test_a_failure_in_the_background_ends_nothing_else() -> None:
    """In a task group it would otherwise cancel every request."""

    async def failing() -> None:
        raise ValueError

    async with asyncio.TaskGroup() as tasks:
        run_in_background(tasks, failing())
        await asyncio.sleep(0)
