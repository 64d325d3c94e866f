"""Which Host and Origin headers a server accepts: what keeps a web page from reaching it by DNS rebinding.

Every name is parsed once, and the decision is taken on the parsed form.

Source: faults M13; security.md (MCP Inspector CVE-2025-49596, Python SDK CVE-2025-66416); RFC 9110 7.2.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Authority:
    """A host name or address in lower case, and a port where one is written."""

    host: str
    port: int | None


class AddressInvalid(ValueError):
    """An entry of an allowlist is no host and no origin."""


def parse_authority(text: str) -> Authority | None:
    """Read `host` or `host:port`; None for anything else."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = None if match[2] is None else int(match[2])
    if port is not None and not 0 < port < 65536:
        return None
    host = match[1].lower().rstrip(".")
    if host.startswith("["):
        try:
            host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
        except ValueError:
            return None
    return Authority(host, port) if host else None


class AllowedHosts:
    """The Host headers that are answered: names with any port, or with one port."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take entries such as `mcp.example.org`, `mcp.example.org:8443` or `*`.

        Raises:
            AddressInvalid: an entry is none of these.
        """
        entries = list(names)
        self.any = ANY in entries
        self._allowed = {_entry(name) for name in entries if name != ANY}

    def accept(self, header: str | None) -> bool:
        """Whether a request with this Host header is answered; one without it is not."""
        found = None if header is None else parse_authority(header)
        if found is None:
            return False
        return self.any or found in self._allowed or Authority(found.host, None) in self._allowed


def _entry(name: str) -> Authority:
    found = parse_authority(name)
    if found is None:
        raise AddressInvalid("an allowed host is a name or an address, alone or with a port")
    return found


@dataclass(frozen=True)
class _Origin:
    scheme: str
    host: str
    port: int


class AllowedOrigins:
    """The Origin headers that are answered: pages of this machine, and those that are listed."""

    def __init__(self, origins: Iterable[str]) -> None:
        """Take entries such as `https://app.example.org`.

        Raises:
            AddressInvalid: an entry is no origin.
        """
        found = [_parse_origin(origin) for origin in origins]
        if None in found:
            raise AddressInvalid("an allowed origin is http:// or https:// and a host, alone or with a port")
        self._allowed = set(found)

    def accept(self, header: str | None) -> bool:
        """Whether a request with this Origin header is answered. Clients that are no browsers send none."""
        if header is None:
            return True
        found = _parse_origin(header)
        return found is not None and (found.host in LOOPBACK_NAMES or found in self._allowed)


def _parse_origin(text: str) -> _Origin | None:
    match = _ORIGIN.fullmatch(text)
    authority = None if match is None else parse_authority(match[2])
    if match is None or authority is None:
        return None
    scheme = match[1].lower()
    return _Origin(scheme, authority.host, authority.port or _DEFAULT_PORTS[scheme])


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach a socket that is bound to this address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


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
