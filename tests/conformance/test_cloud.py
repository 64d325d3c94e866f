"""The conformance suite against the provider `cloud`, over real HTTP to the reference platform and the real agent."""

from collections.abc import AsyncGenerator, Mapping

import pytest

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import SandboxProvider
from cloche_sdk.cloud import open_cloud
from cloche_testkit.conformance import (
    CodeConformance,
    ExecutionConformance,
    FileConformance,
    HonestyConformance,
    LifecycleConformance,
    TaskConformance,
    TransferConformance,
)
from cloche_testkit.conformance.base import OpenProvider, ProviderSuite
from cloche_testkit.conformance.tasks import Reach
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.conformance.emulated import EmulatingAgent, reach


class OnPlatform(ProviderSuite):
    """The provider, with agents as ordinary processes behind the platform."""

    additions = True

    @pytest.fixture
    async def platform(self) -> AsyncGenerator[ReferencePlatform]:
        plane = ScriptedPlane(data_plane="unsandboxed", templates={"base"}, limits=("cpu", "memory"))
        async with ReferencePlatform(ScriptedProvider(plane), additions=self.additions).serve() as platform:
            yield platform
        await plane.aclose()

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        return open_cloud

    @pytest.fixture
    def settings(self, platform: ReferencePlatform) -> Mapping[str, str]:
        return {
            "sandbox_api_key": platform.api_key,
            "sandbox_base_url": platform.url,
            "sandbox_url": platform.url,
            "http_timeout": "20",
        }


class TestCloud(
    OnPlatform, LifecycleConformance, HonestyConformance, ExecutionConformance, FileConformance, CodeConformance
):
    """Everything that an agent does itself."""


class TestTheirAgent(OnPlatform, TaskConformance, TransferConformance):
    """What the SDK makes of an agent that answers as E2B's own does: tasks, and uploads in parts."""

    additions = False

    @pytest.fixture
    async def agent(self, provider: SandboxProvider, sandbox: SandboxRecord) -> AsyncGenerator[EmulatingAgent]:
        agent = await reach(provider, sandbox.sandbox_id)
        yield agent
        await agent.link.aclose()

    @pytest.fixture
    async def worker(self, agent: EmulatingAgent) -> EmulatingAgent:
        return agent

    @pytest.fixture
    async def carrier(self, agent: EmulatingAgent) -> EmulatingAgent:
        return agent

    @pytest.fixture
    async def reach(self, provider: SandboxProvider, sandbox: SandboxRecord) -> AsyncGenerator[Reach]:
        other = await reach(provider, sandbox.sandbox_id)

        async def another() -> EmulatingAgent:
            return other

        yield another
        await other.link.aclose()
