"""Rules and targets of the network allowlist: one parser, and decisions on what it gives."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from cloche_local.egress_http import BadRequest, parse_request
from cloche_local.egress_rules import (
    Malformed,
    Policy,
    is_ordinary,
    parse_rule,
    parse_rules,
    parse_target,
    split_setting,
)


def _allows(rules: list[str], target: str) -> bool:
    return Policy(parse_rules(rules)).lists(parse_target(target))


def _permits(rules: list[str], target: str, address: str) -> bool:
    return Policy(parse_rules(rules)).permits(parse_target(target), ip_address(address))


@pytest.mark.parametrize(
    "text",
    [
        "example.com\0.allowed.com:443",
        "allowed.com\0:443",
        "user@example.com:443",
        "example.com:443@evil.com:443",
        "example.com:0443",
        "example.com:+443",
        "example.com: 443",
        "example.com:٤٤٣",
        "example.com:0",
        "example.com:65536",
        "example.com:",
        "example.com",
        "exa mple.com:443",
        "example.com%00:443",
        "example.com%2f:443",
        "example.com/:443",
        "example.com\\:443",
        "exämple.com:443",
        "exam\u2024ple.com:443",
        "127.1:80",
        "2130706433:80",
        "0x7f000001:80",
        "0x7f.0.0.1:80",
        "0177.0.0.1:80",
        "127.0.0.01:80",
        "1.2.3.4.5:80",
        "example.1:80",
        "[::ffff:127.0.0.1]:80",
        "[::ffff:7f00:1]:80",
        "[fe80::1%eth0]:80",
        "[::1:80",
        "::1:80",
        "[127.0.0.1]:80",
        "[]:80",
        "..:80",
        "a..b:80",
        "-a.com:80",
        "*.example.com:80",
        ":443",
        "",
        f"{'a' * 64}.com:443",
        f"{'a.' * 127}com:443",
    ],
)
def test_a_target_in_any_odd_form_is_refused(text: str) -> None:
    """Security: a filter and a resolver that read one text differently (NUL bytes, odd numerals, user names)."""
    with pytest.raises(Malformed):
        parse_target(text)


def test_a_target_is_read_once_to_one_form() -> None:
    assert str(parse_target("Docs.Example.org.:443")) == "docs.example.org:443"
    assert str(parse_target("[2001:DB8:0::1]:443")) == "[2001:db8::1]:443"
    assert parse_target("93.184.216.34:80").host == ip_address("93.184.216.34")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Docs.Example.org", "docs.example.org"),
        ("*.files.example.org", "*.files.example.org"),
        ("example.com:8443", "example.com:8443"),
        ("10.0.0.5", "10.0.0.5"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::/32]:8080", "[2001:db8::/32]:8080"),
        ("::1", "::1"),
        ("[::1]:8080", "[::1]:8080"),
    ],
)
def test_a_rule_is_shown_as_it_can_be_written_again(text: str, shown: str) -> None:
    rule = parse_rule(text)
    assert str(rule) == shown
    assert parse_rule(shown) == rule


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "*.",
        "",
        "exam*ple.com",
        "a.*.com",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "example.com:http",
        "http://example.com",
        "example.com:0",
        "127.1",
        "0x7f.1",
        "*.invalid",
        "x.invalid",
        "::ffff:10.0.0.0/104",
        "example.com/path",
    ],
)
def test_a_malformed_rule_is_an_error_and_not_left_out(text: str) -> None:
    """A rule that is skipped in silence is a policy that is not the one that was written."""
    with pytest.raises(Malformed):
        parse_rule(text)


def test_an_empty_list_allows_nothing() -> None:
    """Security: CVE-2025-66479, an empty allowlist that allowed everything."""
    assert split_setting(" , ,") == []
    for target in ("example.com:443", "93.184.216.34:443", "127.0.0.1:80", "localhost:80"):
        assert not _allows([], target)
        assert not _permits([], target, "93.184.216.34")


def test_e11_a_rule_without_a_port_lists_80_and_443_only() -> None:
    """Faults E11: an allowed host on any port."""
    assert _allows(["example.com"], "example.com:443")
    assert _allows(["example.com"], "example.com:80")
    assert not _allows(["example.com"], "example.com:9999")
    assert _allows(["example.com:9999"], "example.com:9999")
    assert not _allows(["example.com:9999"], "example.com:443")


def test_e11_networks_list_addresses_by_their_bits() -> None:
    """Faults E11: no rules for addresses and networks."""
    assert _allows(["10.1.0.0/16:5432"], "10.1.2.3:5432")
    assert not _allows(["10.1.0.0/16:5432"], "10.2.0.1:5432")
    assert not _allows(["10.1.0.0/16:5432"], "10.1.2.3:443")
    assert _allows(["2001:db8::/32"], "[2001:db8::7]:443")


def test_names_match_whole_labels() -> None:
    assert _allows(["*.example.com"], "a.b.example.com:443")
    assert not _allows(["*.example.com"], "example.com:443")
    assert not _allows(["*.example.com"], "badexample.com:443")
    assert not _allows(["example.com"], "example.com.evil.org:443")
    assert not _allows(["example.com"], "sub.example.com:443")


def test_a_network_rule_does_not_list_names() -> None:
    """What is asked of a resolver leaves the host too: a name that no rule lists is not looked up."""
    assert not _allows(["0.0.0.0/0", "::/0"], "example.com:443")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.0.192",
        "198.18.0.1",
        "::1",
        "::",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001::1",
        "2001:db8::1",
        "64:ff9b:1::1",
        "100::1",
    ],
)
def test_a_listed_name_does_not_lead_to_an_address_that_is_not_public(address: str) -> None:
    """Private, local, metadata, shared and translated addresses need a rule of their own (DNS rebinding)."""
    assert not is_ordinary(ip_address(address))
    assert not _permits(["rebound.example.com"], "rebound.example.com:443", address)


def test_a_network_rule_lifts_the_refusal_for_listed_names() -> None:
    assert _permits(["db.example.com:5432", "10.0.0.0/8:5432"], "db.example.com:5432", "10.0.0.7")
    assert not _permits(["db.example.com:5432", "10.0.0.0/8"], "db.example.com:5432", "10.0.0.7")
    assert not _permits(["db.example.com:5432", "10.0.0.0/8:5432"], "db.example.com:5432", "192.168.0.7")
    for address in ("8.8.8.8", "2606:4700::1111"):
        assert _permits(["example.com"], "example.com:443", address)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nHost : b.com\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n",
        b"GET http://a.com/\0 HTTP/1.1\r\n\r\n",
        b"GET http://a.com/\nHost: b.com HTTP/1.1\r\n\r\n",
        b"GET  http://a.com/ HTTP/1.1\r\n\r\n",
        b"GET http://u:p@a.com/ HTTP/1.1\r\n\r\n",
        b"GET https://a.com/ HTTP/1.1\r\n\r\n",
        b"GET ftp://a.com/ HTTP/1.1\r\n\r\n",
        b"CONNECT a.com HTTP/1.1\r\n\r\n",
        b"CONNECT http://a.com:443/ HTTP/1.1\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_an_ambiguous_request_is_refused(head: bytes) -> None:
    """RFC 9112: what two servers read in two ways is a way past the one that decides."""
    with pytest.raises((BadRequest, Malformed)):
        parse_request(head)


def test_a_request_is_passed_on_with_the_host_that_was_decided_on() -> None:
    """A Host field beside the target would reach another site of the same server."""
    raw = (
        b"GET http://A.com/x?q=http://b.com#part HTTP/1.1\r\nHost: secret.b.com\r\nProxy-Authorization: Basic eA==\r\n"
        b"Connection: keep-alive\r\nAccept: */*\r\n\r\n"
    )
    request = parse_request(raw)
    assert str(request.target) == "a.com:80"
    assert request.head == b"GET /x?q=http://b.com HTTP/1.1\r\nHost: a.com\r\nAccept: */*\r\nConnection: close\r\n\r\n"
