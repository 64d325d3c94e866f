"""A client of a sandbox platform over any transport. Generated from schemas/http/platform.json; do not edit."""

from __future__ import annotations

from collections.abc import Mapping

from cloche_contract._gen import http_routes as routes
from cloche_contract._gen.models.http.platform import CreatedSandbox, NewSandbox, Pause, SandboxDetail, Timeout
from cloche_contract.wire.rest import Page, PlatformTransport

_NONE: Mapping[str, str] = {}


class PlatformClient:
    """One method per route. Keys of an answer that this version does not know are ignored."""

    def __init__(self, transport: PlatformTransport) -> None:
        self._transport = transport

    async def create_sandbox(self, request: NewSandbox, *, headers: Mapping[str, str] = _NONE) -> CreatedSandbox:
        """Make a sandbox and answer when it runs."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.send(routes.CREATE_SANDBOX, body=body, headers=headers)
        return CreatedSandbox.model_validate(answer.value, extra="ignore")

    async def create_sandbox_v1(self, request: NewSandbox, *, headers: Mapping[str, str] = _NONE) -> CreatedSandbox:
        """Make a sandbox, on platforms that do not have the second version."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.send(routes.CREATE_SANDBOX_V1, body=body, headers=headers)
        return CreatedSandbox.model_validate(answer.value, extra="ignore")

    async def list_sandboxes(
        self, *, query: Mapping[str, str] = _NONE, headers: Mapping[str, str] = _NONE
    ) -> Page[SandboxDetail]:
        """One page of sandboxes, newest first; the header X-Next-Token names the next page."""
        answer = await self._transport.send(routes.LIST_SANDBOXES, query=query, headers=headers)
        found = [SandboxDetail.model_validate(entry, extra="ignore") for entry in answer.entries()]
        return Page(found, answer.next_token)

    async def list_sandboxes_v1(
        self, *, query: Mapping[str, str] = _NONE, headers: Mapping[str, str] = _NONE
    ) -> Page[SandboxDetail]:
        """One page of sandboxes, on platforms that do not have the second version."""
        answer = await self._transport.send(routes.LIST_SANDBOXES_V1, query=query, headers=headers)
        found = [SandboxDetail.model_validate(entry, extra="ignore") for entry in answer.entries()]
        return Page(found, answer.next_token)

    async def get_sandbox(self, sandbox_id: str, *, headers: Mapping[str, str] = _NONE) -> SandboxDetail:
        """What the platform knows about a sandbox. Never resumes it."""
        answer = await self._transport.send(routes.GET_SANDBOX, values={"sandbox_id": sandbox_id}, headers=headers)
        return SandboxDetail.model_validate(answer.value, extra="ignore")

    async def delete_sandbox(self, sandbox_id: str, *, headers: Mapping[str, str] = _NONE) -> None:
        """Destroy a sandbox."""
        await self._transport.send(routes.DELETE_SANDBOX, values={"sandbox_id": sandbox_id}, headers=headers)

    async def set_timeout(self, sandbox_id: str, request: Timeout, *, headers: Mapping[str, str] = _NONE) -> None:
        """Let a sandbox live for so many seconds from now."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        await self._transport.send(routes.SET_TIMEOUT, values={"sandbox_id": sandbox_id}, body=body, headers=headers)

    async def connect_sandbox(
        self, sandbox_id: str, request: Timeout, *, headers: Mapping[str, str] = _NONE
    ) -> CreatedSandbox:
        """Answer with what it takes to use a sandbox; a paused one is resumed."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.send(
            routes.CONNECT_SANDBOX, values={"sandbox_id": sandbox_id}, body=body, headers=headers
        )
        return CreatedSandbox.model_validate(answer.value, extra="ignore")

    async def connect_sandbox_v1(
        self, sandbox_id: str, request: Timeout, *, headers: Mapping[str, str] = _NONE
    ) -> CreatedSandbox:
        """The same, on platforms that do not have the second version."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.send(
            routes.CONNECT_SANDBOX_V1, values={"sandbox_id": sandbox_id}, body=body, headers=headers
        )
        return CreatedSandbox.model_validate(answer.value, extra="ignore")

    async def pause_sandbox(self, sandbox_id: str, request: Pause, *, headers: Mapping[str, str] = _NONE) -> None:
        """Stop a sandbox and keep what is in it."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        await self._transport.send(routes.PAUSE_SANDBOX, values={"sandbox_id": sandbox_id}, body=body, headers=headers)

    async def resume_sandbox(
        self, sandbox_id: str, request: Timeout, *, headers: Mapping[str, str] = _NONE
    ) -> CreatedSandbox:
        """Let a paused sandbox go on, on platforms that have no connect."""
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.send(
            routes.RESUME_SANDBOX, values={"sandbox_id": sandbox_id}, body=body, headers=headers
        )
        return CreatedSandbox.model_validate(answer.value, extra="ignore")
