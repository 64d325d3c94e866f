"""Agents for tests: a shared one for what leaves no trace, a fresh one for the rest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import Client, PlainAgent, running_agent
from tests.packages.agentd.workspace_desk import BASE, Desk, lay_out, program_of, users
from tests.packages.local import ordinary


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


@pytest.fixture(params=users())
def desk(request: pytest.FixtureRequest) -> Generator[Desk]:
    """An agent with an empty stack over a small base."""
    # Not tmp_path: what is above it is for the user alone who runs the tests.
    with tempfile.TemporaryDirectory(prefix="cl-desk-") as name:
        folder = Path(name)
        options = lay_out(folder, BASE)
        (folder / "home").mkdir()
        if request.param != "this user":
            for each, _, _ in os.walk(folder):
                os.chown(each, ordinary.UID, ordinary.UID)
        with running_agent(folder, *options, program=program_of(request.param)) as agent, agent.client() as client:
            yield Desk(agent, client, folder)
