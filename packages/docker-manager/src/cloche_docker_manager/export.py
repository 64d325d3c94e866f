"""Exporting what a sandbox changed: taken in whole and checked, then written by the manager alone.

Source: checklist 276 to 290, 342 to 350.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from anyio.to_thread import run_sync

from cloche_contract.errors import DestinationUnusable, ExportRejected

from .agent_link import AgentLink
from .apply import Written, apply_to_folder
from .archive import write_archive
from .create import Report
from .destination import allowed_destination
from .drafts import Drafts
from .export_stream import Spool
from .prune import remove_folder
from .registry import Record
from .settings import ManagerSettings
from .workspace_tree import OPEN_FOLDER

# What is handed to a thread at once.
_PIECE = 1 << 20


@dataclass(frozen=True)
class Order:
    """What is asked for: where to, as what, and whether with files that the host would execute."""

    dest: str
    kind: str = "dir"
    host_executed: bool = False


@dataclass(frozen=True)
class Exported:
    """What an export was, and what it has done."""

    version: int
    layers: tuple[str, ...]
    sessions: tuple[str, ...]
    written: Written

    def told(self, kind: str) -> dict[str, object]:
        """As the result of export_changes has it."""
        done = self.written
        told: dict[str, object] = {
            "manifest_version": self.version,
            "format": kind,
            "layers_exported": list(self.layers),
            "files_written": done.files,
            "symlinks_written": done.symlinks,
            "bytes_written": done.bytes,
        }
        if kind == "dir":
            told |= {"deletes_applied": done.deletes, "opaque_clears_applied": done.clears}
        else:
            told["whiteouts_emitted"] = done.whiteouts
        if self.sessions:
            told["live_workspace_sessions"] = list(self.sessions)
        if done.left_out:
            told["left_out"] = done.left_out
        return told


async def export(
    record: Record, order: Order, settings: ManagerSettings, environ: Mapping[str, str], report: Report
) -> Exported:
    """Write the changes of a sandbox to this machine. Where it does not work out, the destination is as it was.

    Raises:
        DestinationNotAllowed, DestinationUnusable: it cannot go there.
        ExportRejected: the sandbox sent what no export is.
        ClocheError: the sandbox does not answer.
    """
    place = await run_sync(
        partial(allowed_destination, archive=order.kind != "dir", settings=settings, environ=environ), order.dest
    )
    drafts = Drafts(settings.state_dir)
    await run_sync(drafts.sweep)
    with await run_sync(open_spool, settings.state_dir) as file:
        spool = Spool(file)
        await report(1, "reading the changes")
        await take_in(record, spool, names_only=False)
        await report(2, "writing the changes")
        written = Written()
        await run_sync(_write, file, place, order, drafts, written)
    return Exported(spool.version, tuple(spool.layers), tuple(spool.sessions), written)


def open_spool(state_dir: Path) -> BinaryIO:
    """A private file without a name: it is gone when it is closed, also when this process is killed."""
    try:
        return tempfile.TemporaryFile(dir=state_dir)
    except OSError as exc:
        raise DestinationUnusable from exc


async def take_in(record: Record, spool: Spool, *, names_only: bool) -> None:
    """Put the whole stream of a sandbox into a spool, checked."""
    assert record.agent_port is not None, "a ready sandbox has an agent"
    link = AgentLink(record.agent_port, record.token)
    try:
        held = bytearray()
        async for chunk in link.export(names_only=names_only):
            held += chunk
            if len(held) >= _PIECE:
                await _feed(spool, held)
                held = bytearray()
        await _feed(spool, held)
        if not spool.finished:
            raise ExportRejected(reason="torn")
        spool.end()
    finally:
        await link.aclose()


async def _feed(spool: Spool, data: bytearray) -> None:
    try:
        await run_sync(spool.feed, data)
    except OSError as exc:
        raise DestinationUnusable from exc


def _write(file: BinaryIO, place: Path, order: Order, drafts: Drafts, written: Written) -> None:
    fresh = order.kind != "dir" or not place.exists()
    try:
        with drafts.noted(place.parent if fresh else place) as draft:
            if order.kind != "dir":
                packed = order.kind == "tar-zst"
                write_archive(file, place, draft, written, compressed=packed, host_executed=order.host_executed)
            elif fresh:
                _write_new_folder(file, place, draft, written, order)
            else:
                _apply(file, place, draft, written, order)
    except OSError as exc:
        raise DestinationUnusable from exc


def _write_new_folder(file: BinaryIO, place: Path, draft: str, written: Written, order: Order) -> None:
    """Write a folder beside its place, and rename it when it is whole."""
    beside = place.with_name(draft)
    beside.mkdir()
    try:
        _apply(file, beside, draft, written, order)
        beside.rename(place)
    except BaseException:
        remove_folder(beside)
        raise


def _apply(file: BinaryIO, folder: Path, draft: str, written: Written, order: Order) -> None:
    root = os.open(folder, OPEN_FOLDER)
    try:
        apply_to_folder(file, root, written, draft=draft.encode(), host_executed=order.host_executed)
    finally:
        os.close(root)
