"""What an authorization server says of a token, as what the token grants here.

Source: RFC 9068 and RFC 7662, which name the same members.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.auth.provider import AccessToken


def granted(token: str, claims: Mapping[str, Any], resource_url: str) -> AccessToken | None:
    """What a token grants, or None where it says of nobody."""
    client = _text(claims, "client_id") or _text(claims, "azp") or ""
    subject = _text(claims, "sub")
    if not client and not subject:
        return None
    ends, issuer = claims.get("exp"), _text(claims, "iss")
    return AccessToken(
        token=token,
        client_id=client,
        scopes=_scopes(claims),
        expires_at=int(ends) if isinstance(ends, (int, float)) else None,
        resource=resource_url,
        subject=subject,
        claims=None if issuer is None else {"iss": issuer},
    )


def with_and_without_slash(text: str) -> list[str]:
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
