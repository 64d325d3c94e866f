"""`abx mcp start --transport http` as users start it, with real clients and real sandboxes."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.http_servers import HttpProcess, http_server
from tests.e2e.servers import SERVER
from tests.e2e.test_endings import processes, sandboxes_left, until
from tests.packages.mcp_http.issuer import AUDIENCE, issuer
from tests.packages.mcp_http.served import Raw, modern

pytestmark = pytest.mark.anyio

MODES = ("legacy", "auto")


@pytest.mark.parametrize("mode", MODES)
async def test_the_python_client_runs_code_over_http(mode: str, environ: dict[str, str]) -> None:
    """Checklist 153; the same tools as on stdio."""
    async with http_server(environ) as server, Client(streamable_http_client(server.url), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert {"create_sandbox", "run_code", "kill_sandbox"} <= set(tools)
        ran = await client.call_tool("run_code", {"code": "print(6 * 7)"})
        assert ran.structured_content is not None
        assert ran.structured_content["stdout"] == "42\n"


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_signal_ends_the_server_and_its_sandboxes_within_5_seconds(
    ending: str, environ: dict[str, str], provider: str, tmp_path: Path
) -> None:
    """Checklist 145, 320: with a command running in a session."""
    marker = f"86397.{len(ending)}7{os.getpid()}"
    async with http_server(environ) as server, anyio.create_task_group() as calls:
        calls.start_soon(run_until_cut, server, f"sleep {marker}")
        await until(lambda: len(processes(marker)) >= 1)
        with anyio.fail_after(12):  # 5 s for the server; the rest is the machine's, which may be busy
            assert await server.stop(getattr(signal, ending)) == 0
    assert processes(marker) == []
    assert await sandboxes_left(provider, environ, tmp_path) == []


async def run_until_cut(server: HttpProcess, command: str) -> None:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        client = Raw(http, server.url, {})
        await client.hello()
        try:
            await client.post(client.calling("run_command", {"command": command}))
        except httpx.HTTPError:
            return


async def test_the_default_sandbox_of_the_command_has_the_code_interpreter_over_http(environ: dict[str, str]) -> None:
    """Checklist 139."""
    async with http_server(environ) as server, Client(streamable_http_client(server.url), mode="legacy") as client:
        await client.call_tool("run_command", {"command": "true"})
        shown = await client.call_tool("get_sandbox", {})
        assert shown.structured_content is not None
        assert shown.structured_content["template"] == "code-interpreter-v1"


async def refused(environ: dict[str, str], *arguments: str) -> str:
    """What a server that must not start says; it ends with status 2."""
    with anyio.fail_after(30):
        done = await anyio.run_process([*SERVER, "--transport", "http", *arguments], env=environ, check=False)
    assert done.returncode == 2
    assert done.stdout == b""
    return done.stderr.decode()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_e5_e6_a_network_address_without_a_token_refuses_to_start(host: str, environ: dict[str, str]) -> None:
    """dify#36637; agent-sandbox MCP README; decision D28: no default secret, and nobody may run code unasked."""
    assert "ABX_MCP_AUTH_TOKEN" in await refused(environ, "--host", host, "--port", "0")


async def test_e5_a_blank_token_refuses_to_start(environ: dict[str, str]) -> None:
    """Checklist 301: configured and blank is no token, and not "no token needed"."""
    assert "ABX_MCP_AUTH_TOKEN" in await refused({**environ, "ABX_MCP_AUTH_TOKEN": " "}, "--port", "0")


async def test_e6_a_network_address_with_a_token_needs_it(environ: dict[str, str]) -> None:
    """Checklist 161, 184, 185."""
    token = "correct-horse-battery"
    settings = {**environ, "ABX_MCP_AUTH_TOKEN": token}
    async with http_server(settings, "--host", "0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.post(url, json={})).status_code == 401
        http = httpx_with(token)
        async with http, Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
            assert (await client.list_tools()).tools


def httpx_with(token: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})


async def test_more_than_one_worker_is_refused_with_the_reason(environ: dict[str, str]) -> None:
    """Decision D28."""
    said = await refused(environ, "--workers", "2")
    assert "sessions live in one process" in said


async def test_options_of_http_are_refused_on_stdio(environ: dict[str, str]) -> None:
    """A token file that would not be used must not look as if it were."""
    done = await anyio.run_process([*SERVER, "--auth-token-file", "/tmp/tokens"], env=environ, check=False)
    assert done.returncode == 2
    assert b"--auth-token-file needs --transport http" in done.stderr


async def test_a_taken_port_is_told_in_a_line(environ: dict[str, str]) -> None:
    async with http_server(environ) as server:
        said = await refused(environ, "--port", server.origin.rpartition(":")[2])
        assert "taken" in said
        assert "Traceback" not in said


async def test_access_tokens_of_an_authorization_server_open_the_server(environ: dict[str, str]) -> None:
    """The issue, item 4: the options, a real issuer, and a client that has a token of it."""
    async with issuer() as login:
        options = ("--oauth-issuer", login.url, "--oauth-audience", AUDIENCE, "--oauth-scope", "sandboxes")
        async with http_server(environ, "--host", "0.0.0.0", *options) as server:
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            async with httpx.AsyncClient(trust_env=False) as http:
                refused = await http.post(url, json={})
                assert (refused.status_code, 'error="invalid_token"' in refused.headers["www-authenticate"]) == (
                    401,
                    True,
                )
                told = (await http.get(f"{url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp")).json()
                assert (told["resource"], told["scopes_supported"]) == (AUDIENCE, ["sandboxes"])
            http = httpx_with(login.token())
            async with http, Client(streamable_http_client(url, http_client=http), mode="auto") as client:
                ran = await client.call_tool("run_code", {"code": "print(6 * 7)"})
                assert ran.structured_content is not None
                assert ran.structured_content["stdout"] == "42\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--oauth-issuer", "https://login.example.org"), "ABX_MCP_OAUTH_AUDIENCE"),
        (("--oauth-issuer", "http://login.example.org", "--oauth-audience", AUDIENCE), "ABX_MCP_OAUTH_ISSUER"),
        (("--oauth-scope", "sandboxes"), "ABX_MCP_OAUTH_ISSUER"),
    ],
)
async def test_e5_half_an_authorization_server_refuses_to_start(
    options: tuple[str, ...], told: str, environ: dict[str, str]
) -> None:
    """Fail closed: whoever gives such an option means to be protected by it."""
    assert told in await refused(environ, *options, "--port", "0")


async def test_two_servers_of_one_user_keep_principals_apart_and_renew_for_the_maker(
    environ: dict[str, str], provider: str, tmp_path: Path
) -> None:
    """Decisions D15, D16; the issue, "Two principals": processes that share nothing but the provider."""
    if provider != "local":
        pytest.skip("the sandboxes of the scripted provider live in the process of the server")
    tokens = tmp_path / "tokens"
    tokens.write_text("alice=token-of-alice\nbob=token-of-bob\n")
    settings = {**environ, "ABX_MCP_AUTH_TOKEN_FILE": str(tokens), "ABX_DEFAULT_TEMPLATE": "base"}
    async with (
        http_server(settings) as one,
        http_server(settings) as other,
        modern(one, "token-of-alice") as maker,
        modern(other, "token-of-alice") as alice,
        modern(other, "token-of-bob") as bob,
    ):
        made = await maker.value("create_sandbox", {"timeout": 600})
        mine = {"sandbox_id": made["sandbox_id"]}
        for tool, arguments in (("run_command", {"command": "true"}), ("read_file", {"path": "/etc/passwd"})):
            assert await bob.error(tool, {**mine, **arguments}) == "sandbox_not_found"
        assert (await bob.value("list_sandboxes"))["sandboxes"] == []
        await alice.value("set_sandbox_timeout", {**mine, "timeout": 60})
        assert await lifetime_left_s(alice, mine) <= 60
        await alice.value("run_command", {**mine, "command": "true"})
        assert await lifetime_left_s(maker, mine) > 300


async def lifetime_left_s(client: Raw, which: dict[str, str]) -> float:
    shown = await client.value("get_sandbox", which)
    return (datetime.fromisoformat(shown["end_at"]) - datetime.now(UTC)).total_seconds()
