"""Zygotes are shared by everybody in a process, and by nobody outside it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from cloche_contract.provider import CreateRequest, KillRequest, ListRequest, ProviderOptions
from cloche_local import early
from cloche_local.launcher import Settings
from cloche_local.launchers import Launchers
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import is_running, until_gone

REQUEST = CreateRequest(template="base", timeout=60)


def _provider(folder: Path, launchers: Launchers) -> LocalProvider:
    settings = {"local_state_dir": str(folder / "state"), "local_runtime_dir": str(folder / "run")}
    return LocalProvider(ProviderOptions(settings=settings, environ={}), launchers=launchers)


@asynccontextmanager
async def _registry(idle_s: float = 60) -> AsyncGenerator[Launchers]:
    launchers = Launchers(idle_s)
    try:
        yield launchers
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(launchers.end_all)


def _children() -> set[int]:
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # a thread that ended meanwhile
            text = Path(f"/proc/self/task/{thread}/children").read_text()
            found.update(int(pid) for pid in text.split() if is_running(int(pid)))
    return found


def _has_one_child() -> bool:
    """Whether there is one at rest: what helped to start it may take a moment to end."""
    for _ in range(200):
        if len(_children()) == 1:
            return True
        time.sleep(0.05)
    return False


async def _use(provider: LocalProvider) -> None:
    made = await provider.create(REQUEST)
    await provider.kill(KillRequest(sandbox_id=made.sandbox_id))


async def test_two_providers_of_a_process_share_one_zygote(folder: Path, usable: None) -> None:
    """Issue 2, speed: the second sandbox of a program starts no second zygote, and one user's end is not another's."""
    before = _children()
    async with _registry() as launchers:
        first, second = _provider(folder, launchers), _provider(folder, launchers)
        await _use(first)
        zygotes = _children() - before
        assert len(zygotes) == 1
        await _use(second)
        assert _children() - before == zygotes
        await first.close()
        await _use(second)
        await second.close()
        third = _provider(folder, launchers)
        await _use(third)
        await third.close()
        assert zygotes <= _children()
    for pid in _children() - before:
        # What waited in it ends with it, but not in its last moment.
        await until_gone(pid)


async def test_a_zygote_ends_when_nobody_has_used_it_for_a_while(folder: Path, usable: None) -> None:
    """Nothing of it stays: no process, no descriptor."""
    async with _registry(idle_s=0) as launchers:
        # A process holds on to what it makes sandboxes of: that is not the zygote's.
        provider = _provider(folder, launchers)
        await _use(provider)
        await provider.close()
    before, descriptors = _children(), len(os.listdir("/proc/self/fd"))
    async with _registry(idle_s=0.05) as launchers:
        provider = _provider(folder, launchers)
        await _use(provider)
        (zygote,) = _children() - before
        await provider.close()
        await until_gone(zygote)
        with anyio.fail_after(10):
            while len(os.listdir("/proc/self/fd")) > descriptors:
                await anyio.sleep(0.001)


async def test_a_user_that_comes_back_in_time_keeps_it(folder: Path, usable: None) -> None:
    """Its end was planned, and is not any more."""
    before = _children()
    others = set(threading.enumerate())
    # Long enough for a busy machine; nobody waits so long, as its end is called off.
    async with _registry(idle_s=60) as launchers:
        provider = _provider(folder, launchers)
        await _use(provider)
        zygotes = _children() - before
        await provider.close()
        again = _provider(folder, launchers)
        await _use(again)
        # Ends as soon as nothing is left to wait for. Other tests' threads may wait longer.
        for thread in [thread for thread in set(threading.enumerate()) - others if thread.name == "cloche-idle"]:
            await anyio.to_thread.run_sync(thread.join)
        await _use(again)
        assert _children() - before == zygotes
        await again.close()


async def test_other_settings_get_a_zygote_of_their_own(folder: Path, usable: None) -> None:
    """What is told to a zygote once must be what its user wants."""
    before = _children()
    async with _registry() as launchers:
        (folder / "other").mkdir()
        providers = [_provider(folder, launchers), _provider(folder / "other", launchers)]
        for provider in providers:
            await _use(provider)
        assert len(_children() - before) == 2
        for provider in providers:
            await provider.close()


async def test_a_zygote_that_dies_is_replaced_for_everybody(folder: Path, usable: None) -> None:
    """One user's failure is not the next one's."""
    before = _children()
    async with _registry() as launchers:
        first, second = _provider(folder, launchers), _provider(folder, launchers)
        await _use(first)
        await _use(second)
        (zygote,) = _children() - before
        os.kill(zygote, signal.SIGKILL)
        await until_gone(zygote)
        await _use(second)
        await _use(first)
        assert len(_children() - before) == 1
        for provider in (first, second):
            await provider.close()


async def test_threads_with_event_loops_of_their_own_share_it(folder: Path, usable: None) -> None:
    """The synchronous SDK, and programs that run several loops, meet in one zygote, also when they start together."""
    before, failures = _children(), list[BaseException]()
    async with _registry() as launchers:
        gate = threading.Barrier(4)

        def program() -> None:
            async def main() -> None:
                provider = _provider(folder, launchers)
                gate.wait(20)
                for _ in range(3):
                    await _use(provider)
                await provider.close()

            try:
                anyio.run(main)
            except BaseException as error:  # noqa: BLE001 - told by the test
                failures.append(error)

        threads = [threading.Thread(target=program) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await anyio.to_thread.run_sync(thread.join)
        assert failures == []
        assert len(_children() - before) == 1
        assert (await _provider(folder, launchers).list(ListRequest())).sandboxes == []


async def test_a_fork_shares_nothing_with_its_parent(folder: Path, usable: None) -> None:
    """It starts a zygote of its own, ends only that, and the parent's goes on."""
    async with _registry() as launchers:
        others = _children()
        provider = _provider(folder, launchers)
        await _use(provider)
        zygotes = _children() - others

        def fork() -> int:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    anyio.run(_use, provider)
                    status = 0 if _has_one_child() else 2
                finally:
                    os._exit(status)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        assert await anyio.to_thread.run_sync(fork) == 0
        assert zygotes <= _children()
        await _use(provider)
        await provider.close()


async def test_a_zygote_that_was_begun_early_is_the_first_ones(folder: Path, usable: None) -> None:
    """A command begins it before it has loaded what it needs to ask for a sandbox; one begun for nothing ends."""
    before = _children()
    early.begin()
    (zygote,) = _children() - before
    async with _registry() as launchers:
        provider = _provider(folder, launchers)
        await _use(provider)
        assert _children() - before == {zygote}
        await provider.close()
    early.begin()
    begun = early.take()
    assert begun is not None
    assert early.take() is None
    begun.control.close()
    await until_gone(begun.process.pid)
    assert begun.process.wait() == 0


def test_a_launcher_that_was_never_started_ends_at_once() -> None:
    """Leasing starts nothing."""
    settings = Settings("", "", "", 0, "", (), warm=False)
    launchers = Launchers(idle_s=0)
    launcher = launchers.lease_new("key", settings)
    assert launchers.lease_new("key", settings) is launcher
    assert launchers.lease("other") is None
    launcher.end()
