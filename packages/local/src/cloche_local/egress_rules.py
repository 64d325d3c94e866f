"""Which destinations a sandbox may reach: targets and rules, each parsed once to a typed value.

Decisions are made on the typed value, and the connection goes to the address that was decided on: no text is read
twice, and no name is resolved twice. Standard library only. Source: RFC 9110 (authority), RFC 6890 (special-purpose
addresses), the WHATWG rule for hosts that end in a number.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DEFAULT_PORTS = (80, 443)
RULES_MAX = 256
_RULE_MAX_CHARACTERS = 300

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_DOTTED = re.compile(r"[0-9.]+")
# Resolvers read 127.1, 0177.0.0.1, 2130706433 and 0x7f000001 as addresses; a host that could be one is none of ours.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
# Reserved: such a name never resolves, so the self-test asks for one.
_NEVER = "invalid"

_NOT_ORDINARY_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent, on an address that looks public
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only this is ordinary: loopback, mapped and translated IPv4, local and multicast addresses lie outside.
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_ORDINARY_6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


class Malformed(ValueError):
    """The text is no target or no rule."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a connection is asked to go: a name in lower case, or an address; and a port."""

    host: str | Address
    port: int

    def __str__(self) -> str:
        return f"{shown_host(self.host)}:{self.port}"

    def rule(self) -> str:
        """The rule that would list it."""
        return shown_host(self.host) if self.port in DEFAULT_PORTS else str(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of an allowlist: a name, everything below a name (`*.`), or a network; on some ports."""

    host: str | Network
    ports: tuple[int, ...]
    below: bool = False

    def __str__(self) -> str:
        host = self.host
        if isinstance(host, str):
            text = f"*.{host}" if self.below else host
        else:
            text = str(host.network_address) if host.prefixlen == host.max_prefixlen else str(host)
        if self.ports == DEFAULT_PORTS:
            return text
        return f"[{text}]:{self.ports[0]}" if ":" in text else f"{text}:{self.ports[0]}"

    def lists_name(self, target: Target) -> bool:
        """Whether this rule lists the target's name and port."""
        name = target.host
        if not isinstance(name, str) or not isinstance(self.host, str) or target.port not in self.ports:
            return False
        return name.endswith("." + self.host) if self.below else name == self.host

    def lists_address(self, address: Address, port: int) -> bool:
        """Whether this rule lists the address and port."""
        if isinstance(self.host, str) or port not in self.ports:
            return False
        return address.version == self.host.version and address in self.host


@dataclass(frozen=True, slots=True)
class Policy:
    """An allowlist. The empty one allows nothing."""

    rules: tuple[Rule, ...] = ()

    def lists(self, target: Target) -> bool:
        """Whether the target may be tried: a name only by a rule for names, an address only by one for networks.

        A name that no rule lists is not even resolved: what is asked of a resolver leaves the host, too.
        """
        host = target.host
        if isinstance(host, str):
            return any(rule.lists_name(target) for rule in self.rules)
        return self._lists_address(host, target.port)

    def permits(self, target: Target, address: Address) -> bool:
        """Whether a connection for `target` may go to `address`: to an ordinary one, or to one that a rule lists."""
        if not self.lists(target):
            return False
        if isinstance(target.host, str):
            return is_ordinary(address) or self._lists_address(address, target.port)
        return address == target.host

    def _lists_address(self, address: Address, port: int) -> bool:
        return any(rule.lists_address(address, port) for rule in self.rules)


def is_ordinary(address: Address) -> bool:
    """Whether the address is a public one of the internet: not private, local, shared, multicast or reserved."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_ORDINARY_4)
    return address in _GLOBAL_6 and not any(address in network for network in _NOT_ORDINARY_6)


def shown_host(host: str | Address) -> str:
    """The host as an authority writes it."""
    return f"[{host}]" if isinstance(host, IPv6Address) else str(host)


def parse_target(authority: str, default_port: int | None = None) -> Target:
    """Read the authority of a request, once and for all.

    Raises:
        Malformed: it is not `host:port` in plain form. User names, escapes, control characters, numbers that some
            resolvers take for addresses, and IPv4 inside IPv6 are refused rather than understood.
    """
    host, port = _split(authority)
    if port is None and default_port is None:
        raise Malformed("no port")
    return Target(_parse_host(host), _parse_port(port) if port is not None else default_port or 0)


def parse_rule(text: str) -> Rule:
    """Read `name`, `*.name`, `address` or `network/bits`, each with `:port` or for ports 80 and 443.

    Raises:
        Malformed: it is none of these.
    """
    text = text.strip().lower()
    if len(text) > _RULE_MAX_CHARACTERS:
        raise Malformed("too long")
    # IPv6 without brackets has no port.
    host, port = (text, None) if text.count(":") > 1 and not text.startswith("[") else _split(text)
    ports = DEFAULT_PORTS if port is None else (_parse_port(port),)
    if host.startswith("*."):
        return Rule(_parse_rule_name(host[2:]), ports, below=True)
    if "/" in host:
        return Rule(_parse_network(host), ports)
    found = _parse_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    if isinstance(found, str):
        return Rule(_parse_rule_name(found), ports)
    return Rule(ip_network(found), ports)


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Read a list of rules; the same rule twice is one.

    Raises:
        Malformed: one of them is wrong, or there are too many.
    """
    rules = tuple(dict.fromkeys(parse_rule(text) for text in texts))
    if len(rules) > RULES_MAX:
        raise Malformed("too many rules")
    return rules


def split_setting(text: str) -> list[str]:
    """The entries of a comma-separated setting."""
    return [entry for part in text.split(",") if (entry := part.strip())]


def _split(authority: str) -> tuple[str, str | None]:
    if authority.startswith("["):
        inner, bracket, rest = authority[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise Malformed("brackets")
        return f"[{inner}]", rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _parse_port(text: str) -> int:
    # 080, +80 and non-ASCII digits are other texts for the same number; only one form is taken.
    if not _PORT.fullmatch(text) or not text.isascii() or int(text) > 65535:
        raise Malformed("port")
    return int(text)


def _parse_host(text: str) -> str | Address:
    if text.startswith("["):
        return _parse_ipv6(text[1:-1])
    name = text.lower().removesuffix(".")
    if not name.isascii():
        raise Malformed("name")
    if _DOTTED.fullmatch(name):
        try:
            return IPv4Address(name)
        except ValueError:
            raise Malformed("address") from None
    return _parse_name(name)


def _parse_ipv6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise Malformed("address") from None
    if address.scope_id is not None or address.ipv4_mapped is not None:
        raise Malformed("address")
    return address


def _parse_name(name: str) -> str:
    if not _NAME.fullmatch(name) or _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise Malformed("name")
    return name


def _parse_rule_name(name: str) -> str:
    name = _parse_name(name)
    if name.rpartition(".")[2] == _NEVER:
        raise Malformed("reserved name")
    return name


def _parse_network(text: str) -> Network:
    try:
        network = ip_network(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise Malformed("network") from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise Malformed("network")
    return network


def parse_address(text: str) -> Address:
    """The address that a resolver answered with."""
    return ip_address(text.partition("%")[0])
