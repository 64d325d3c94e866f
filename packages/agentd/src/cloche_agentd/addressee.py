"""Whom a request over TCP was meant for.

A web page can have its reader's browser send requests to the loopback address, also under a name of its own that
resolves to it (DNS rebinding). Such a request names another host, or the page's origin; no other client does.
"""

from __future__ import annotations

from .httpwire import BadRequest, Head


def names_of(address: tuple[str, int]) -> frozenset[str]:
    """Return the `Host` headers of requests that are meant for a listener."""
    host, port = address[:2]
    if not host.startswith("127."):
        # Inside a container: its engine publishes the port on the host's loopback address, under a number of its own.
        return frozenset(("127.0.0.1", "localhost"))
    return frozenset((f"{host}:{port}", f"localhost:{port}"))


def check_addressee(head: Head, names: frozenset[str]) -> None:
    """Refuse a request that is not for us, or comes from a web page.

    Raises:
        BadRequest: 403.
    """
    host = head.headers.get("host", "").lower()
    if host not in names and host.rpartition(":")[0] not in names:
        raise BadRequest(403, "this address answers as 127.0.0.1 and localhost only")
    if "origin" in head.headers:
        raise BadRequest(403, "this address does not answer web pages")
