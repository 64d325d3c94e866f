"""The conformance suite against the scripted provider: its control plane in memory, the real agent behind it."""

from collections.abc import AsyncGenerator

import pytest

from cloche_testkit import scripted
from cloche_testkit.conformance import HonestyConformance, ProviderConformance
from cloche_testkit.conformance.base import OpenProvider
from cloche_testkit.plane import ScriptedPlane


class TestScripted(ProviderConformance):
    """Everything, with the agent as an ordinary process."""

    @pytest.fixture
    async def open_provider(self) -> AsyncGenerator[OpenProvider]:
        with scripted.installed_plane(ScriptedPlane(data_plane="unsandboxed", templates={"base"})) as plane:
            yield scripted.open_provider
            await plane.aclose()


class TestScriptedWithLimits(HonestyConformance):
    """A plane that says it can limit CPU and memory accepts both."""

    @pytest.fixture
    def open_provider(self, scripted_plane: ScriptedPlane) -> OpenProvider:
        scripted_plane.limits = ("cpu", "memory")
        return scripted.open_provider
