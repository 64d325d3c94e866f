"""`abx mcp start` behind the MCP Inspector's command line, 2.12.0, in every era it can ask for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_contract.kernel.registry import published_set
from tests.e2e.http_servers import http_server
from tests.e2e.servers import SERVER
from tests.inspector import command
from tests.packages.mcp_stdio.raw_client import clean_environ

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "modern")
TOOL_IS_ERROR = 5


class Inspector:
    """Runs the Inspector once per question; every run is a new server and a new session."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._environ = clean_environ(HOME=str(home), MCP_INSPECTOR_SECRET_STORE="memory")
        self._server = [f"-e{key}={value}" for key, value in environ.items()] + SERVER

    async def ask(self, *arguments: str, era: str = "legacy", expected: int = 0) -> dict[str, Any]:
        """Return the result that it printed."""
        argv = command(*self._server, "--protocol-era", era, "--format", "json", "-q", *arguments)
        if argv is None:
            pytest.skip("the MCP Inspector is not installed: run python -m tests.inspector")
        with anyio.fail_after(60):
            done = await anyio.run_process(argv, env=self._environ, check=False)
        assert done.returncode == expected, done.stderr.decode()
        return json.loads(done.stdout)["result"]

    async def call(self, tool: str, arguments: Mapping[str, Any], era: str, expected: int = 0) -> dict[str, Any]:
        call = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return await self.ask(*call, era=era, expected=expected)


@pytest.fixture
def inspector(tmp_path: Path, environ: dict[str, str]) -> Inspector:
    home = tmp_path / "inspector"
    home.mkdir()
    return Inspector(home, environ)


@pytest.mark.parametrize("era", [*ERAS, "auto"])
async def test_the_inspector_lists_the_tools(era: str, inspector: Inspector) -> None:
    tools = (await inspector.ask("--method", "tools/list", era=era))["tools"]
    assert [tool["name"] for tool in tools] == [*published_set("sandbox").tool_names]


async def test_its_strict_check_finds_no_error_in_our_schemas(inspector: Inspector) -> None:
    """Exit status 6 would be an error; nullable outputs are warnings (decision D8)."""
    await inspector.ask("--method", "tools/list", "--strict")


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_runs_code_and_commands(era: str, inspector: Inspector) -> None:
    ran = await inspector.call("run_code", {"code": "print(6 * 7)"}, era)
    assert ran["structuredContent"]["stdout"] == "42\n"
    assert json.loads(ran["content"][0]["text"]) == ran["structuredContent"]
    ran = await inspector.call("run_command", {"command": "echo hello"}, era)
    assert ran["structuredContent"]["stdout"] == "hello\n"


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_writes_and_reads_files(era: str, inspector: Inspector) -> None:
    written = await inspector.call("write_file", {"path": "/tmp/inspector-note", "content": "hé"}, era)
    assert written["structuredContent"] == {"success": True, "bytes_written": 3}
    read = await inspector.call("read_file", {"path": "/etc/passwd"}, era)
    assert "root:" in read["structuredContent"]["content"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_shows_our_error_and_not_its_own(era: str, inspector: Inspector) -> None:
    """It holds structuredContent of errors against the output schema: ours have none."""
    failed = await inspector.call("read_file", {"path": "/no/such/file"}, era, expected=TOOL_IS_ERROR)
    assert failed["isError"] is True
    assert json.loads(failed["content"][0]["text"])["code"] == "file_not_found"


async def test_the_inspector_runs_code_over_http(environ: dict[str, str], tmp_path: Path) -> None:
    """Both eras, with a token; as a remote configuration has it."""
    home = clean_environ(HOME=str(tmp_path), MCP_INSPECTOR_SECRET_STORE="memory")
    call = ["--method", "tools/call", "--tool-name", "run_code", "--tool-args-json", '{"code": "print(6 * 7)"}']
    async with http_server({**environ, "ABX_MCP_AUTH_TOKEN": "a-token"}) as server:
        for era in ERAS:
            place = ["--server-url", server.url, "--transport", "http", "--protocol-era", era, "--stored-auth-only"]
            with_token = command(*place, "--header", "Authorization: Bearer a-token", "--format", "json", "-q", *call)
            if with_token is None:
                pytest.skip("the MCP Inspector is not installed: run python -m tests.inspector")
            with anyio.fail_after(60):
                done = await anyio.run_process(with_token, env=home, check=False)
            assert done.returncode == 0, done.stderr.decode()
            assert json.loads(done.stdout)["result"]["structuredContent"]["stdout"] == "42\n"
