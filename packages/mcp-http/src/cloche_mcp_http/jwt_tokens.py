"""Access tokens that say themselves what they grant: JWTs, checked against the keys of their issuer.

Source: RFC 9068 (JWT access tokens), RFC 8725 (what goes wrong with JWTs), RFC 8707 (audience).
"""

from collections.abc import Sequence

import jwt
from mcp.server.auth.provider import AccessToken

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http.addresses import is_trusted
from cloche_mcp_http.claims import granted, with_and_without_slash
from cloche_mcp_http.issuer_keys import IssuerKeys
from cloche_mcp_http.oauth import OAuth, trusted_resource
from cloche_mcp_http.oauth_variables import JWKS_URL_VARIABLE

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
        self._issuers = with_and_without_slash(issuer_url)
        self._audiences = with_and_without_slash(audience)
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
        return granted(token, claims, self._resource_url)


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
    resource = trusted_resource(issuer_url, audience, resource_url)
    if jwks_url is not None and not is_trusted(jwks_url):
        raise ConfigurationInvalid(setting=JWKS_URL_VARIABLE)
    verifier = JwtVerifier(
        IssuerKeys(issuer_url, jwks_url), issuer_url=issuer_url, audience=audience, resource_url=resource
    )
    return OAuth(verifier, issuer_url=issuer_url, resource_url=resource, required_scopes=tuple(required_scopes))
