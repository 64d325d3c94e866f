"""OAuth 2.1, as the resource server: access tokens of an authorization server, verified by the program that embeds us.

A token is accepted that its verifier knows, that is not expired, was issued by that issuer for this
resource, and has the scopes. A principal is the client and the subject at that issuer.

Source: the issue, item 4; MCP 2025-06-18, "Authorization"; RFC 6750, RFC 8707, RFC 9728.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from mcp.server.auth.provider import AccessToken, TokenVerifier, principal_components
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl, ValidationError
from starlette.routing import Route

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.kernel.doors import Clock, SystemClock
from cloche_mcp_http.addresses import is_trusted
from cloche_mcp_http.oauth_variables import AUDIENCE_VARIABLE, ISSUER_VARIABLE, RESOURCE_VARIABLE
from cloche_mcp_http.principals import NotAuthorized, bearer_token


@dataclass(frozen=True)
class OAuth:
    """Who issues tokens for this server, and how they are verified.

    Attributes:
        verifier: turns a token into what it grants, or None; with an introspection endpoint or signing keys.
        issuer_url: the authorization server.
        resource_url: the URL of `/mcp` as clients write it; tokens for another audience are refused.
        required_scopes: scopes that every token needs.
    """

    verifier: TokenVerifier
    issuer_url: str
    resource_url: str
    required_scopes: Sequence[str] = ()


def trusted_resource(issuer_url: str, audience: str, resource_url: str | None) -> str:
    """The URL of the resource that tokens of this issuer are for.

    Raises:
        ConfigurationInvalid: it, or the issuer's, is no URL, or neither https nor of this machine.
    """
    if not is_trusted(issuer_url):
        raise ConfigurationInvalid(setting=ISSUER_VARIABLE)
    resource = resource_url or audience
    if not is_trusted(resource):
        raise ConfigurationInvalid(setting=RESOURCE_VARIABLE if resource_url else AUDIENCE_VARIABLE)
    return resource


class OAuthCallers:
    """Callers by their access tokens."""

    def __init__(self, oauth: OAuth, clock: Clock | None = None) -> None:
        """Take the settings.

        Raises:
            ConfigurationInvalid: a URL is none.
        """
        try:
            self._issuer, self._resource = AnyHttpUrl(oauth.issuer_url), AnyHttpUrl(oauth.resource_url)
        except ValidationError as error:
            raise ConfigurationInvalid(setting="issuer_url, resource_url") from error
        self._verifier = oauth.verifier
        self._scopes = tuple(oauth.required_scopes)
        self._clock = clock or SystemClock()

    async def identify(self, authorization: str | None) -> str:
        """The principal of a request.

        Raises:
            NotAuthorized: its token is not for this server, or is no token.
        """
        token = bearer_token(authorization)
        access = None if token is None else await self._verifier.verify_token(token)
        if access is None or not self._holds(access):
            raise NotAuthorized(401, self._challenge("invalid_token"))
        if not set(self._scopes) <= set(access.scopes):
            raise NotAuthorized(403, self._challenge("insufficient_scope"))
        client, _issuer, subject = principal_components(access)
        # A digest: what sandboxes are labelled with tells nobody who uses them.
        name = json.dumps([str(self._issuer), client, subject])
        return f"oauth-{hashlib.sha256(name.encode()).hexdigest()}"

    def routes(self) -> list[Route]:
        """Where clients learn which authorization server to ask (RFC 9728)."""
        return create_protected_resource_routes(self._resource, [self._issuer], list(self._scopes))

    def _holds(self, access: AccessToken) -> bool:
        _client, issuer, _subject = principal_components(access)
        in_time = access.expires_at is None or access.expires_at >= self._clock.now().timestamp()
        of_issuer = issuer is None or _same(issuer, self._issuer)
        return in_time and of_issuer and access.resource is not None and _same(access.resource, self._resource)

    def _challenge(self, error: str) -> str:
        scopes = f', scope="{" ".join(self._scopes)}"' if self._scopes else ""
        return f'Bearer error="{error}", resource_metadata="{build_resource_metadata_url(self._resource)}"{scopes}'


def _same(text: str, url: AnyHttpUrl) -> bool:
    try:
        return str(AnyHttpUrl(text)).rstrip("/") == str(url).rstrip("/")
    except ValidationError:
        return False
