"""`abx prune`: what was removed, and how much it took."""

from cloche_cli.escaped import escaped
from cloche_cli.exit_status import OK, OTHER
from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened
from cloche_cli.sizes import shown_size
from cloche_contract.provider import Leftover, PruneRequest, PruneResult
from cloche_sdk.providers import Doors

_DAY_S = 86400


def prune_leftovers(provider: str | None, *, dry_run: bool, logs_older_than_days: int) -> int:
    """Remove what is dead, or tell it; status 1 when something could not be removed."""
    invocation = current()
    request = PruneRequest(dry_run=dry_run, logs_older_than=logs_older_than_days * _DAY_S)
    return run_async(lambda: _prune(provider, request, invocation))


async def _prune(name: str | None, request: PruneRequest, invocation: Invocation) -> int:
    async with opened(Doors(), name) as provider:
        result = await provider.prune(request)
    if invocation.json:
        invocation.emit({"dry_run": request.dry_run, **result.model_dump(mode="json")})
    else:
        _print(result, "would remove" if request.dry_run else "removed", invocation)
    return OTHER if result.failed else OK


def _print(result: PruneResult, verb: str, invocation: Invocation) -> None:
    invocation.write("".join(_line(verb, each) for each in result.removed))
    if result.removed:
        invocation.write(f"{len(result.removed)} {verb}, {shown_size(result.size)}.\n")
    elif not result.failed:
        invocation.write("Nothing is left to remove.\n")
    for each in result.failed:
        invocation.note(f"error: could not remove {each.kind} {escaped(each.path)}")
    if result.failed:
        invocation.note("fix: Look at who owns it, and remove it by hand.")


def _line(verb: str, each: Leftover) -> str:
    return f"{verb}  {each.kind:<13}  {shown_size(each.size):>8}  {escaped(each.path)}\n"
