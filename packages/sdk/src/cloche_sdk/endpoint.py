"""Where other clients of the agent's protocol, such as those of E2B, reach a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cloche_contract.agent import HEADER_ACCESS_TOKEN, ROUTE_INFO
from cloche_contract.errors import ProviderFailed, UnsupportedOperation

from .data_plane import AgentChannel
from .link import SandboxLink

__all__ = ["Endpoint", "find_endpoint"]


@dataclass(frozen=True)
class Endpoint:
    """What a client of E2B's protocol needs to reach one sandbox. Whoever has the token can do anything in it.

    `envd_version` is the version of E2B's agent whose features there are.
    """

    sandbox_id: str
    url: str
    envd_version: str
    access_token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every request carries."""
        return {HEADER_ACCESS_TOKEN: self.access_token}


async def find_endpoint(link: SandboxLink) -> Endpoint:
    """Where the sandbox is reached over TCP, and the token that its requests carry.

    Raises:
        UnsupportedOperation: it is reached by its provider only; `create` with `listen` gives it a port.
        SandboxLost, SandboxExpired: it is gone.
    """
    # Its connection knows the token; the record of a list or a get does not.
    await link.enter()
    endpoint = link.record.agent
    if endpoint is None:
        raise ProviderFailed
    url = link.record.url or ""
    if endpoint.socket_path is None:
        url = endpoint.base_url
    elif not url.startswith("http"):
        raise UnsupportedOperation(capability="listener")
    return Endpoint(
        sandbox_id=link.reference.sandbox_id,
        url=url,
        envd_version=str((await _info(link)).get("envd_version") or endpoint.version),
        access_token=endpoint.access_token.get_secret_value(),
    )


async def _info(link: SandboxLink) -> Mapping[str, Any]:
    found = await AgentChannel(link).plain("GET", ROUTE_INFO)
    if not isinstance(found, dict):
        raise ProviderFailed
    return cast("Mapping[str, Any]", found)
