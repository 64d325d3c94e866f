"""Agents for tests: a shared one for what leaves no trace, a fresh one for the rest."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import Client, PlainAgent, running_agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Generator[PlainAgent]:
    """An agent that the tests of a module share."""
    with running_agent(tmp_path_factory.mktemp("agent")) as running:
        yield running


@pytest.fixture
def fresh_agent(tmp_path: Path) -> Generator[PlainAgent]:
    """An agent of this test alone."""
    with running_agent(tmp_path) as running:
        yield running


@pytest.fixture
def client(agent: PlainAgent) -> Generator[Client]:
    """A connection to the shared agent."""
    with agent.client() as connected:
        yield connected
