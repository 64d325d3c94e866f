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
from .export_stream import Spool
from .registry import Record
from .settings import ManagerSettings
from .workspace_tree import OPEN_FOLDER


@dataclass(frozen=True)
class Exported:
    """What an export was, and what it has done."""

    version: int
    layers: tuple[str, ...]
    sessions: tuple[str, ...]
    written: Written


async def export(
    record: Record, dest: str, kind: str, settings: ManagerSettings, environ: Mapping[str, str], report: Report
) -> Exported:
    """Write the changes of a sandbox to this machine. A stream that is not right leaves the destination untouched.

    Raises:
        DestinationNotAllowed, DestinationUnusable: it cannot go there.
        ExportRejected: the sandbox sent what no export is.
        ClocheError: the sandbox does not answer.
    """
    place = await run_sync(
        partial(allowed_destination, archive=kind != "dir", settings=settings, environ=environ), dest
    )
    with await run_sync(_open_spool, settings.state_dir) as file:
        spool = Spool(file)
        await report(1, "reading the changes")
        await _take_in(record, spool)
        await report(2, "writing the changes")
        written = Written()
        await run_sync(_write, file, place, kind, written)
    return Exported(spool.version, tuple(spool.layers), tuple(spool.sessions), written)


def _open_spool(state_dir: Path) -> BinaryIO:
    """A private file without a name: it is gone when it is closed, also when this process is killed."""
    try:
        return tempfile.TemporaryFile(dir=state_dir)
    except OSError as exc:
        raise DestinationUnusable from exc


async def _take_in(record: Record, spool: Spool) -> None:
    assert record.agent_port is not None, "a ready sandbox has an agent"
    link = AgentLink(record.agent_port, record.token)
    try:
        async for chunk in link.export():
            try:
                await run_sync(spool.feed, chunk)
            except OSError as exc:
                raise DestinationUnusable from exc
        if not spool.finished:
            raise ExportRejected(reason="torn")
        spool.end()
    finally:
        await link.aclose()


def _write(file: BinaryIO, place: Path, kind: str, written: Written) -> None:
    try:
        if kind != "dir":
            write_archive(file, place, written, compressed=kind == "tar-zst")
            return
        place.mkdir(exist_ok=True)
        root = os.open(place, OPEN_FOLDER)
        try:
            apply_to_folder(file, root, written)
        finally:
            os.close(root)
    except OSError as exc:
        raise DestinationUnusable from exc
