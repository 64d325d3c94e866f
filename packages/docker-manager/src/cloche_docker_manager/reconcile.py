"""Bring records and engine together: what a killed manager left half made or half removed, and what ended by itself.

Only objects with the label of this manager are looked at. Blocks; call it in a worker thread.

Source: checklist 339; faults L2, L7, L8, L18.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from cloche_contract.errors import ClocheError

from .engine import Engine, Owned, labelled
from .registry import LABEL_SANDBOX, Record, Registry

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leftover:
    """Something that nobody will use any more: `kind` is container, volume, network, record, base or runtime."""

    kind: str
    name: str
    size: int = 0


def reconcile(engine: Engine, registry: Registry) -> list[Leftover]:
    """Finish what was begun by managers that are gone, and mark as failed what has lost its container.

    Returns:
        What was removed.
    """
    # The engine first: a record is written before anything is made for it, so what has none is an orphan.
    objects = engine.owned(labelled(registry.labels)[0])
    running = {one.labels.get(LABEL_SANDBOX, "") for one in objects if one.kind == "container" and one.running}
    removed: list[Leftover] = []
    for record in registry.all():
        if record.abandoned:
            removed += _finish(engine, registry, record)
        elif record.state == "ready" and record.id not in running:
            removed += _ended(engine, registry, record)
    for one in objects:
        sandbox = one.labels.get(LABEL_SANDBOX)
        if sandbox and not registry.knows(sandbox) and _removed(engine, one):
            removed.append(Leftover(one.kind, one.name))
    return removed


def _ended(engine: Engine, registry: Registry, record: Record) -> list[Leftover]:
    """What has a lifetime and is over leaves nothing; what lost its container otherwise is shown as failed."""
    state = engine.inspect(record.container)
    gone = state is None or not state["State"]["Running"]
    # It may have been destroyed, or made, since the engine was asked.
    if gone and registry.knows(record.id) and registry.get(record.id) == record:
        if record.lifetime_s is not None:
            return _finish(engine, registry, record)
        registry.settle(record, "failed")
    return []


def _finish(engine: Engine, registry: Registry, record: Record) -> list[Leftover]:
    """Roll an interrupted creation back, bring an interrupted destruction to its end."""
    try:
        engine.remove_container(record.container)
        engine.remove_volume(record.volume)
    except ClocheError as exc:
        logger.warning("an interrupted sandbox stays", extra={"sandbox": record.id, "error": exc.code})
        registry.settle(record, "failed")
        return []
    registry.remove(record.id)
    return [Leftover("record", record.id)]


def _removed(engine: Engine, one: Owned) -> bool:
    try:
        match one.kind:
            case "container":
                engine.remove_container(one.name)
            case "volume":
                engine.remove_volume(one.name)
            case _:
                engine.remove_network(one.name)
    except ClocheError as exc:
        logger.warning("an orphan stays", extra={"kind": one.kind, "error": exc.code})
        return False
    return True
