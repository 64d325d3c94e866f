"""How much clients may take: calls at a time, connections that say nothing, streams that stay silent, odd bytes.

Source: the issue, item 5 and "Faults"; faults M14.
"""

import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx
import mcp.server._streamable_http_modern as modern_transport
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sse_starlette import EventSourceResponse

from cloche_mcp_http import Limits
from cloche_mcp_http import server as server_module
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import HEADERS, META, Raw, Served, modern, raw, result_of, served

pytestmark = pytest.mark.anyio
TOKENS = {"alice": "a" * 20, "bob": "b" * 20}


def assert_busy(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    error = answer.json()["error"]
    assert error["data"]["code"] == "busy"
    assert error["data"]["details"]["retry_after_s"] >= 1


async def test_a_session_has_so_many_calls_at_a_time(scripted_plane: ScriptedPlane) -> None:
    async with served(limits=Limits(calls_per_session=1)) as server, raw(server) as one, raw(server) as other:
        create = scripted_plane.script.hold_next("create")
        async with anyio.create_task_group() as calls:
            calls.start_soon(one.value, "create_sandbox")
            await create.reached.wait()
            message = one.calling("list_sandboxes")
            refused = await one.post(message)
            assert_busy(refused)
            assert refused.json()["id"] == message["id"]
            assert result_of(await one.post(one.request("ping"))) == {}
            await other.value("list_sandboxes")
            create.release()
        await one.value("list_sandboxes")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_principal_has_so_many_calls_over_all_its_sessions(era: str, scripted_plane: ScriptedPlane) -> None:
    connect = raw if era == "legacy" else modern
    async with (
        served(tokens=TOKENS, limits=Limits(calls_per_principal=1)) as server,
        connect(server, TOKENS["alice"]) as one,
        connect(server, TOKENS["alice"]) as same,
        connect(server, TOKENS["bob"]) as other,
    ):
        create = scripted_plane.script.hold_next("create")
        async with anyio.create_task_group() as calls:
            calls.start_soon(one.value, "create_sandbox")
            await create.reached.wait()
            assert_busy(await same.post(same.calling("list_sandboxes")))
            await other.value("list_sandboxes")
            create.release()
        await same.value("list_sandboxes")


async def test_a_call_counts_until_it_ends_also_when_its_client_is_gone(scripted_plane: ScriptedPlane) -> None:
    """In the handshake era the end of a connection cancels nothing, so that hanging up must not make room."""
    async with served(limits=Limits(calls_per_session=1)) as server, raw(server) as client:
        create = scripted_plane.script.hold_next("create")
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.post, client.calling("create_sandbox"))
            await create.reached.wait()
            calls.cancel_scope.cancel()
        assert_busy(await client.post(client.calling("list_sandboxes")))
        create.release()
        with anyio.fail_after(10):
            while (await client.post(client.calling("list_sandboxes"))).status_code == 429:
                await anyio.sleep(0.02)  # until the server has seen the end of the call
        assert len(scripted_plane.alive) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_m14_a_silent_stream_is_kept_open_and_passes_a_proxy(
    era: str, scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """neotoma PR#1486, go-sdk#1262: nginx drops a stream after 60 s without a byte, and may buffer it."""
    assert EventSourceResponse.DEFAULT_PING_INTERVAL <= 25
    assert modern_transport._SSE_PING_INTERVAL <= 25  # pyright: ignore[reportPrivateUsage] - shown, and then shortened
    monkeypatch.setattr(EventSourceResponse, "DEFAULT_PING_INTERVAL", 0.05)
    monkeypatch.setattr(modern_transport, "_SSE_PING_INTERVAL", 0.05)
    connect = raw if era == "legacy" else modern
    async with served() as server, connect(server) as client:
        create = scripted_plane.script.hold_next("create")
        message = client.calling("create_sandbox")
        headers = {**HEADERS, "Mcp-Session-Id": str(client.session_id)}
        if era == "modern":
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "create_sandbox"}
        async with client.http.stream("POST", server.url, json=message, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["x-accel-buffering"] == "no"
            comments = 0
            async for line in answer.aiter_lines():
                comments += line.startswith(":")
                if comments == 3:
                    create.release()
                if line.startswith("data: "):
                    assert json.loads(line[6:])["result"]["isError"] is False
        assert comments >= 3


async def test_a_connection_that_sends_no_request_is_closed(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: slow clients."""
    monkeypatch.setattr(server_module, "HEADERS_WITHIN_S", 0.1)
    async with served() as server:
        for first in (b"", b"POST /mcp HTTP/1.1\r\nHost: loc"):
            async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
                if first:
                    await stream.send(first)
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()


SMALL = """
import resource, sys
files = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
from cloche_mcp_http import create_mcp_app
from cloche_mcp_http.server import bind, serve
environ = {"ABX_PROVIDER": "scripted", "ABX_AUDIT_FILE": "off"}
sys.exit(serve(create_mcp_app(environ=environ), bind("127.0.0.1", 0, guarded=False)))
"""


@pytest.mark.soak
async def test_half_open_connections_up_to_the_descriptor_limit_leave_the_server_answering(scale: int) -> None:
    """The issue: thousands of half-open connections; a limit of 128 files needs only hundreds."""
    environ = {**os.environ, "CLOCHE_TESTKIT_UNSANDBOXED": "1"}
    process = await anyio.open_process([sys.executable, "-c", SMALL, str(128 * scale)], stdout=None, env=environ)
    try:
        with anyio.fail_after(60 * scale):
            assert process.stderr is not None
            said = b""
            while b"/mcp" not in said:
                said += await process.stderr.receive()
            server = Served(int(said.partition(b"127.0.0.1:")[2].partition(b"/")[0]), None)
            async with AsyncExitStack() as held, raw(server) as client:
                for _ in range(300 * scale):
                    await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", server.port))
                await client.value("list_sandboxes")
            async with raw(server) as other:
                await other.value("list_sandboxes")
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


NAMES = st.sampled_from(
    [
        *("host", "origin", "authorization", "content-type", "accept", "mcp-session-id", "mcp-protocol-version"),
        *("mcp-method", "mcp-name", "content-length", "last-event-id", "x-forwarded-for", "transfer-encoding"),
    ]
)
TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF), min_size=1, max_size=40)
VERSIONS = st.sampled_from(["2025-11-25", "2026-07-28", "2024-11-05"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "resources/list", "notifications/cancelled"]
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0"]) | JSON,
        "id": st.integers() | st.text(max_size=8) | JSON,
        "method": METHODS | st.text(max_size=12),
        "params": st.fixed_dictionaries({}, optional={"name": TEXT, "arguments": JSON, "_meta": st.just(META) | JSON})
        | JSON,
    },
)
BODIES = st.binary(max_size=200) | JSON.map(json.dumps).map(str.encode) | MESSAGES.map(json.dumps).map(str.encode)


async def test_m19_no_header_and_no_body_makes_the_server_fail(scripted_plane: ScriptedPlane, seed: int) -> None:
    """The issue: header and JSON fuzzing: no 5xx, no stack trace, and nobody hangs."""
    seen: list[tuple[dict[str, str], bytes]] = []

    @settings(max_examples=150, deadline=None, database=None)
    @given(st.dictionaries(NAMES, TEXT | VERSIONS, max_size=4), BODIES)
    def collect(headers: dict[str, str], body: bytes) -> None:
        seen.append((headers, body))

    collect()
    async with served() as server, raw(server) as client:
        for headers, body in seen:
            answer = await client.http.post(server.url, content=body, headers=fuzzed(client, headers, body))
            assert answer.status_code < 500, (headers, body)
            assert "Traceback" not in answer.text
            assert ".py" not in answer.text
        await client.value("list_sandboxes")


def fuzzed(client: Raw, headers: dict[str, str], body: bytes) -> dict[bytes, bytes]:
    """The headers of a good request with some replaced; how long it is stays true, or nobody could answer."""
    good: dict[str, Any] = {**HEADERS, "Mcp-Session-Id": str(client.session_id), "Host": "localhost"}
    lower = {name.lower(): value for name, value in good.items()} | headers
    lower["content-length"] = str(len(body))
    lower.pop("transfer-encoding", None)
    return {name.encode(): value.encode("latin-1") for name, value in lower.items()}
