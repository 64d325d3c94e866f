"""A session and the doors that it is given, on the scripted provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from cloche_sdk import Doors, SandboxSession, load_settings
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
async def tools(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[Tools]:
    """The tools of one session, on the real agent, WITHOUT ISOLATION."""
    settings = load_settings({}).override(provider="scripted")
    async with open_tools(Doors(settings=settings, environ={})) as tools:
        yield tools


@pytest.fixture
async def session(doors: Doors) -> AsyncGenerator[SandboxSession]:
    async with SandboxSession(doors) as session:
        yield session
