"""One engine for all tests of the manager, with two images; and settings of their own for each test."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import docker_engine
from tests.docker_engine import TestEngine


@dataclass(frozen=True)
class Bench:
    """An engine with both images, and the environment of one manager."""

    engine: TestEngine
    environ: dict[str, str]
    workspaces: Path

    def other_manager(self, folder: Path) -> dict[str, str]:
        """The environment of a manager with a state of its own, on the same engine."""
        return {**self.environ, "ABX_DOCKER_STATE_DIR": str(folder)}


@pytest.fixture(scope="session")
def docker_with_images() -> Generator[TestEngine]:
    if reason := docker_engine.missing():
        pytest.skip(reason)
    with docker_engine.running_engine() as engine:
        docker_engine.import_busybox(engine)
        docker_engine.import_python(engine)
        yield engine


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is delivered into containers is made once."""
    return tmp_path_factory.mktemp("docker-cache")


@pytest.fixture(autouse=True)
def internal_errors_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    """A failure on a machine that nobody can look into tells its cause: the result of the call must not."""
    caplog.set_level(logging.DEBUG, "cloche_contract.kernel.dispatch")


@pytest.fixture
def bench(docker_with_images: TestEngine, shared_cache: Path, tmp_path: Path) -> Bench:
    workspaces = tmp_path / "workspaces"
    workspaces.mkdir()
    return Bench(docker_with_images, manager_environ(docker_with_images.url, tmp_path, shared_cache), workspaces)


def manager_environ(url: str, folder: Path, cache: Path) -> dict[str, str]:
    """What a manager is told; its workspaces lie below `folder`."""
    return {
        "HOME": str(folder),
        "DOCKER_HOST": url,
        "ABX_DOCKER_STATE_DIR": str(folder / "state"),
        "ABX_DOCKER_CACHE_DIR": str(cache),
        "ABX_DOCKER_WORKSPACE_ROOTS": str(folder / "workspaces"),
    }
