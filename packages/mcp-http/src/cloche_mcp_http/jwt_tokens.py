"""Access tokens that say themselves what they grant: JWTs, checked against the keys of their issuer.

Source: RFC 9068 (JWT access tokens), RFC 8725 (what goes wrong with JWTs), RFC 8707 (audience).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jwt
from mcp.server.auth.provider import AccessToken

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http.issuer_keys import IssuerKeys, is_trusted
from cloche_mcp_http.oauth import OAuth

ISSUER_VARIABLE = "ABX_MCP_OAUTH_ISSUER"
AUDIENCE_VARIABLE = "ABX_MCP_OAUTH_AUDIENCE"
RESOURCE_VARIABLE = "ABX_MCP_OAUTH_RESOURCE"
JWKS_URL_VARIABLE = "ABX_MCP_OAUTH_JWKS_URL"
SCOPES_VARIABLE = "ABX_MCP_OAUTH_SCOPES"
OAUTH_VARIABLES = (ISSUER_VARIABLE, AUDIENCE_VARIABLE, RESOURCE_VARIABLE, JWKS_URL_VARIABLE, SCOPES_VARIABLE)

# Public-key signatures only: with a shared secret, whoever checks a token could also make one.
_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"},
)
_TYPES = frozenset({"at+jwt", "application/at+jwt", "jwt"})
_LEEWAY_S = 10


class JwtVerifier:
    """The `TokenVerifier` of one issuer and audience."""

    def __init__(self, keys: IssuerKeys, *, issuer_url: str, audience: str, resource_url: str) -> None:
        self._keys = keys
        self._issuers = _with_and_without_slash(issuer_url)
        self._audiences = _with_and_without_slash(audience)
        self._resource_url = resource_url

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token grants, or None where it is none of this issuer for this audience.

        Raises:
            CallersUnavailable: the issuer's keys are not known.
        """
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        algorithm, kind, key_id = header.get("alg"), header.get("typ"), header.get("kid")
        if algorithm not in _ALGORITHMS or (kind is not None and str(kind).lower() not in _TYPES):
            return None
        key = await self._keys.find(key_id if isinstance(key_id, str) else None)
        if key is None:
            return None
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[str(algorithm)],
                audience=self._audiences,
                issuer=self._issuers,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud"], "verify_iat": False},
            )
        except jwt.PyJWTError:
            return None
        return self._granted(token, claims)

    def _granted(self, token: str, claims: Mapping[str, Any]) -> AccessToken | None:
        client = _text(claims, "client_id") or _text(claims, "azp") or ""
        subject = _text(claims, "sub")
        if not client and not subject:
            return None
        return AccessToken(
            token=token,
            client_id=client,
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._resource_url,
            subject=subject,
            claims={"iss": claims["iss"]},
        )


def _with_and_without_slash(text: str) -> list[str]:
    """Issuers disagree about the slash at the end of their own name."""
    bare = text.rstrip("/")
    return [bare, f"{bare}/"]


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    found = claims.get(name)
    return found if isinstance(found, str) and found else None


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    found = claims.get("scope", claims.get("scp"))
    if isinstance(found, str):
        return found.split()
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [each for each in listed if isinstance(each, str)]


def jwt_oauth(
    issuer_url: str,
    audience: str,
    *,
    resource_url: str | None = None,
    jwks_url: str | None = None,
    required_scopes: Sequence[str] = (),
) -> OAuth:
    """Take the JWT access tokens of an authorization server.

    Args:
        issuer_url: the authorization server, as its tokens name it (`iss`).
        audience: what its tokens name as their audience (`aud`): as a rule the URL of `/mcp`.
        resource_url: the URL of `/mcp` as clients write it, where the audience is something else.
        jwks_url: where its signing keys are, for a server that publishes no metadata.
        required_scopes: scopes that every token needs.

    Raises:
        ConfigurationInvalid: a URL is none, or neither https nor of this machine.
    """
    for variable, url in ((ISSUER_VARIABLE, issuer_url), (JWKS_URL_VARIABLE, jwks_url)):
        if url is not None and not is_trusted(url):
            raise ConfigurationInvalid(setting=variable)
    resource = resource_url or audience
    if not is_trusted(resource):
        raise ConfigurationInvalid(setting=RESOURCE_VARIABLE if resource_url else AUDIENCE_VARIABLE)
    verifier = JwtVerifier(
        IssuerKeys(issuer_url, jwks_url), issuer_url=issuer_url, audience=audience, resource_url=resource
    )
    return OAuth(verifier, issuer_url=issuer_url, resource_url=resource, required_scopes=tuple(required_scopes))


def oauth_of(environ: Mapping[str, str]) -> OAuth | None:
    """What an environment configures, or None where it configures nothing of this.

    Raises:
        ConfigurationInvalid: a variable is set and blank, one that is needed is missing, or a URL is none.
    """
    given = {name: environ[name].strip() for name in OAUTH_VARIABLES if name in environ}
    if not given:
        return None
    for name in (*given, ISSUER_VARIABLE, AUDIENCE_VARIABLE):
        if not given.get(name):
            raise ConfigurationInvalid(setting=name)
    return jwt_oauth(
        given[ISSUER_VARIABLE],
        given[AUDIENCE_VARIABLE],
        resource_url=given.get(RESOURCE_VARIABLE),
        jwks_url=given.get(JWKS_URL_VARIABLE),
        required_scopes=given.get(SCOPES_VARIABLE, "").replace(",", " ").split(),
    )
