"""The pytest plugin: fixtures for the scripted provider.

Nothing heavy is imported before a test asks: the plugin is loaded in every pytest run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cloche_testkit.doors import ManualClock
    from cloche_testkit.plane import ScriptedPlane


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that stands still until a test advances it."""
    from cloche_testkit.doors import ManualClock

    return ManualClock()


@pytest.fixture
def scripted_plane(manual_clock: ManualClock) -> Generator[ScriptedPlane]:
    """The provider `scripted` with a control plane only, on a clock that stands still."""
    from cloche_testkit.plane import ScriptedPlane
    from cloche_testkit.scripted import installed_plane

    with installed_plane(ScriptedPlane(clock=manual_clock)) as plane:
        yield plane


@pytest.fixture
async def unsandboxed_plane(anyio_backend: object) -> AsyncGenerator[ScriptedPlane]:
    """The provider `scripted` with the real agent, run WITHOUT ISOLATION on this host."""
    from cloche_testkit.plane import ScriptedPlane
    from cloche_testkit.scripted import installed_plane

    with installed_plane(ScriptedPlane(data_plane="unsandboxed")) as plane:
        try:
            yield plane
        finally:
            await plane.aclose()
