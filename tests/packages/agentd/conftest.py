"""Agents for tests: a shared one for what leaves no trace, a fresh one for the rest."""

from __future__ import annotations

import os
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
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Desk]:
    """An agent with an empty stack over a small base."""
    program = program_of(request.param)
    options = lay_out(tmp_path, BASE)
    (tmp_path / "home").mkdir()
    if request.param != "this user":
        for folder, _, _ in os.walk(tmp_path):
            os.chown(folder, ordinary.UID, ordinary.UID)
        # pytest's own folders, which only root may pass.
        for parent in tmp_path.parents[:2]:
            parent.chmod(parent.stat().st_mode | 0o055)
    with running_agent(tmp_path, *options, program=program) as agent, agent.client() as client:
        yield Desk(agent, client, tmp_path)
