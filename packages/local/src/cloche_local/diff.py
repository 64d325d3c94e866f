"""What a sandbox changed, as the host half asks for it: pages of its keeper, put together and checked."""

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import MISSING

from cloche_contract.errors import (
    InvalidArgument,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    UnsupportedOperation,
)
from cloche_contract.provider import DiffRequest, DiffResult
from cloche_local import agent_call
from cloche_local.state import Record

_TIMEOUT_S = 30.0
# Mounted for each sandbox; /dev holds devices and nothing that can be written, but for /dev/shm, which is compared.
_MADE_BY_THE_KERNEL = ("/dev", "/proc")


async def compare(record: Record, socket_path: str, token: str, request: DiffRequest) -> DiffResult:
    """One page of what is different in a live sandbox from its template.

    Raises:
        InvalidArgument: `after` comes from no page.
        UnsupportedOperation: the sandbox was started by a version that cannot tell.
        ProviderTimeout, ProviderUnavailable, ProviderFailed: no good answer.
    """
    entries: list[object] = []
    after = "" if request.after is MISSING else request.after
    while True:
        page = await _ask(socket_path, token, request.limit - len(entries), after)
        entries += cast("list[object]", page["entries"])
        after = cast("str", page["next"] or "")
        if not after or len(entries) >= request.limit:
            break
    # Validated: the keeper shares nothing with user code, but what it tells comes from names that user code made.
    try:
        return DiffResult.model_validate(
            {
                **page,
                "sandbox_id": record.sandbox_id,
                "entries": entries,
                "not_included": sorted({*record.binds, *_MADE_BY_THE_KERNEL}),
            }
        )
    except ValueError as error:
        raise ProviderFailed from error


async def _ask(socket_path: str, token: str, limit: int, after: str) -> Mapping[str, Any]:
    body = json.dumps({"limit": limit, "after": after}).encode()
    try:
        return json.loads(await agent_call.ask(socket_path, token, "/cloche/changes", body, timeout_s=_TIMEOUT_S))
    except agent_call.AgentSilent as silent:
        raise ProviderTimeout from silent
    except ValueError as error:
        raise ProviderFailed from error
    except agent_call.AgentRefused as refused:
        if refused.status in (404, 501):
            raise UnsupportedOperation(capability="diff") from refused
        if refused.status == 400:
            raise InvalidArgument(field="after", rule="pattern") from refused
        raise ProviderUnavailable from refused
