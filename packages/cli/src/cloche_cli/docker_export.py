"""`abx docker export`: what a sandbox changed, into this machine; or the list of it."""

import os
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from cloche_cli.docker import require_manager
from cloche_cli.escaped import escaped
from cloche_cli.exit_status import OK
from cloche_cli.invocation import current
from cloche_cli.sizes import shown_size

if TYPE_CHECKING:
    from cloche_docker_manager.change_list import ChangeList
    from cloche_docker_manager.manager import Manager

_T = TypeVar("_T")


def export_docker(sandbox_id: str, dest: str, kind: str, *, host_executed: bool) -> int:
    """Write the published changes of a sandbox, and tell what was written and what was left out."""
    require_manager()
    from cloche_docker_manager.export import Order

    order = Order(os.path.abspath(dest), kind, host_executed)
    done = _with_manager(lambda manager: manager.export(sandbox_id, order, _no_report))
    invocation = current()
    if invocation.json:
        invocation.emit(done.told(kind))
        return OK
    wrote = done.written
    invocation.write(f"{wrote.files} files and {wrote.symlinks} links written, {shown_size(wrote.bytes)}\n")
    if kind == "dir" and wrote.deletes:
        invocation.write(f"{wrote.deletes} paths deleted\n")
    for session in done.sessions:
        invocation.write(f"not in it: the unpublished work of session {escaped(session)}\n")
    for path in wrote.left_out:
        invocation.write(f"left out, the host would execute it: {escaped(path)}\n")
    if wrote.left_out:
        invocation.note("--include-host-executed writes these files too; read them first")
    return OK


def list_docker_changes(sandbox_id: str) -> int:
    """Tell what an export would write; nothing is written."""
    require_manager()
    found = _with_manager(lambda manager: manager.changes(sandbox_id))
    invocation = current()
    if invocation.json:
        invocation.emit(_document(found))
        return OK
    for change in found.changes:
        size = shown_size(change.size) if change.kind == "file" else "-"
        mark = "  (the host would execute it)" if change.host_executed else ""
        invocation.write(f"{change.kind:<8} {size:>9}  {escaped(change.path)}{mark}\n")
    if not found.changes:
        invocation.write("Nothing has changed.\n")
    return OK


def _document(found: "ChangeList") -> dict[str, object]:
    return {
        "dry_run": True,
        "manifest_version": found.version,
        "layers": list(found.layers),
        "live_workspace_sessions": list(found.sessions),
        "changes": [asdict(change) for change in found.changes],
    }


def _with_manager(work: "Callable[[Manager], Coroutine[Any, Any, _T]]") -> _T:
    from cloche_docker_manager.manager import Manager

    async def run() -> _T:
        manager = Manager(os.environ)
        try:
            return await work(manager)
        finally:
            await manager.aclose()

    return anyio.run(run)


async def _no_report(_progress: float, _message: str) -> None:
    return None
