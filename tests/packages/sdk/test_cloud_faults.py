"""Every request of the provider `cloud`, gone wrong in every way: typed errors, nothing leaked, nothing left.

Source: issue 8, "Faults injected at each request"; faults L4 (E2B#1658); systems facts 2.3, 2.4.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

import anyio
import pytest

from cloche_contract.errors import (
    AuthenticationFailed,
    ClocheError,
    PermissionDenied,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    QuotaExceeded,
    SandboxNotFound,
    TemplateNotFound,
)
from cloche_contract.kernel.failure import envelope
from cloche_sdk import AsyncSandbox, Doors
from cloche_sdk import cloud as cloud_module
from cloche_sdk import platform as platform_module
from cloche_testkit.platform import Fault, ReferencePlatform
from tests.packages.sdk.platforms import MARKER, doors_to, served

pytestmark = pytest.mark.anyio

Call = Callable[[str, Doors], Awaitable[object]]


async def _create(sandbox_id: str, doors: Doors) -> object:
    return await AsyncSandbox.create(doors=doors)


async def _list(sandbox_id: str, doors: Doors) -> object:
    return await AsyncSandbox.list(doors=doors)


async def _get(sandbox_id: str, doors: Doors) -> object:
    return await AsyncSandbox.get_info_by_id(sandbox_id, doors=doors)


async def _set_timeout(sandbox_id: str, doors: Doors) -> object:
    return await AsyncSandbox.set_timeout_by_id(sandbox_id, 60, doors=doors)


async def _kill(sandbox_id: str, doors: Doors) -> object:
    return await AsyncSandbox.kill_by_id(sandbox_id, doors=doors)


async def _pause(sandbox_id: str, doors: Doors) -> object:
    async with await AsyncSandbox.connect(sandbox_id, doors=doors) as sandbox:
        return await sandbox.pause()


async def _resume(sandbox_id: str, doors: Doors) -> object:
    async with await AsyncSandbox.connect(sandbox_id, doors=doors) as sandbox:
        return await sandbox.resume(60)


CALLS: Mapping[str, Call] = {
    "create_sandbox": _create,
    "list_sandboxes": _list,
    "get_sandbox": _get,
    "set_timeout": _set_timeout,
    "delete_sandbox": _kill,
    "pause_sandbox": _pause,
    "connect_sandbox": _resume,
}
STATUSES: Mapping[int, type[ClocheError]] = {
    400: ProviderFailed,
    401: AuthenticationFailed,
    403: PermissionDenied,
    409: ClocheError,
    422: ProviderFailed,
    429: ClocheError,
    500: ProviderFailed,
    502: ProviderUnavailable,
    503: ProviderUnavailable,
    504: ProviderTimeout,
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between attempts are what is repeated here most often."""
    monkeypatch.setattr(platform_module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(cloud_module, "LOOK_FOR_LOST_S", (0.0, 0.05, 0.2))


@pytest.fixture
async def platform() -> AsyncGenerator[ReferencePlatform]:
    async with served() as platform:
        yield platform


async def _made(platform: ReferencePlatform) -> str:
    sandbox = await AsyncSandbox.create(doors=doors_to(platform))
    await sandbox.close()
    platform.seen.clear()
    return sandbox.sandbox_id


def _says_nothing(error: ClocheError, platform: ReferencePlatform) -> None:
    told = f"{error} {error.hint} {error.details} {envelope('sandbox', error)}"
    for secret in (MARKER, platform.url, str(platform.port), platform.api_key):
        assert secret not in told


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("route", CALLS)
async def test_a_refusal_is_a_typed_error(platform: ReferencePlatform, route: str, status: int) -> None:
    """Source: checklist 86 to 93."""
    sandbox_id = await _made(platform)
    platform.faults.plan(Fault(route, "status", status=status, times=9))
    if (route, status) == ("pause_sandbox", 409):
        assert await CALLS[route](sandbox_id, doors_to(platform)) is False  # it is paused already
        return
    with pytest.raises(STATUSES[status]) as caught:
        await CALLS[route](sandbox_id, doors_to(platform))
    assert caught.value.details.get("http_status", status) == status
    _says_nothing(caught.value, platform)
    assert platform.alive == [sandbox_id]


@pytest.mark.parametrize("kind", ["reset", "malformed", "lying-length"])
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "after it is done"])
@pytest.mark.parametrize("route", CALLS)
async def test_an_answer_that_is_lost_leaves_nothing(
    platform: ReferencePlatform, route: str, after: bool, kind: str
) -> None:
    """A repeat where that is safe, else a typed error; never a second sandbox, never one that nobody knows."""
    sandbox_id = await _made(platform)
    platform.faults.plan(Fault(route, kind, after=after))  # pyright: ignore[reportArgumentType] - one of its kinds
    doors = doors_to(platform)
    if route == "create_sandbox" or kind == "malformed":
        with pytest.raises((ProviderUnavailable, ProviderFailed)) as caught:
            await CALLS[route](sandbox_id, doors)
        _says_nothing(caught.value, platform)
    else:
        await CALLS[route](sandbox_id, doors)
    assert platform.alive == ([] if route == "delete_sandbox" and (after or kind != "malformed") else [sandbox_id])
    assert platform.calls.count("create_sandbox") <= 1


@pytest.mark.parametrize("route", CALLS)
async def test_t22_a_platform_that_never_answers_is_given_up(platform: ReferencePlatform, route: str) -> None:
    """Source: faults T22 (E2B#1128)."""
    sandbox_id = await _made(platform)
    platform.faults.plan(Fault(route, "stall", times=9))
    with anyio.fail_after(20), pytest.raises(ProviderTimeout) as caught:
        await CALLS[route](sandbox_id, doors_to(platform, ABX_HTTP_TIMEOUT="1"))
    _says_nothing(caught.value, platform)
    assert platform.alive == [sandbox_id]


@pytest.mark.parametrize("route", CALLS)
async def test_a_platform_that_is_not_there_is_unavailable(platform: ReferencePlatform, route: str) -> None:
    doors = doors_to(platform, ABX_SANDBOX_BASE_URL="http://127.0.0.1:9")
    with pytest.raises(ProviderUnavailable):
        await CALLS[route]("i1", doors)
    assert platform.seen == []


async def test_a_create_that_is_refused_for_a_moment_is_asked_for_again(platform: ReferencePlatform) -> None:
    """429 and 503 with Retry-After say that nothing was done. Source: agent-protocol 1.2."""
    platform.faults.plan(Fault("create_sandbox", "status", status=429, headers={"retry-after": "0"}))
    platform.faults.plan(Fault("create_sandbox", "status", status=503, headers={"retry-after": "0"}))
    sandbox = await AsyncSandbox.create(doors=doors_to(platform))
    assert platform.alive == [sandbox.sandbox_id]
    platform.faults.plan(Fault("create_sandbox", "status", status=429, times=9))
    with pytest.raises(QuotaExceeded):
        await AsyncSandbox.create(doors=doors_to(platform))


async def test_a_platform_says_itself_whether_to_try_again(platform: ReferencePlatform) -> None:
    """Source: agent-protocol 1.2, Should-Retry."""
    platform.faults.plan(Fault("list_sandboxes", "status", status=503, headers={"should-retry": "false"}))
    with pytest.raises(ProviderUnavailable):
        await AsyncSandbox.list(doors=doors_to(platform))
    platform.faults.plan(Fault("list_sandboxes", "status", status=500, headers={"should-retry": "true"}))
    assert await AsyncSandbox.list(doors=doors_to(platform)) == ()
    assert len(platform.seen) == 3


async def test_a_create_that_is_cancelled_leaves_no_sandbox(platform: ReferencePlatform) -> None:
    """Source: decision D17; checklist 320."""
    platform.faults.plan(Fault("create_sandbox", "stall", after=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_create, "", doors_to(platform))
        with anyio.fail_after(10):
            while not platform.alive:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert platform.alive == []


async def test_a_lost_kill_is_repeated_and_then_done(platform: ReferencePlatform) -> None:
    """The second attempt finds nothing, because the first has done it."""
    sandbox_id = await _made(platform)
    platform.faults.plan(Fault("delete_sandbox", "reset", after=True))
    await AsyncSandbox.kill_by_id(sandbox_id, doors=doors_to(platform))
    with pytest.raises(SandboxNotFound):
        await AsyncSandbox.kill_by_id(sandbox_id, doors=doors_to(platform))


async def test_a_template_that_is_missing_leaves_nothing_to_look_for(platform: ReferencePlatform) -> None:
    with pytest.raises(TemplateNotFound):
        await AsyncSandbox.create("nowhere", doors=doors_to(platform))
    assert set(platform.calls) == {"create_sandbox", "create_sandbox_v1"}
