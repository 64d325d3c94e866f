"""The signing keys of an authorization server: fetched when a token needs them, and kept for a while.

A token with a key that nobody knows makes the server ask again, so that a key that is new is found; not more
often than every few seconds, so that nobody can use that to flood the issuer.

Source: RFC 8414 (where the keys are told), RFC 7517 (what they look like); OpenID Connect Discovery 1.0.
"""

import json
import logging
import math
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO, Any, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import jwt

from cloche_mcp_http.addresses import LOOPBACK_NAMES, parse_authority
from cloche_mcp_http.principals import CallersUnavailable

logger = logging.getLogger(__name__)

FRESH_S = 600.0
# What is used of old keys while the issuer does not answer.
KEPT_S = 7200.0
ASK_AGAIN_S = 10.0
_ANSWER_WITHIN_S = 5.0
_MOST_BYTES = 524_288

Fetch = Callable[[str], Mapping[str, Any]]


class FetchFailed(Exception):
    """There is no usable document at a URL; the text says why, for the log."""


def is_trusted(url: str) -> bool:
    """Whether what comes from a URL can be believed: https, or a server of this machine."""
    try:
        parts = urlsplit(url)
        if parts.username is not None or parts.fragment:
            return False
        authority = parse_authority(parts.netloc)
    except ValueError:
        return False
    if authority is None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and authority.host in LOOPBACK_NAMES)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to somebody who may not say whose keys are right."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def fetch_document(url: str) -> Mapping[str, Any]:
    """The JSON object at a URL; blocks.

    Raises:
        FetchFailed: there is none, or it is too large.
    """
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with _OPENER.open(request, timeout=_ANSWER_WITHIN_S) as answer:
            found: Any = json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchFailed(f"status {error.code}") from None
    except (OSError, ValueError) as error:
        raise FetchFailed(type(error).__name__) from error
    if not isinstance(found, dict):
        raise FetchFailed("not an object")
    return cast("dict[str, Any]", found)


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, issuer_url: str, jwks_url: str | None = None, fetch: Fetch = fetch_document) -> None:
        """Take where they are; without `jwks_url` the issuer's metadata is asked."""
        self._issuer_url = issuer_url
        self._jwks_url = jwks_url
        self._fetch = fetch
        self._keys: list[jwt.PyJWK] = []
        self._fetched = self._asked = -math.inf
        self._asking = anyio.Lock()

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key with that id; without one, the only key there is.

        Raises:
            CallersUnavailable: no keys are known, and the issuer does not tell them.
        """
        now = anyio.current_time()
        found = self._find(key_id)
        if found is None or now - self._fetched > FRESH_S:
            async with self._asking:
                if anyio.current_time() - self._asked > ASK_AGAIN_S and self._asked <= now:
                    await self._ask()
            found = self._find(key_id)
        if anyio.current_time() - self._fetched > KEPT_S:
            raise CallersUnavailable
        return found

    def _find(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.key_id == key_id), None)

    async def _ask(self) -> None:
        try:
            keys = await anyio.to_thread.run_sync(self._fetch_keys, abandon_on_cancel=True)
        except FetchFailed as error:
            logger.warning("the issuer's keys could not be fetched", extra={"reason": str(error)})
        else:
            self._keys, self._fetched = keys, anyio.current_time()
        self._asked = anyio.current_time()

    def _fetch_keys(self) -> list[jwt.PyJWK]:
        document = self._fetch(self._jwks_url or self._discovered())
        try:
            keys = jwt.PyJWKSet.from_dict(dict(document)).keys
        except (jwt.PyJWTError, AttributeError, TypeError) as error:
            raise FetchFailed("no usable key") from error
        return [key for key in keys if key.key_type != "oct" and key.public_key_use in (None, "sig")]

    def _discovered(self) -> str:
        for place in metadata_urls(self._issuer_url):
            try:
                document = self._fetch(place)
            except FetchFailed:
                continue
            # RFC 8414, 3.3: a document of somebody else must not be believed.
            found = document.get("jwks_uri")
            if str(document.get("issuer")).rstrip("/") == self._issuer_url.rstrip("/") and isinstance(found, str):
                if is_trusted(found):
                    return found
                raise FetchFailed("jwks_uri is not https")
        raise FetchFailed("no metadata of this issuer")


def metadata_urls(issuer_url: str) -> list[str]:
    """Where an issuer may tell about itself, in the order in which clients of MCP ask."""
    parts = urlsplit(issuer_url)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = f"{origin}/.well-known"
    places = [
        f"{known}/oauth-authorization-server{path}",
        f"{known}/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(places))
