"""What a call is given instead of what is configured, for calls that need no sandbox object."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import anyio

from cloche_contract.provider import SandboxProvider

from .providers import Doors, ProviderPool

__all__ = ["CLOSE_BOUND_S", "Overrides", "close_pool", "found", "run_sync", "with_overrides"]

_T = TypeVar("_T")

CLOSE_BOUND_S = 5.0


class Overrides(NamedTuple):
    """Arguments of one call; None is what is configured."""

    region: str | None
    provider: str | None
    api_key: str | None
    base_url: str | None
    doors: Doors | None


@asynccontextmanager
async def found(sandbox_id: str, overrides: Overrides) -> AsyncGenerator[tuple[SandboxProvider, str], None]:
    """The provider of a sandbox, open for the time of the block, and the id that the provider knows it by."""
    pool = ProviderPool(with_overrides(overrides.doors, overrides.region, overrides.api_key, overrides.base_url))
    try:
        reference = pool.doors.reference(sandbox_id, overrides.provider)
        yield await pool.get(reference.provider), reference.sandbox_id
    finally:
        await close_pool(pool)


def run_sync(call: Callable[..., Awaitable[_T]], overrides: Overrides, *args: object) -> _T:
    """Run a call to its end, for callers without an event loop."""
    from anyio.from_thread import start_blocking_portal  # only these calls need it

    # A portal of its own: this also works in a thread whose event loop is running.
    with start_blocking_portal() as portal:
        return portal.call(partial(call, *args, **overrides._asdict()))


def with_overrides(doors: Doors | None, region: str | None, api_key: str | None, base_url: str | None) -> Doors:
    """The doors with what was given on top."""
    return (doors or Doors()).override(sandbox_api_key=api_key, sandbox_base_url=base_url, region=region)


async def close_pool(pool: ProviderPool) -> None:
    """Close the providers of one call: bounded, and also when the call is cancelled."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_BOUND_S):
        await pool.aclose()
