"""`abx mcp start`: the stdio server with the template that an agent expects."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from cloche_cli import extras
from cloche_contract.registry import published_set
from tests.packages.cli.ran import Abx

WITHIN_S = 60


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A process of its own with the scripted provider, whose requests are logged to `log`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ABX_PROVIDER": "scripted",
        "CLOCHE_TESTKIT_UNSANDBOXED": "1",
        "CLOCHE_TESTKIT_LOG": str(tmp_path / "log"),
    }


async def _create_through(environ: Mapping[str, str], words: Sequence[str] = ("mcp", "start")) -> str:
    """Call create_sandbox without arguments; return the template that reached the platform."""
    home = environ["HOME"]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "cloche_cli", *words], env=dict(environ), cwd=home
    )
    with anyio.fail_after(WITHIN_S):
        async with Client(server) as client:
            answer = await client.call_tool("create_sandbox", {})
            assert answer.is_error is False
    asked = [json.loads(line) for line in Path(environ["CLOCHE_TESTKIT_LOG"]).read_text().splitlines()]
    assert [request["operation"] for request in asked if request["operation"] in ("create", "kill")] == [
        "create",
        "kill",
    ]
    return str(next(request["arguments"]["template"] for request in asked if request["operation"] == "create"))


async def test_the_template_of_an_agent_is_the_code_interpreter(environ: dict[str, str]) -> None:
    """Seed 001, 139."""
    assert await _create_through(environ) == "code-interpreter-v1"


async def test_global_options_do_not_change_the_server(environ: dict[str, str]) -> None:
    assert await _create_through(environ, ["--json", "mcp", "start"]) == "code-interpreter-v1"


@pytest.mark.parametrize("layer", ["environment", "./.env", "~/.abx/.env", "~/.abx/config.toml"])
async def test_a_configured_template_comes_first(environ: dict[str, str], layer: str) -> None:
    """Seed 001, 160; the layers of the settings."""
    home = Path(environ["HOME"])
    (home / ".abx").mkdir()
    match layer:
        case "environment":
            environ["ABX_DEFAULT_TEMPLATE"] = "mine"
        case "~/.abx/config.toml":
            (home / ".abx" / "config.toml").write_text('[core]\ndefault_template = "mine"\n')
        case "./.env":
            (home / ".env").write_text("ABX_DEFAULT_TEMPLATE=mine\n")
        case _:
            (home / ".abx" / ".env").write_text("ABX_DEFAULT_TEMPLATE=mine\n")
    assert await _create_through(environ) == "mine"


async def test_a_broken_configuration_is_told_to_the_client(environ: dict[str, str]) -> None:
    """The server lists its tools; the first call says what is wrong."""
    home = Path(environ["HOME"])
    (home / ".abx").mkdir()
    (home / ".abx" / "config.toml").write_text("provider = = =")
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "cloche_cli", "mcp", "start"], env=environ, cwd=str(home)
    )
    with anyio.fail_after(WITHIN_S):
        async with Client(server) as client:
            assert len((await client.list_tools()).tools) == len(published_set("sandbox").tools)
            answer = await client.call_tool("create_sandbox", {})
    assert answer.is_error is True
    (text,) = answer.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text)["code"] == "configuration_invalid"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--read-only"], ["list_sandboxes", "get_sandbox", "read_file", "list_files", "get_task", "download_file"]),
        (["--tools", "run_code,run_command", "--exclude-tools", "run_code"], ["run_command"]),
    ],
)
async def test_m18_the_operator_chooses_the_tools(environ: dict[str, str], words: list[str], left: list[str]) -> None:
    """OpenSandbox PR#145: and the instructions speak of these only."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "cloche_cli", "mcp", "start", *words], env=environ, cwd=environ["HOME"]
    )
    with anyio.fail_after(WITHIN_S):
        async with Client(server) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == left
            assert "start_task" not in (client.instructions or "")


@pytest.mark.parametrize("words", [["--tools", "s3cret"], ["--exclude-tools", "s3cret"], ["--tools", ","]])
async def test_a_choice_of_tools_that_cannot_be_meant_ends_at_once(environ: dict[str, str], words: list[str]) -> None:
    command = [sys.executable, "-m", "cloche_cli", "mcp", "start", *words]
    done = await anyio.run_process(command, env=environ, cwd=environ["HOME"], check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"tool" in done.stderr
    assert b"s3cret" not in done.stderr


def test_a_server_whose_part_is_not_installed_says_how_to_get_it(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """Base `cloche` has no MCP library: the extra brings it."""
    monkeypatch.setattr(extras, "find_spec", {"cloche_mcp_http": object()}.get)
    ran = abx(["--json", "mcp", "start"])
    assert (ran.status, ran.out) == (2, "")
    assert "pip install 'cloche[mcp]'" in ran.err
