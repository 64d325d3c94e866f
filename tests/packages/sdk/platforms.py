"""A reference platform for tests, and the doors to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from cloche_sdk import Doors, load_settings
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider

MARKER = "marker-of-the-platform"


def doors_to(platform: ReferencePlatform, **environ: str) -> Doors:
    """The provider `cloud` as the default, configured by environment variables alone."""
    found = {
        "ABX_SANDBOX_API_KEY": platform.api_key,
        "ABX_SANDBOX_BASE_URL": platform.url,
        "ABX_SANDBOX_URL": platform.url,
        "ABX_HTTP_TIMEOUT": "5",
        **environ,
    }
    return Doors(settings=load_settings(found), environ=found)


@asynccontextmanager
async def served(**how: Any) -> AsyncGenerator[ReferencePlatform]:
    """A platform whose sandboxes have no agent: its control plane alone."""
    plane = ScriptedPlane(limits=("cpu", "memory"), templates=("base", "code-interpreter-v1"))
    async with ReferencePlatform(ScriptedProvider(plane), **how).serve() as platform:
        yield platform
