"""The module paths of seed 001 start the same servers.

Source: seed 001, part 7; checklist 203, 211, 212.
"""

import socket
import sys

import anyio
import httpx
import pytest

import agent_sandbox.agent.mcp_http
import cloche_mcp_http
from tests.packages.mcp_http.served import HEADERS, HELLO
from tests.packages.mcp_stdio.raw_client import clean_environ, raw_client

pytestmark = pytest.mark.anyio

PROVIDER = {"ABX_PROVIDER": "scripted", "ABX_AUDIT_FILE": "off", "CLOCHE_TESTKIT_UNSANDBOXED": "1"}


async def test_the_module_serves_the_sandbox_tools_over_stdio() -> None:
    """Checklist 212; the template is base, as everywhere but under `abx mcp start` (checklist 140)."""
    command = [sys.executable, "-m", "agent_sandbox.agent.mcp"]
    async with raw_client(command, clean_environ(**PROVIDER)) as client:
        names = [tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]]
        assert {"create_sandbox", "kill_sandbox"} <= set(names)
        await client.call("create_sandbox", {})
        assert (await client.call("get_sandbox", {}))["structuredContent"]["template"] == "base"


def test_the_application_and_its_factory_are_ours() -> None:
    assert agent_sandbox.agent.mcp_http.asgi_app is cloche_mcp_http.asgi_app
    assert agent_sandbox.agent.mcp_http.create_mcp_app is cloche_mcp_http.create_mcp_app


async def test_a_deployment_serves_the_application_with_plain_uvicorn() -> None:
    """Checklist 203, 211: everything comes from the environment, and a token is needed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        argv = ["uvicorn", "agent_sandbox.agent.mcp_http:asgi_app", "--fd", str(listener.fileno())]
        environ = clean_environ(**PROVIDER, ABX_MCP_AUTH_TOKEN="a-token", ABX_DEFAULT_TEMPLATE="code-interpreter-v1")
        process = await anyio.open_process(
            [sys.executable, "-m", *argv], env=environ, pass_fds=[listener.fileno()], stdout=None, stderr=None
        )
        try:
            async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
                host = {**HEADERS, "Host": "some-name.fc.example"}
                assert (await http.post(f"{url}/mcp", json=HELLO, headers=host)).status_code == 401
                host["Authorization"] = "Bearer a-token"
                assert (await http.post(f"{url}/mcp", json=HELLO, headers=host)).status_code == 200
            process.terminate()
            with anyio.fail_after(10):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()


async def test_a_deployment_without_a_token_does_not_start() -> None:
    """Checklist 301."""
    argv = [sys.executable, "-m", "uvicorn", "agent_sandbox.agent.mcp_http:asgi_app", "--port", "0"]
    with anyio.fail_after(60):
        done = await anyio.run_process(argv, env=clean_environ(**PROVIDER), check=False)
    assert done.returncode != 0
    assert b"ABX_MCP_AUTH_TOKEN" in done.stderr
    assert b"Traceback" not in done.stderr
