"""Clients that are programs of their own, and the matrix that `nox -s clients` prints.

Source: the issue, "Shown by"; mcp.md 3.2.
"""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from cloche_contract.kernel.registry import published_set
from tests import inspector
from tests.clients import __main__ as runner
from tests.clients.ask import Failed, ask, ask_program, judge
from tests.clients.environment import NotInstalled, install, place
from tests.clients.matrix import markdown
from tests.clients.table import CLIENTS, Client, CommandLine, Program, Target
from tests.e2e.http_servers import http_server
from tests.e2e.servers import SERVER

pytestmark = pytest.mark.anyio

TOKEN = "correct-horse-battery"
AGENTS = next(client for client in CLIENTS if client.name == "openai-agents")
GOOD = {"tools": [*published_set("sandbox").tool_names], "stdout": "42\n", "error": "file_not_found"}


async def test_openai_agents_lists_tools_and_runs_code_on_both_transports(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """The library's own MCPServerStdio and MCPServerStreamableHttp, as an agent would be given them."""
    async with http_server({**environ, "ABX_MCP_AUTH_TOKEN": TOKEN}) as server:
        targets = {"stdio": Target(command=SERVER, environ=environ), "http": Target(url=server.url, token=TOKEN)}
        assert isinstance(AGENTS.how, Program)
        found = await ask_program(AGENTS, AGENTS.how, targets, tmp_path)
    assert found == dict.fromkeys(targets, f"lists {len(GOOD['tools'])} tools, runs code")


def test_the_versions_of_the_table_are_those_that_are_installed() -> None:
    """A matrix that names another version than it ran would be a lie."""
    versions = {client.name: client.version for client in CLIENTS}
    assert (versions["mcp"], versions["openai-agents"]) == (version("mcp"), version("openai-agents"))
    assert versions["TypeScript SDK 1"] == inspector.TYPESCRIPT["sdk"]
    assert versions["TypeScript SDK 2"] == inspector.TYPESCRIPT["client"]
    assert versions["Inspector CLI"] == inspector.VERSION
    for client in CLIENTS:
        for wanted in (*client.pip, *client.npm):
            assert wanted.endswith(client.version)


@pytest.mark.parametrize("wrong", [{"tools": []}, {"stdout": "43\n"}, {"error": "internal_error"}], ids=str)
def test_a_client_that_was_told_something_else_has_failed(wrong: dict[str, object]) -> None:
    judge(GOOD)
    with pytest.raises(Failed):
        judge({**GOOD, **wrong})


async def test_a_client_that_cannot_be_installed_is_told_as_such_and_never_as_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(client: Client) -> None:
        raise NotInstalled("the registry has no such package")

    monkeypatch.setattr(runner, "install", refuse)
    row = await runner.fill_row(AGENTS, {})
    assert not row.passed
    assert markdown([row]).count("not installed here: the registry has no such package") == 2


async def test_an_agent_that_does_not_connect_has_failed(tmp_path: Path) -> None:
    """Exit status 0 alone says nothing: these commands end with it whatever they found."""
    script = tmp_path / "list"
    script.write_text("#!/bin/sh\necho 'cloche: somewhere - Failed to connect'\n")
    script.chmod(0o755)
    how = CommandLine(str(script), (), "config.json", lambda target: {"url": target.url}, good=r"cloche: .*Connected")
    with pytest.raises(Failed, match="Failed to connect"):
        await ask(Client("agent", "1", how), Target(url="http://127.0.0.1:1/mcp"), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {"url": "http://127.0.0.1:1/mcp"}
    script.write_text("#!/bin/sh\necho 'cloche: somewhere - Connected'\n")
    assert await ask(Client("agent", "1", how), Target(), tmp_path) == "connects"


async def test_a_program_that_breaks_has_failed(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="status"):
        await ask(Client("x", "1", Program("no_such_program.py")), Target(), tmp_path)


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.clients.environment.FOLDER", tmp_path)
    wanted = Client("none", "1", Program("x.py"), pip=("cloche @ file:///no/such/folder",))
    with pytest.raises(NotInstalled, match=r"."):
        install(wanted)
    assert not (place(wanted) / "installed").exists()
