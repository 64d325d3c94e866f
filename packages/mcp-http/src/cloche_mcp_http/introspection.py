"""Opaque access tokens: the authorization server is asked what each grants, and its answer is kept for a short while.

A token that was revoked is refused once the answer about it is old: after a minute at most. While the authorization
server does not answer, only callers that it has just vouched for are let in.

Source: RFC 7662 (token introspection), RFC 6749 2.3.1 (how a client says who it is), RFC 8707 (audience).
"""

import base64
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from urllib.parse import quote_plus

import anyio
import anyio.to_thread
from mcp.server.auth.provider import AccessToken

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http.addresses import is_trusted
from cloche_mcp_http.claims import granted, with_and_without_slash
from cloche_mcp_http.documents import FetchFailed, fetch_document
from cloche_mcp_http.oauth import OAuth, trusted_resource
from cloche_mcp_http.oauth_variables import CLIENT_ID_VARIABLE, CLIENT_SECRET_VARIABLE, INTROSPECTION_URL_VARIABLE
from cloche_mcp_http.principals import CallersUnavailable

logger = logging.getLogger(__name__)

FRESH_S = 60.0
# A token that grants nothing may be on its way into the server's memory.
REFUSED_S = 5.0
MOST_KEPT = 4096
# Whoever sends one invented token after the other must not make us flood the authorization server.
MOST_AT_ONCE = 8
_TURN_WITHIN_S = 5.0


@dataclass(frozen=True)
class Introspection:
    """Where tokens are asked about, and as whom.

    Attributes:
        url: the introspection endpoint.
        client_id: this server, as the authorization server knows it.
        client_secret: its secret there.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def ask(self, token: str) -> Mapping[str, Any]:
        """What the authorization server says of a token; blocks.

        Raises:
            FetchFailed: it does not say.
        """
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        form = {"token": token, "token_type_hint": "access_token"}
        return fetch_document(self.url, form, f"Basic {base64.b64encode(pair.encode()).decode()}")


class IntrospectionVerifier:
    """The `TokenVerifier` that asks one authorization server."""

    def __init__(self, endpoint: Introspection, *, issuer_url: str, audience: str, resource_url: str) -> None:
        self._endpoint = endpoint
        self._issuers = with_and_without_slash(issuer_url)
        self._audiences = with_and_without_slash(audience)
        self._resource_url = resource_url
        # By digest: no token stays in memory for longer than its request.
        self._kept: OrderedDict[bytes, tuple[float, AccessToken | None]] = OrderedDict()
        self._turns = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token grants, or None where it is none of this issuer for this audience.

        Raises:
            CallersUnavailable: the authorization server does not say.
        """
        digest = hashlib.sha256(token.encode()).digest()
        until, access = self._kept.get(digest, (0.0, None))
        if anyio.current_time() < until:
            return access
        access = self._granted(await self._ask(token))
        self._kept[digest] = anyio.current_time() + (REFUSED_S if access is None else FRESH_S), access
        self._kept.move_to_end(digest)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return access

    async def _ask(self, token: str) -> Mapping[str, Any]:
        try:
            with anyio.fail_after(_TURN_WITHIN_S):
                await self._turns.acquire_on_behalf_of(asked := object())
        except TimeoutError as error:
            raise CallersUnavailable from error
        try:
            return await anyio.to_thread.run_sync(partial(self._endpoint.ask, token), abandon_on_cancel=True)
        except FetchFailed as error:
            logger.warning("the authorization server does not tell about tokens", extra={"reason": str(error)})
            raise CallersUnavailable from error
        finally:
            self._turns.release_on_behalf_of(asked)

    def _granted(self, claims: Mapping[str, Any]) -> AccessToken | None:
        audience: Any = claims.get("aud")
        audiences = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
        kind = claims.get("token_type", "Bearer")
        if claims.get("active") is not True or not any(each in self._audiences for each in audiences):
            return None
        if claims.get("iss", self._issuers[0]) not in self._issuers or str(kind).lower() != "bearer":
            return None
        return granted("", claims, self._resource_url)


def introspection_oauth(
    issuer_url: str,
    audience: str,
    *,
    introspection_url: str,
    client_id: str,
    client_secret: str,
    resource_url: str | None = None,
    required_scopes: Sequence[str] = (),
) -> OAuth:
    """Take the opaque access tokens of an authorization server, which is asked about each.

    Args:
        issuer_url: the authorization server.
        audience: what it must say as the audience of a token (`aud`): as a rule the URL of `/mcp`.
        introspection_url: where it is asked.
        client_id: this server, as the authorization server knows it.
        client_secret: its secret there.
        resource_url: the URL of `/mcp` as clients write it, where the audience is something else.
        required_scopes: scopes that every token needs.

    Raises:
        ConfigurationInvalid: a URL is none, or neither https nor of this machine; id or secret are blank.
    """
    resource = trusted_resource(issuer_url, audience, resource_url)
    if not is_trusted(introspection_url):
        raise ConfigurationInvalid(setting=INTROSPECTION_URL_VARIABLE)
    for variable, text in ((CLIENT_ID_VARIABLE, client_id), (CLIENT_SECRET_VARIABLE, client_secret)):
        if not text.strip():
            raise ConfigurationInvalid(setting=variable)
    endpoint = Introspection(introspection_url, client_id, client_secret)
    verifier = IntrospectionVerifier(endpoint, issuer_url=issuer_url, audience=audience, resource_url=resource)
    return OAuth(verifier, issuer_url=issuer_url, resource_url=resource, required_scopes=tuple(required_scopes))
