"""Groups about the provider `cloud`: what it adds to plain HTTP requests to the same platform."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx

from cloche_contract.provider import CreateRequest, GetRequest, ProviderOptions
from cloche_local.provider import open_provider
from cloche_sdk import AsyncSandbox, Doors, load_settings
from cloche_sdk.cloud import open_cloud
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.benchmarks.measure import Contender, Goal, Group, Trial

FILE_BYTES = 8 * 1_048_576
GUEST_FILE = "/home/user/file.bin"


@asynccontextmanager
async def platform_group() -> AsyncGenerator[Group]:
    """One request for metadata, through the provider and by httpx alone."""
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(ReferencePlatform(ScriptedProvider(ScriptedPlane())).serve())
        settings = {"sandbox_api_key": platform.api_key, "sandbox_base_url": platform.url}
        provider = await stack.enter_async_context(open_cloud(ProviderOptions(settings=settings)))
        client = await stack.enter_async_context(httpx.AsyncClient(headers={"X-API-KEY": platform.api_key}))
        made = await provider.create(CreateRequest(template="base", timeout=600))

        async def ours() -> object:
            return await provider.get(GetRequest(sandbox_id=made.sandbox_id))

        async def plain() -> object:
            return (await client.get(f"{platform.url}/sandboxes/{made.sandbox_id}")).raise_for_status()

        contenders = [Contender("cloche, provider cloud", timed(ours)), Contender("httpx", timed(plain))]
        yield Group("Metadata of a sandbox, from the same platform", contenders, [_no_slower(contenders)])


@asynccontextmanager
async def data_plane_group() -> AsyncGenerator[Group]:
    """A file into a sandbox and out again, through the platform's address."""
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(open_provider(ProviderOptions(settings=load_settings().values)))
        platform = await stack.enter_async_context(ReferencePlatform(local).serve())
        environ = {
            "ABX_SANDBOX_API_KEY": platform.api_key,
            "ABX_SANDBOX_BASE_URL": platform.url,
            "ABX_SANDBOX_URL": platform.url,
        }
        doors = Doors(settings=load_settings(environ), environ=environ)
        sandbox = await stack.enter_async_context(await AsyncSandbox.create(doors=doors))
        agent = (await sandbox.endpoint()).headers
        headers = {**agent, "E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
        client = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=60))
        data = bytes(FILE_BYTES)

        async def ours() -> object:
            await sandbox.files.write(GUEST_FILE, data)
            return await sandbox.files.read_bytes(GUEST_FILE, max_bytes=FILE_BYTES)

        async def plain() -> object:
            url, sent = f"{platform.url}/files?path={GUEST_FILE}", {"content-type": "application/octet-stream"}
            (await client.post(url, content=data, headers=sent)).raise_for_status()
            return (await client.get(url)).raise_for_status()

        contenders = [Contender("cloche, files of the SDK", timed(ours)), Contender("httpx", timed(plain))]
        title = f"{FILE_BYTES // 1_048_576} MiB into a sandbox and out again, over a platform"
        yield Group(title, contenders, [_no_slower(contenders)])


def _no_slower(contenders: Sequence[Contender]) -> Goal:
    ours, plain = contenders
    return Goal(ours.name, plain.name, at_most_ratio=1.2)


def timed(work: Callable[[], Awaitable[object]]) -> Trial:
    """How long the work takes, in seconds."""

    async def trial() -> float:
        started = time.perf_counter()
        await work()
        return time.perf_counter() - started

    return trial
