"""A session that is opened by need: once, again after a failure, and closed for certain."""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from mcp import Client

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.kernel.toolset import ToolSession
from cloche_contract.serving import LazySession, ToolServer
from cloche_contract.serving.calls import LiveCall
from tests.contract.serving_session import Session

pytestmark = pytest.mark.anyio


class Opener:
    """Opens sessions as the test says, and remembers what it did."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.failures: list[Exception] = []
        self.slow = False

    def __call__(self) -> AbstractAsyncContextManager[ToolSession]:
        self.log.append("load")
        if self.failures:
            raise self.failures.pop()
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[ToolSession]:
        self.log.append("enter")
        try:
            if self.slow:
                await anyio.sleep_forever()
            yield Session(greet=self._greet)
        finally:
            self.log.append("leave")

    @staticmethod
    async def _greet(request: str, call: object) -> str:
        return f"hello {request}"


@asynccontextmanager
async def running(opener: Callable[[], AbstractAsyncContextManager[ToolSession]]) -> AsyncGenerator[LazySession]:
    session = LazySession(opener)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as owner:
            owner.start_soon(session.run)
            yield session
            session.begin_close()


async def test_nothing_is_opened_until_it_is_wanted() -> None:
    opener = Opener()
    async with running(opener):
        await anyio.wait_all_tasks_blocked()
    assert opener.log == []


async def test_many_first_calls_open_one_session() -> None:
    opener = Opener()
    async with running(opener) as session:
        got: list[ToolSession] = []

        async def get() -> None:
            got.append(await session.get())

        async with anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(get)
        assert len({id(each) for each in got}) == 1
    assert opener.log == ["load", "enter", "leave"]


async def test_handlers_are_found_by_name_and_open_the_session() -> None:
    async with running(Opener()) as session:
        assert await session.handlers.greet("you", LiveCall(None)) == "hello you"


async def test_a_failure_belongs_to_the_call_and_the_next_call_tries_again() -> None:
    opener = Opener()
    opener.failures.append(ConfigurationInvalid(setting="ABX_PROVIDER"))
    async with running(opener) as session:
        with pytest.raises(ConfigurationInvalid):
            await session.get()
        await session.get()
    assert opener.log == ["load", "load", "enter", "leave"]


async def test_a_failed_opening_in_the_background_harms_nobody() -> None:
    opener = Opener()
    opener.failures.append(RuntimeError("cannot import"))
    async with running(opener) as session:
        session.want()
        await anyio.wait_all_tasks_blocked()
        await session.get()


async def test_only_a_session_opened_ahead_of_the_first_call_loads_what_later_calls_need() -> None:
    """The first call must not wait for the models of the other tools."""
    for ahead in (True, False):
        warmed = threading.Event()
        opener = Opener()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as owner:
                session = LazySession(opener, warmed.set)
                owner.start_soon(session.run)
                if ahead:
                    session.want()
                    await anyio.to_thread.run_sync(warmed.wait)
                else:
                    await session.get()
                session.begin_close()
        assert warmed.is_set() is ahead


async def test_a_list_opens_the_session_once_and_only_after_its_answer() -> None:
    opener = Opener()
    opener.failures.append(RuntimeError("cannot import"))
    async with running(opener) as session:
        tools = ToolServer("sandbox", session)
        async with Client(tools.server, mode="legacy") as client:
            tools.on_answer()
            await client.list_tools()
            await anyio.wait_all_tasks_blocked()
            assert opener.log == []
            for _ in range(3):
                tools.on_answer()
                await session_settled(session)
    assert opener.log == ["load"]


async def session_settled(session: LazySession) -> None:
    """Give an opening in a worker thread the time that it takes."""
    await anyio.to_thread.run_sync(lambda: None)
    await anyio.wait_all_tasks_blocked()


async def test_closing_stops_an_opening_that_hangs() -> None:
    """Checklist 320: an end while the first create is in flight."""
    opener = Opener()
    opener.slow = True
    async with running(opener) as session:
        session.want()
        while "enter" not in opener.log:
            await anyio.lowlevel.checkpoint()
    assert opener.log == ["load", "enter", "leave"]


async def test_a_cancelled_owner_leaves_the_session() -> None:
    opener = Opener()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as owner:
            session = LazySession(opener)
            owner.start_soon(session.run)
            await session.get()
            owner.cancel_scope.cancel()
    assert opener.log == ["load", "enter", "leave"]
