"""What an export would write, told without writing it: the dry run.

Source: issue 7, part 5; fault W8.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyio.to_thread import run_sync

from .export import open_spool, take_in
from .export_stream import Change, Spool, changes_in
from .host_executed import executed_by_the_host
from .registry import Record
from .settings import ManagerSettings


@dataclass(frozen=True)
class Told:
    """One change. `kind` is clear, delete, folder, file or symlink; a path that is not UTF-8 has replacements."""

    kind: str
    path: str
    size: int
    mode: int
    host_executed: bool


@dataclass(frozen=True)
class ChangeList:
    """Every change above the base, in the order of an export."""

    version: int
    layers: tuple[str, ...]
    sessions: tuple[str, ...]
    changes: tuple[Told, ...]


async def list_changes(record: Record, settings: ManagerSettings) -> ChangeList:
    """Tell what an export would write.

    Raises:
        DestinationUnusable: the state directory has no space.
        ExportRejected: the sandbox sent what no export is.
        ClocheError: the sandbox does not answer.
    """
    with await run_sync(open_spool, settings.state_dir) as file:
        spool = Spool(file)
        await take_in(record, spool, names_only=True)
        found = await run_sync(tuple, map(_told, changes_in(file)))
    return ChangeList(spool.version, tuple(spool.layers), tuple(spool.sessions), found)


def _told(change: Change) -> Told:
    content = change.kind in ("file", "symlink")
    path = change.path.decode(errors="replace")
    return Told(change.kind, path, change.size, change.mode, content and executed_by_the_host(change.path))
