"""A session and the doors that it is given, on the scripted provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from cloche_sdk import Doors, SandboxSession, load_settings
from cloche_testkit.plane import ScriptedPlane


@pytest.fixture
def doors(scripted_plane: ScriptedPlane) -> Doors:
    """The scripted provider as the default, on the plane's clock."""
    settings = load_settings({}).override(provider="scripted")
    return Doors(settings=settings, environ={}, clock=scripted_plane.clock)


@pytest.fixture
async def session(doors: Doors) -> AsyncGenerator[SandboxSession]:
    async with SandboxSession(doors) as session:
        yield session
