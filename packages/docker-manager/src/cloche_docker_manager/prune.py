"""What `abx docker prune` removes: only what this manager made and nobody uses. Blocks.

Source: faults L8, L11; issue 7, part 6.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from .engine import Engine, find_engine, labelled
from .reconcile import Leftover, reconcile
from .registry import LABEL_SANDBOX, Registry
from .settings import ManagerSettings, read_settings


def prune(environ: Mapping[str, str], *, dry_run: bool) -> list[Leftover]:
    """Remove orphans of killed managers, the network when no sandbox is left, and copies that no sandbox uses.

    Returns:
        What was removed, or would be.

    Raises:
        BackendUnavailable: no engine answers, or the state directory cannot be used.
    """
    settings = read_settings(environ)
    registry = Registry(settings.state_dir)
    engine = Engine(find_engine(environ))
    try:
        found = _orphans(engine, registry) if dry_run else reconcile(engine, registry)
        if not registry.all():
            found += list(_networks(engine, registry, dry_run))
    finally:
        engine.close()
    return found + list(_unused_copies(settings, registry, dry_run))


def _orphans(engine: Engine, registry: Registry) -> list[Leftover]:
    objects = engine.owned(labelled(registry.labels)[0])
    orphans = [one for one in objects if (name := one.labels.get(LABEL_SANDBOX)) and not registry.knows(name)]
    abandoned = [Leftover("record", record.id) for record in registry.all() if record.abandoned]
    return abandoned + [Leftover(one.kind, one.name) for one in orphans]


def _networks(engine: Engine, registry: Registry, dry_run: bool) -> Iterator[Leftover]:
    for one in engine.owned(labelled(registry.labels)[0]):
        if one.kind == "network":
            if not dry_run:
                engine.remove_network(one.name)
            yield Leftover(one.kind, one.name)


def _unused_copies(settings: ManagerSettings, registry: Registry, dry_run: bool) -> Iterator[Leftover]:
    """Bases and delivered programs in the cache. A sandbox that is being made has a record already, with its base."""
    records = registry.all()
    used = {record.base.source for record in records if record.base is not None}
    if any(record.base is None for record in records):
        return  # somebody is about to choose one
    for kind in ("bases", "runtimes"):
        for path in _folders(settings.cache_dir / kind):
            if str(path) in used or (kind == "runtimes" and records):
                continue
            size = size_of(path)
            if not dry_run:
                remove_folder(path)
            yield Leftover(kind.removesuffix("s"), path.name, size)


def _folders(path: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(one for one in path.iterdir() if one.is_dir() and not one.is_symlink())
    return []


def size_of(path: Path) -> int:
    """Bytes that a folder takes on the disk."""
    total = 0
    for folder, _folders_in, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def remove_folder(path: Path) -> None:
    """Remove a folder of ours whose folders may be read-only."""
    for folder, _folders_in, _files in os.walk(path):
        with suppress(OSError):
            os.chmod(folder, 0o700)
    shutil.rmtree(path, ignore_errors=True)
