"""`abx sandbox logs`: what happened in a sandbox, once or as it happens."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cloche_cli.escaped import escaped
from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened
from cloche_contract.provider import LogEvent, LogsRequest, LogsResult, SandboxProvider
from cloche_sdk.providers import Doors
from cloche_sdk.requests import build

_WAIT_S: Final = 30
# What a line shows without its name; other facts follow as name=value.
_PLAIN: Final = ("method", "status", "reason", "target")


def show_log(sandbox_id: str, limit: int, *, follow: bool) -> int:
    """Tell the events of one sandbox."""
    invocation = current()
    return run_async(lambda: _show_log(sandbox_id, limit, follow, invocation))


async def _show_log(sandbox_id: str, limit: int, follow: bool, invocation: Invocation) -> int:
    doors = Doors()
    reference = doors.reference(sandbox_id)
    request = build(LogsRequest, sandbox_id=reference.sandbox_id, limit=limit)
    async with opened(doors, reference.provider) as provider:
        result = await provider.logs(request)
        if follow:
            await _follow(provider, request, result, invocation)
        elif invocation.json:
            invocation.emit(result.model_dump(mode="json"))
        else:
            _write(result.events, invocation)
    return 0


async def _follow(provider: SandboxProvider, request: LogsRequest, result: LogsResult, invocation: Invocation) -> None:
    last = 0
    while True:
        _write(result.events, invocation)
        last = result.events[-1].number if result.events else last
        if not result.alive:
            return
        result = await provider.logs(request.model_copy(update={"after": last, "wait": _WAIT_S}))


def _write(events: Sequence[LogEvent], invocation: Invocation) -> None:
    if invocation.json:
        lines = [json.dumps(event.model_dump(mode="json"), ensure_ascii=False) for event in events]
    else:
        lines = [_line(event) for event in events]
    invocation.write("".join(f"{line}\n" for line in lines))


def _line(event: LogEvent) -> str:
    at = datetime.fromisoformat(event.at).astimezone()
    plain = [event.facts[name] for name in _PLAIN if name in event.facts]
    named = [f"{name}={value}" for name, value in event.facts.items() if name not in _PLAIN]
    # A denied destination is what user code asked for.
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}  {event.event:<13}  {escaped(' '.join(plain + named))}"
