"""OAuth as an environment configures it."""

from collections.abc import Mapping

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http.introspection import introspection_oauth
from cloche_mcp_http.jwt_tokens import jwt_oauth
from cloche_mcp_http.oauth import OAuth
from cloche_mcp_http.oauth_variables import (
    AUDIENCE_VARIABLE,
    CLIENT_ID_VARIABLE,
    CLIENT_SECRET_VARIABLE,
    INTROSPECTION_URL_VARIABLE,
    ISSUER_VARIABLE,
    JWKS_URL_VARIABLE,
    OAUTH_VARIABLES,
    RESOURCE_VARIABLE,
    SCOPES_VARIABLE,
)

_INTROSPECTION = (INTROSPECTION_URL_VARIABLE, CLIENT_ID_VARIABLE, CLIENT_SECRET_VARIABLE)


def oauth_of(environ: Mapping[str, str]) -> OAuth | None:
    """What an environment configures, or None where it configures nothing of this.

    With ABX_MCP_OAUTH_INTROSPECTION_URL the authorization server is asked about each token, else tokens are JWTs.

    Raises:
        ConfigurationInvalid: a variable is set and blank, one that is needed is missing, a URL is none, or keys are
            named beside an introspection endpoint.
    """
    given = {name: environ[name].strip() for name in OAUTH_VARIABLES if name in environ}
    if not given:
        return None
    asks = any(name in given for name in _INTROSPECTION)
    needed = (ISSUER_VARIABLE, AUDIENCE_VARIABLE, *(_INTROSPECTION if asks else ()))
    for name in (*given, *needed):
        if not given.get(name):
            raise ConfigurationInvalid(setting=name)
    issuer, audience, resource = given[ISSUER_VARIABLE], given[AUDIENCE_VARIABLE], given.get(RESOURCE_VARIABLE)
    scopes = given.get(SCOPES_VARIABLE, "").replace(",", " ").split()
    if not asks:
        keys = given.get(JWKS_URL_VARIABLE)
        return jwt_oauth(issuer, audience, resource_url=resource, jwks_url=keys, required_scopes=scopes)
    if JWKS_URL_VARIABLE in given:
        raise ConfigurationInvalid(setting=f"{JWKS_URL_VARIABLE}, {INTROSPECTION_URL_VARIABLE}")
    return introspection_oauth(
        issuer,
        audience,
        introspection_url=given[INTROSPECTION_URL_VARIABLE],
        client_id=given[CLIENT_ID_VARIABLE],
        client_secret=given[CLIENT_SECRET_VARIABLE],
        resource_url=resource,
        required_scopes=scopes,
    )
