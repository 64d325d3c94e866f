"""What is refused before anything is parsed: wrong Host, wrong Origin, no token, too much, too slow, no JSON.

Source: checklist 161, 296, 297, 300, 301; security.md.
"""

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx
import pytest

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http import Limits, create_mcp_app, read_token_file
from cloche_mcp_http.asgi import app_from_environ
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import HELLO, SCRIPTED, modern, raw, served

pytestmark = pytest.mark.anyio
TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "a b", "[::1"])
async def test_m13_a_wrong_host_is_refused_and_the_answer_tells_how_to_allow_it(
    host: str, scripted_plane: ScriptedPlane
) -> None:
    """python-sdk#1798, llama.cpp#26410; Python SDK CVE-2025-66416: before parsing, so the body is no JSON here."""
    async with served() as server, raw(server, greet=False) as client:
        answer = await client.post(b"{", Host=host)
        if host:
            assert answer.status_code == 421
            assert "--allowed-host" in answer.json()["error"]
            assert "ABX_MCP_ALLOWED_HOSTS" in answer.json()["error"]
            assert host not in answer.text
        else:
            assert answer.status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "mcp.example.org"])
async def test_m13_this_machine_and_a_listed_host_are_answered(host: str, scripted_plane: ScriptedPlane) -> None:
    async with (
        served(allowed_hosts=["localhost", "127.0.0.1", "[::1]", "mcp.example.org:80", "MCP.example.org."]) as server,
        raw(server, greet=False) as client,
    ):
        assert (await client.post(HELLO, Host=host)).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example", "file://", "http://", "localhost"]
)
async def test_a_page_of_a_stranger_is_refused_before_its_token_is_looked_at(
    origin: str, scripted_plane: ScriptedPlane
) -> None:
    """MCP 2025-11-25: 403; systems facts 3.3."""
    async with served(auth_token=TOKEN) as server, raw(server, TOKEN, greet=False) as client:
        answer = await client.post(b"{", Origin=origin)
        assert (answer.status_code, answer.json()) == (403, {"error": "Origin is not allowed"})


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://[::1]", "https://app.example.org"])
async def test_pages_of_this_machine_and_listed_ones_may_call(origin: str, scripted_plane: ScriptedPlane) -> None:
    async with (
        served(allowed_origins=["https://app.example.org:443"]) as server,
        raw(server, greet=False) as client,
    ):
        assert (await client.post(HELLO, Origin=origin)).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "Bearer",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        "Bearer \xe9",
        "Bearer a b",
    ],
)
async def test_a_request_without_a_right_token_is_unauthorized(sent: str | None, scripted_plane: ScriptedPlane) -> None:
    """Checklist 161, 300."""
    async with served(auth_token=TOKEN) as server, raw(server, greet=False) as client:
        if sent is not None:
            client.headers["Authorization"] = sent
        answer = await client.http.post(
            server.url, content=b"{", headers={k.encode(): v.encode("latin-1") for k, v in client.headers.items()}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, -32001)
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_each_token_is_a_principal_and_a_session_belongs_to_one(scripted_plane: ScriptedPlane) -> None:
    """security.md: a session id alone is no authority."""
    tokens = {"alice": "a" * 20, "bob": "b" * 20}
    async with served(tokens=tokens) as server, raw(server, "a" * 20) as alice, raw(server, "b" * 20) as bob:
        stolen = await bob.post(bob.calling("list_sandboxes"), Mcp_Session_Id=str(alice.session_id))
        assert stolen.status_code == 404
        bob.session_id = alice.session_id
        assert (await bob.bye()).status_code == 404
        await alice.value("list_sandboxes")


@pytest.mark.parametrize("token", ["", "   ", "line\nbreak", "caf\xe9"])
def test_a_token_that_is_blank_or_can_never_match_fails_closed(token: str) -> None:
    """Checklist 301: configured and blank must not mean "no token"."""
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(auth_token=token)
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(tokens={"alice": token})
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(tokens={})


def test_every_host_needs_a_token() -> None:
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(allowed_hosts=["*"])
    create_mcp_app(allowed_hosts=["*"], auth_token=TOKEN)


@pytest.mark.parametrize("wrong", [{"session_ttl_seconds": 0}, {"max_sessions": 0}, {"session_ttl_seconds": -1}])
def test_limits_are_positive(wrong: dict[str, int]) -> None:
    """Checklist 302."""
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(**wrong)  # pyright: ignore[reportArgumentType] - one argument of several, by name


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b"[" * 100_000, 400, -32700),
        (b"3", 400, -32600),
        (b"[]", 400, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 400, -32602),
    ],
)
async def test_what_is_no_message_is_answered_with_its_code(
    body: bytes, status: int, code: int, scripted_plane: ScriptedPlane
) -> None:
    """Checklist 297, 300."""
    async with served() as server, raw(server) as client:
        answer = await client.post(body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_other_methods_are_refused_with_what_is_allowed(scripted_plane: ScriptedPlane) -> None:
    """Decision D21; checklist 300: no CORS either."""
    async with served() as server, raw(server) as client:
        for method in ("GET", "PUT", "OPTIONS", "PATCH", "HEAD"):
            headers = {"Mcp-Session-Id": str(client.session_id), "Accept": "text/event-stream"}
            answer = await client.http.request(method, server.url, headers=headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")
        missing = await client.http.delete(server.url)
        assert (missing.status_code, missing.json()["error"]["code"]) == (400, -32600)


async def test_a_body_that_is_no_json_by_its_type_is_refused(scripted_plane: ScriptedPlane) -> None:
    async with served() as server, raw(server, greet=False) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            assert (await client.post(HELLO, Content_Type=kind)).status_code == 415
        assert (await client.post(HELLO, Content_Type="Application/JSON; charset=utf-8")).status_code == 200


async def test_a_body_over_the_limit_is_refused_before_it_is_read(scripted_plane: ScriptedPlane) -> None:
    """The issue: a body of 100 MB. It is declared, or it comes in chunks without saying how much."""
    sent = 0

    async def chunks() -> AsyncGenerator[bytes]:
        nonlocal sent
        for _ in range(1600):
            yield b"x" * 65536
            sent += 65536

    async with served(limits=Limits(max_body_bytes=100_000)) as server, raw(server, greet=False) as client:
        declared = {**client.headers, "Content-Type": "application/json", "Content-Length": str(100 * 1024 * 1024)}
        async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
            head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **declared}.items())
            await stream.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 413 ")
        try:
            answer = await client.http.post(
                server.url,
                content=chunks(),
                headers={"Content-Type": "application/json"},
            )
        except (httpx.WriteError, httpx.ReadError):  # the connection is closed while the rest is on its way
            pass
        else:
            assert answer.status_code == 413
        assert sent < 50 * 1024 * 1024
        await client.hello()


async def test_a_body_that_does_not_arrive_is_given_up(scripted_plane: ScriptedPlane) -> None:
    """The issue: slow clients."""
    async with (
        served(limits=Limits(body_within_s=0.2)) as server,
        await anyio.connect_tcp("127.0.0.1", server.port) as stream,
    ):
        head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
        await stream.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + b'{"json')
        assert (await stream.receive()).startswith(b"HTTP/1.1 408 ")


async def test_health_and_readiness_need_no_token(scripted_plane: ScriptedPlane) -> None:
    """Systems facts 3.3."""
    async with served(auth_token=TOKEN) as server, raw(server, greet=False) as client:
        health = await client.http.get(f"{server.origin}/health", headers={"Host": "10.0.0.7"})
        assert (health.status_code, health.json()) == (200, {"status": "ok", "protocol": "2025-11-25"})
        assert (await client.http.get(f"{server.origin}/ready")).json() == {"status": "ready"}


async def test_no_token_is_in_the_log(scripted_plane: ScriptedPlane, caplog: pytest.LogCaptureFixture) -> None:
    """The issue: nothing of a token in logs."""
    caplog.set_level(logging.DEBUG)
    async with (
        served(auth_token=TOKEN) as server,
        raw(server, TOKEN) as right,
        raw(server, "wrong-token", greet=False) as no,
    ):
        await right.value("list_sandboxes")
        await no.post(HELLO)
    ours = [record for record in caplog.records if not record.name.startswith(("httpcore", "httpx"))]
    told = json.dumps([[record.getMessage(), {k: repr(v) for k, v in vars(record).items()}] for record in ours])
    assert ours
    assert TOKEN not in told
    assert "wrong-token" not in told


def test_the_settings_of_the_platform_are_not_those_of_the_clients() -> None:
    """Checklist 162: the key of the platform never opens the server."""
    app = create_mcp_app(auth_token=TOKEN, sandbox_api_key="platform-key", environ=SCRIPTED)
    assert app.state.guarded


def test_a_deployment_without_a_token_refuses_to_start() -> None:
    """Checklist 203, 301: `asgi_app` is on a network by its nature."""
    with pytest.raises(ConfigurationInvalid):
        app_from_environ({})
    with pytest.raises(ConfigurationInvalid):
        app_from_environ({"ABX_MCP_AUTH_TOKEN": ""})
    app_from_environ({"ABX_MCP_AUTH_TOKEN": TOKEN})


@pytest.mark.parametrize("text", ["", "alice", "=token", "alice=", "alice=a\nalice=b", "a b=token", "alice=\xe9"])
def test_a_token_file_with_another_line_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationInvalid):
        read_token_file(path)
    path.write_text("# ours\n\nalice = one\nbob=two==\n", encoding="utf-8")
    assert read_token_file(path) == {"alice": "one", "bob": "two=="}


async def test_each_call_has_its_audit_line_by_principal_in_both_eras(
    scripted_plane: ScriptedPlane, tmp_path: Path
) -> None:
    """Issue 3, part 5; decision D11: the serving core tells each call, so every transport has the line."""
    path = tmp_path / "audit.jsonl"
    tokens = {"alice": "a" * 20, "bob": "b" * 20}
    environ = {**SCRIPTED, "ABX_AUDIT_FILE": str(path)}
    async with (
        served(tokens=tokens, environ=environ) as server,
        raw(server, tokens["alice"]) as alice,
        modern(server, tokens["bob"]) as bob,
    ):
        await alice.hello()
        await alice.value("list_sandboxes")
        assert await bob.error("get_sandbox", {"sandbox_id": "unknown1"}) == "sandbox_not_found"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["who"], line["tool"], line["sandbox"], line["error"]) for line in lines] == [
        ("principal:alice", "list_sandboxes", None, None),
        ("principal:bob", "get_sandbox", "unknown1", "sandbox_not_found"),
    ]
    assert not {"a" * 20, "b" * 20} & set(path.read_text().split('"'))
