"""A session and the doors that it is given, on the scripted provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from cloche_sdk import AsyncSandbox, Doors, SandboxSession, load_settings
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.tools import Tools, open_tools


@pytest.fixture
def doors(scripted_plane: ScriptedPlane) -> Doors:
    """The scripted provider as the default, on the plane's clock."""
    settings = load_settings({}).override(provider="scripted")
    return Doors(settings=settings, environ={}, clock=scripted_plane.clock)


@pytest.fixture
def scripted_doors() -> Doors:
    """The scripted provider as the default, on the clock of this machine."""
    return Doors(settings=load_settings({}).override(provider="scripted"), environ={})


@pytest.fixture
def agent_doors(unsandboxed_plane: ScriptedPlane) -> Doors:
    """Doors to the real agent, WITHOUT ISOLATION."""
    return Doors(settings=load_settings({}).override(provider="scripted"), environ={})


@pytest.fixture
async def sandbox(agent_doors: Doors) -> AsyncGenerator[AsyncSandbox]:
    """A sandbox with the real agent, WITHOUT ISOLATION."""
    async with await AsyncSandbox.create(doors=agent_doors) as sandbox:
        yield sandbox


@pytest.fixture
async def tools(agent_doors: Doors) -> AsyncGenerator[Tools]:
    """The tools of one session, on the real agent, WITHOUT ISOLATION."""
    async with open_tools(agent_doors) as tools:
        yield tools


@pytest.fixture
async def session(doors: Doors) -> AsyncGenerator[SandboxSession]:
    async with SandboxSession(doors) as session:
        yield session
