"""The signing keys of an authorization server: fetched when a token needs them, and kept for a while.

A token with a key that nobody knows makes the server ask again, so that a key that is new is found; not more
often than every few seconds, so that nobody can use that to flood the issuer.

Source: RFC 8414 (where the keys are told), RFC 7517 (what they look like); OpenID Connect Discovery 1.0.
"""

import logging
import math
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import jwt

from cloche_mcp_http.addresses import is_trusted
from cloche_mcp_http.documents import Fetch, FetchFailed, fetch_document
from cloche_mcp_http.principals import CallersUnavailable

logger = logging.getLogger(__name__)

FRESH_S = 600.0
# What is used of old keys while the issuer does not answer.
KEPT_S = 7200.0
ASK_AGAIN_S = 10.0


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
