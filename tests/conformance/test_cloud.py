"""The conformance suite against the provider `cloud`, over real HTTP to the reference platform and the real agent."""

from collections.abc import AsyncGenerator, Mapping

import pytest

from cloche_sdk.cloud import open_cloud
from cloche_testkit.conformance import ProviderConformance
from cloche_testkit.conformance.base import OpenProvider
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider


class TestCloud(ProviderConformance):
    """Everything, with the agents as ordinary processes behind the platform."""

    @pytest.fixture
    async def platform(self) -> AsyncGenerator[ReferencePlatform]:
        plane = ScriptedPlane(data_plane="unsandboxed", templates={"base"}, limits=("cpu", "memory"))
        async with ReferencePlatform(ScriptedProvider(plane), additions=False).serve() as platform:
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
