"""The conformance suite against the provider docker: a real engine, in an image that has nothing but busybox."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path

import anyio
import pytest

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import CreateRequest, ListRequest, ProviderOptions, SandboxProvider
from cloche_docker_manager.provider import open_provider
from cloche_docker_manager.registry import Registry
from cloche_testkit.agent_client import TestAgent
from cloche_testkit.conformance import (
    CodeConformance,
    ExecutionConformance,
    FileConformance,
    HonestyConformance,
    LifecycleConformance,
    TaskConformance,
    TransferConformance,
)
from cloche_testkit.conformance.base import WITHIN_S, OpenProvider, ProviderSuite, ids_of, kill_all
from tests.docker_engine import BUSYBOX, TestEngine
from tests.packages.docker_manager.conftest import manager_environ


class DockerSuite(ProviderSuite):
    """The provider docker, on the engine of these tests."""

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        return open_provider

    @pytest.fixture
    def environ(self, docker_with_images: TestEngine, shared_cache: Path, tmp_path: Path) -> Mapping[str, str]:
        return manager_environ(docker_with_images.url, tmp_path, shared_cache) | {"ABX_DOCKER_IMAGE": BUSYBOX}

    @pytest.fixture
    def options(self, environ: Mapping[str, str]) -> ProviderOptions:
        return ProviderOptions(settings={}, environ=environ)


class TestLifecycle(DockerSuite, LifecycleConformance):
    """Sandboxes come, are seen, and go: each test in a state directory of its own."""

    @pytest.fixture
    def at_once(self) -> int:
        return 3

    @pytest.mark.parametrize("hostile", ["all"])
    async def test_an_id_that_is_a_path_or_pattern_is_only_an_unknown_id(
        self, provider: SandboxProvider, sandbox: SandboxRecord, hostile: str
    ) -> None:
        """All of them on one sandbox: an engine makes one in a second."""
        for each in ("../../etc", "a/b", ".", "..", "a\0b", "%2e%2e", "*", "é" * 400):
            await super().test_an_id_that_is_a_path_or_pattern_is_only_an_unknown_id(provider, sandbox, each)

    async def test_a_create_cancelled_at_any_await_leaves_nothing(
        self, provider: SandboxProvider, template: str
    ) -> None:
        """Fault L2, decision D17. At some moments of it; each await would take minutes of an engine's time."""
        for after_s in (0.0, 0.2, 0.5, 0.8):
            made = None
            with anyio.move_on_after(after_s):
                made = await provider.create(CreateRequest(template=template, timeout=120))
            with anyio.CancelScope(shield=True), anyio.fail_after(WITHIN_S):
                # It may have come just in time; then it is whole, and somebody's.
                if made is not None:
                    await kill_all(provider)
                assert await ids_of(provider) == []


class TestHonesty(DockerSuite, HonestyConformance):
    """What is reported holds, and what is not reported is refused."""


@pytest.fixture(scope="module")
def standing_state(docker_with_images: TestEngine, tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A state directory whose sandbox many tests use; other tests of this engine count what is in it."""
    folder = tmp_path_factory.mktemp("standing")
    yield folder
    for record in Registry(folder / "state").all():
        docker_with_images.api.remove_container(record.container, force=True, v=True)
        docker_with_images.api.remove_volume(record.volume)


class DockerUse(DockerSuite):
    """One sandbox for as many tests as it survives."""

    @pytest.fixture
    def environ(self, docker_with_images: TestEngine, shared_cache: Path, standing_state: Path) -> Mapping[str, str]:
        return manager_environ(docker_with_images.url, standing_state, shared_cache) | {"ABX_DOCKER_IMAGE": BUSYBOX}

    @pytest.fixture
    async def provider(self, open_provider: OpenProvider, options: ProviderOptions) -> AsyncGenerator[SandboxProvider]:
        async with open_provider(options) as provider:
            yield provider

    @pytest.fixture
    async def sandbox(self, provider: SandboxProvider, template: str) -> SandboxRecord:
        found = (await provider.list(ListRequest(status="running"))).sandboxes
        return found[0] if found else await provider.create(CreateRequest(template=template, timeout=3600))


class TestExecution(DockerUse, ExecutionConformance):
    """Each command has a workspace session of its own."""

    async def test_t6_a_command_in_the_background_does_not_hold_the_call(  # pyright: ignore[reportIncompatibleMethodOverride] - fixtures
        self, agent: TestAgent, sandbox: SandboxRecord, docker_with_images: TestEngine
    ) -> None:
        """Faults T6, T34; ADR 36: it returns at once, and what it left ends with its session."""
        mark = f"33{os.getpid()}.5"
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run(f"sleep {mark} >/dev/null 2>&1 & echo started")
        assert outcome.stdout == b"started\n"
        running = docker_with_images.api.top(f"cloche-{sandbox.sandbox_id}")["Processes"]
        assert not [line for line in running if mark in line[-1]]


class TestFiles(DockerUse, FileConformance):
    """Files are those of the merged workspace."""


class TestCode(DockerUse, CodeConformance):
    """Code runs in the Python that is delivered; the image has none."""


class TestTasks(DockerUse, TaskConformance):
    """A task has a workspace session of its own, which is published when it has ended."""


class TestTransfers(DockerUse, TransferConformance):
    """Files in parts."""


def test_the_whole_suite_is_here() -> None:
    """A part that the testkit gets is missed here."""
    from cloche_testkit.conformance import ProviderConformance

    parts = set(ProviderConformance.__bases__)
    mine = (TestLifecycle, TestHonesty, TestExecution, TestFiles, TestCode, TestTasks, TestTransfers)
    assert parts == {base for suite in mine for base in suite.__bases__ if base not in (DockerSuite, DockerUse)}
