"""`abx sandbox diff`: what a sandbox changed, for a person or as JSON."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from cloche_cli.escaped import escaped
from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened
from cloche_contract.provider import DiffEntry, DiffRequest, DiffResult
from cloche_sdk.providers import Doors
from cloche_sdk.requests import build

_COLOURS: Final = {"added": "32", "modified": "33", "deleted": "31"}
_REASONS: Final = {
    "too_many": "there are too many entries to look at all of them",
    "too_deep": "folders are nested too deeply to look at all of them",
    "too_slow": "looking at all of it took too long",
    "unreadable": "something could not be read while it was looked at",
}


def show_changes(sandbox_id: str, limit: int, after: str | None) -> int:
    """Tell one page of what a sandbox changed."""
    invocation = current()
    return run_async(lambda: _show_changes(sandbox_id, limit, after, invocation))


async def _show_changes(sandbox_id: str, limit: int, after: str | None, invocation: Invocation) -> int:
    doors = Doors()
    reference = doors.reference(sandbox_id)
    request = build(DiffRequest, sandbox_id=reference.sandbox_id, limit=limit, after=after)
    async with opened(doors, reference.provider) as provider:
        result = await provider.diff(request)
    if invocation.json:
        invocation.emit(result.model_dump(mode="json"))
    else:
        _print(result, sandbox_id, invocation)
    return 0


def _print(result: DiffResult, sandbox_id: str, invocation: Invocation) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    invocation.write("".join(_line(entry, coloured=coloured) for entry in result.entries))
    invocation.write(_sums(result))
    for reason in result.incomplete:
        invocation.note(f"not complete: {_REASONS[reason]}.")
    if result.next is not None:
        invocation.note(f"more: abx sandbox diff {sandbox_id} --after {result.next}")
    invocation.note(f"not included, read-only or of the kernel: {' '.join(map(escaped, result.not_included))}")


def _line(entry: DiffEntry, *, coloured: bool) -> str:
    word = entry.change.ljust(8)
    if coloured:
        word = f"\x1b[{_COLOURS[entry.change]}m{word}\x1b[0m"
    size = str(entry.size) if entry.kind == "file" else "-"
    path = escaped(entry.path, entry.path_base64)
    return f"{word}  {entry.kind:<9}  {entry.mode:>4}  {size:>10}  {path}{_more(entry)}\n"


def _more(entry: DiffEntry) -> str:
    if entry.target is not None:
        return f" -> {escaped(entry.target, entry.target_base64)}"
    facts: Sequence[str] = _differences(entry)
    if entry.links > 1:
        facts = [*facts, f"{entry.links} names"]
    return f"  ({', '.join(facts)})" if facts else ""


def _differences(entry: DiffEntry) -> list[str]:
    """What a modified entry was, as far as its line does not show it."""
    was = entry.before
    if was is None:
        return []
    texts = {
        "content": f"was {was.size} bytes",
        "kind": f"was a {was.kind}",
        "mode": f"mode was {was.mode}",
        "owner": f"owner was {was.uid}:{was.gid}, is {entry.uid}:{entry.gid}",
        "target": "pointed elsewhere",
    }
    return [texts[part] for part in entry.changed]


def _sums(result: DiffResult) -> str:
    if not result.added + result.modified + result.deleted:
        return "Nothing was changed.\n"
    counts = f"{result.added} added, {result.modified} modified, {result.deleted} deleted"
    return f"{counts}; {result.added_bytes} bytes in files that were added or rewritten.\n"
