"""Removing a sandbox, step by step: its record is the last thing to go.

Source: checklist 262 to 266, 340.
"""

from __future__ import annotations

import logging
from contextlib import suppress

import anyio
from anyio.to_thread import run_sync

from cloche_contract.errors import ClocheError, DestroyFailed

from .agent_link import AgentLink
from .create import remove_objects
from .engine import Engine
from .registry import Record, Registry

logger = logging.getLogger(__name__)

_END_S = 5.0


async def destroy(engine: Engine, registry: Registry, sandbox_id: str) -> Record:
    """Stop the agent, remove container and volume, then the record; return it as it was last.

    Raises:
        SandboxNotFound: there is no such record.
        SandboxStateConflict: somebody creates or destroys it just now.
        DestroyFailed: the engine did not remove it; the record stays, in state failed.
    """
    record = await run_sync(registry.take, sandbox_id, ("ready", "failed"), "stopping")
    # Once begun it is brought to its end: half of it would be a sandbox that nobody can use.
    with anyio.CancelScope(shield=True):
        return await _remove(engine, registry, record)
    raise AssertionError("a shielded scope is not cancelled")


async def _remove(engine: Engine, registry: Registry, record: Record) -> Record:
    await _end_agent(record)
    try:
        await run_sync(remove_objects, engine, record)
    except ClocheError as exc:
        logger.warning("a sandbox could not be removed", extra={"sandbox": record.id, "error": exc.code})
        await run_sync(registry.settle, record, "failed")
        raise DestroyFailed from exc
    stopped = await run_sync(registry.settle, record, "stopped")
    await run_sync(registry.remove, record.id)
    return stopped


async def _end_agent(record: Record) -> None:
    """Let the agent end what runs inside. An agent that is gone, or does not answer, is removed with its container."""
    if record.agent_port is None:
        return
    link = AgentLink(record.agent_port, record.token, timeout_s=_END_S)
    try:
        with anyio.move_on_after(_END_S), suppress(ClocheError):
            if await link.answers_as(record.id):
                await link.end()
    finally:
        await link.aclose()
