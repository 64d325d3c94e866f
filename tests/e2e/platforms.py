"""A reference platform whose sandboxes are real: those of the local provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cloche_contract.provider import ProviderOptions
from cloche_local.provider import open_provider
from cloche_sdk import load_settings
from cloche_testkit.platform import ReferencePlatform


@asynccontextmanager
async def real_platform(environ: Mapping[str, str], *, additions: bool = True) -> AsyncGenerator[ReferencePlatform]:
    """Serve a platform over local sandboxes; `environ` says where their state lies."""
    folder = Path(environ["HOME"])
    options = ProviderOptions(settings=load_settings(environ, home=folder, workdir=folder).values, environ=environ)
    async with open_provider(options) as local, ReferencePlatform(local, additions=additions).serve() as platform:
        yield platform


def environ_of(platform: ReferencePlatform, home: Path) -> dict[str, str]:
    """What points a process at the platform."""
    return {
        "HOME": str(home),
        "ABX_SANDBOX_API_KEY": platform.api_key,
        "ABX_SANDBOX_BASE_URL": platform.url,
        "ABX_SANDBOX_URL": platform.url,
    }
