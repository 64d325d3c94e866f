"""`abx sandbox list` and `kill`: the sandboxes that are alive, a page or all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Final

from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened, usable_id
from cloche_cli.sizes import ago, ahead
from cloche_contract.errors import ClocheError, NotFound
from cloche_contract.lifecycle import SandboxMetadata, SandboxRecord, SandboxStatus, disclose
from cloche_contract.provider import KillRequest, ListRequest, SandboxProvider
from cloche_sdk import AsyncSandbox
from cloche_sdk.providers import Doors
from cloche_sdk.requests import build

_PAGE: Final = 100
_EMPTY: Final = "No sandbox is alive."
_PROBLEMS: Final = {
    "newer": "made by a newer version; use that version for it",
    "older": "made by an older version that this one cannot read; use that version for it",
    "damaged": "its record is damaged; `abx sandbox kill` ends it where it still answers, else its timeout does",
}


@dataclass(frozen=True)
class ListOptions:
    """Which sandboxes, and which page of them."""

    limit: int
    offset: int
    every_page: bool = False
    filters: tuple[tuple[str, str], ...] = ()
    status: SandboxStatus | None = None
    region: str | None = None
    provider: str | None = None


def list_sandboxes(options: ListOptions) -> int:
    """List sandboxes."""
    invocation = current()
    return run_async(lambda: _list(options, invocation))


def kill_sandboxes(sandbox_ids: Sequence[str]) -> int:
    """Kill each sandbox; the first failure is told after all were tried."""
    invocation = current()
    return run_async(lambda: _kill(sandbox_ids, invocation))


def kill_every_sandbox(provider: str | None) -> int:
    """Kill all sandboxes of the provider that are alive now."""
    invocation = current()
    return run_async(lambda: _kill_every(provider, invocation))


async def _list(options: ListOptions, invocation: Invocation) -> int:
    doors = Doors()
    name = options.provider or doors.default_provider
    async with opened(doors, options.provider) as provider:
        records = await _records(provider, options)
    found = [
        disclose(record).model_copy(update={"sandbox_id": usable_id(doors, name, record.sandbox_id)})
        for record in records
    ]
    problems = {
        entry.sandbox_id: problem
        for entry, record in zip(found, records, strict=True)
        if (problem := record.lifecycle.get("problem")) in _PROBLEMS
    }
    if invocation.json:
        entries = [entry.model_dump(mode="json") for entry in found]
        page = {"limit": options.limit, "offset": options.offset, "problems": problems}
        invocation.emit({"sandboxes": entries, **page})
        return 0
    _print(found, invocation)
    for sandbox_id, problem in problems.items():
        invocation.note(f"{sandbox_id}: {_PROBLEMS[problem]}")
    return 0


async def _records(provider: SandboxProvider, options: ListOptions) -> list[SandboxRecord]:
    if not options.every_page and not options.filters:
        return await _page(provider, options)
    found: list[SandboxRecord] = []
    while True:
        page = await _page(provider, replace(options, limit=_PAGE, offset=options.offset + len(found)))
        found += page
        if len(page) < _PAGE:
            return [record for record in found if _matches(record, options.filters)]


async def _page(provider: SandboxProvider, options: ListOptions) -> list[SandboxRecord]:
    request = build(
        ListRequest, status=options.status, limit=options.limit, offset=options.offset, region=options.region
    )
    return (await provider.list(request)).sandboxes


def _matches(record: SandboxRecord, filters: Sequence[tuple[str, str]]) -> bool:
    """Whether every filter holds: a word of the metadata is equal, an id begins so."""
    values = disclose(record).model_dump(mode="json")
    return all(
        str(values["sandbox_id"]).startswith(wanted) if name == "id" else values[name] == wanted
        for name, wanted in filters
    )


def _print(found: Sequence[SandboxMetadata], invocation: Invocation) -> None:
    from cloche_cli.tables import print_table

    now = datetime.now(timezone.utc)
    rows = [
        (entry.sandbox_id, entry.template or "-", entry.status, ago(entry.started_at, now), ahead(entry.end_at, now))
        for entry in found
    ]
    print_table(("ID", "TEMPLATE", "STATUS", "STARTED", "ENDS"), rows, empty=_EMPTY)
    if not rows:
        invocation.note("fix: `abx sandbox create` makes one; `abx sandbox logs ID` tells how an ended one ended.")


async def _kill(sandbox_ids: Sequence[str], invocation: Invocation) -> int:
    killed: list[str] = []
    failure: ClocheError | None = None
    for sandbox_id in sandbox_ids:
        try:
            await AsyncSandbox.kill_by_id(sandbox_id)
        except ClocheError as error:
            failure = failure or error
        else:
            killed.append(sandbox_id)
    _tell_killed(killed, failure, invocation)
    return 0


async def _kill_every(name: str | None, invocation: Invocation) -> int:
    doors = Doors()
    killed: list[str] = []
    failure: ClocheError | None = None
    async with opened(doors, name) as provider:
        options = ListOptions(limit=_PAGE, offset=0, every_page=True)
        for record in await _records(provider, options):
            try:
                await provider.kill(KillRequest(sandbox_id=record.sandbox_id))
            except NotFound:
                continue  # it ended by itself
            except ClocheError as error:
                failure = failure or error
            else:
                killed.append(usable_id(doors, name or doors.default_provider, record.sandbox_id))
    if not killed and failure is None and not invocation.json:
        invocation.write(_EMPTY + "\n")
        return 0
    _tell_killed(killed, failure, invocation)
    return 0


def _tell_killed(killed: Sequence[str], failure: ClocheError | None, invocation: Invocation) -> None:
    if invocation.json:
        invocation.emit({"success": failure is None, "killed": list(killed)})
    else:
        invocation.write("".join(f"killed {sandbox_id}\n" for sandbox_id in killed))
    if failure is not None:
        raise failure
