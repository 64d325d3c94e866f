"""The conformance suite against the provider docker: a real engine, in an image that has nothing but busybox."""

from collections.abc import Generator
from pathlib import Path

import pytest

from cloche_contract.provider import ProviderOptions, SandboxProvider
from cloche_docker_manager.provider import open_provider
from cloche_testkit.agent_client import TestAgent
from cloche_testkit.conformance import ProviderConformance
from cloche_testkit.conformance.base import OpenProvider
from tests import docker_engine
from tests.docker_engine import TestEngine


@pytest.fixture(scope="session")
def engine() -> Generator[TestEngine]:
    if reason := docker_engine.missing():
        pytest.skip(reason)
    with docker_engine.running_engine() as engine:
        docker_engine.import_busybox(engine)
        yield engine


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is delivered into containers is made once."""
    return tmp_path_factory.mktemp("docker-cache")


class TestDocker(ProviderConformance):
    """Everything, in a state directory of its own."""

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        return open_provider

    @pytest.fixture
    def options(self, engine: TestEngine, cache: Path, tmp_path: Path) -> ProviderOptions:
        environ = {
            "HOME": str(tmp_path),
            "DOCKER_HOST": engine.url,
            "ABX_DOCKER_STATE_DIR": str(tmp_path / "state"),
            "ABX_DOCKER_CACHE_DIR": str(cache),
            "ABX_DOCKER_IMAGE": docker_engine.BUSYBOX,
        }
        return ProviderOptions(settings={}, environ=environ)
