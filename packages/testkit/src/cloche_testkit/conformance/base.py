"""What every part of the suite stands on: an open provider, a sandbox, its agent."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress

import anyio
import pytest

from cloche_contract.common import Capability
from cloche_contract.errors import NotFound
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    KillRequest,
    ListRequest,
    ProbeReport,
    ProviderOptions,
    SandboxProvider,
)
from cloche_testkit.agent_client import TestAgent

OpenProvider = Callable[[ProviderOptions], AbstractAsyncContextManager[SandboxProvider]]

WITHIN_S = 20
"""Bound of every wait. A provider that needs longer is not conformant, it is stuck."""


class ProviderSuite:
    """Fixtures. A subclass overrides `open_provider`, and `settings` or `template` where it must."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        """The provider's entry point."""
        raise pytest.UsageError("override the fixture open_provider")

    @pytest.fixture
    def settings(self) -> Mapping[str, str]:
        """Settings that the provider is opened with."""
        return {}

    @pytest.fixture
    def template(self) -> str:
        """A template that the provider has."""
        return "base"

    @pytest.fixture
    def at_once(self) -> int:
        """How many sandboxes are made at the same time; fewer where each is a machine."""
        return 8

    @pytest.fixture
    def options(self, settings: Mapping[str, str]) -> ProviderOptions:
        return ProviderOptions(settings=settings)

    @pytest.fixture
    async def provider(self, open_provider: OpenProvider, options: ProviderOptions) -> AsyncGenerator[SandboxProvider]:
        async with open_provider(options) as provider:
            yield provider
            await kill_all(provider)

    @pytest.fixture
    async def report(self, provider: SandboxProvider) -> ProbeReport:
        """What the provider says about itself."""
        return await provider.probe()

    @pytest.fixture
    async def sandbox(self, provider: SandboxProvider, template: str) -> SandboxRecord:
        """A fresh sandbox, killed at the end of the test."""
        return await provider.create(CreateRequest(template=template, timeout=120))

    @pytest.fixture
    async def agent(self, provider: SandboxProvider, sandbox: SandboxRecord) -> TestAgent:
        """The agent of `sandbox`."""
        return await agent_of(provider, sandbox.sandbox_id)


def has_itself(report: ProbeReport, capability: Capability) -> bool:
    """Whether the agents of a provider have an ability; one that a client emulates over them they do not have."""
    emulated = {ability.capability for ability in report.emulated}
    return capability in report.capabilities and capability not in emulated


async def agent_of(provider: SandboxProvider, sandbox_id: str) -> TestAgent:
    """Connect to a sandbox."""
    record = await provider.connect(ConnectRequest(sandbox_id=sandbox_id))
    assert record.agent is not None, "connect returns the endpoint of the agent"
    return TestAgent(record.agent)


async def ids_of(provider: SandboxProvider) -> list[str]:
    """Ids of every sandbox that the provider lists, page by page."""
    found: list[str] = []
    while True:
        page = await provider.list(ListRequest(limit=100, offset=len(found)))
        found += [record.sandbox_id for record in page.sandboxes]
        if len(page.sandboxes) < 100:
            return found


async def kill_all(provider: SandboxProvider) -> None:
    """Kill every sandbox of this account: the suite needs an account or state of its own."""
    for sandbox_id in await ids_of(provider):
        with suppress(NotFound):
            await provider.kill(KillRequest(sandbox_id=sandbox_id))


async def is_gone(provider: SandboxProvider, sandbox_id: str) -> bool:
    """Whether the provider no longer knows the sandbox."""
    try:
        await provider.get(GetRequest(sandbox_id=sandbox_id))
    except NotFound:
        return True
    return False


async def eventually(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until `holds` says so, at most WITHIN_S seconds."""
    with anyio.move_on_after(WITHIN_S):
        while not await holds():  # noqa: ASYNC110 - nothing announces what happens in another process
            await anyio.sleep(0.05)
        return
    pytest.fail(f"did not happen within {WITHIN_S} s: {what}")


def nothing_runs(agent: TestAgent, mark: str) -> Callable[[], Awaitable[bool]]:
    """Ask whether no `sleep` with this mark is left in the sandbox."""

    async def check() -> bool:
        # The brackets keep grep from finding itself.
        listing = await agent.run(
            f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep [{mark[0]}]{mark[1:]}'"
        )
        return listing.stdout.strip() == b"0"

    return check
