"""`abx mcp status`, `stop` and `tools`: what there is, where it is installed, what runs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cloche_cli.clients.table import clients
from cloche_cli.running_servers import RunningServer, is_running, noted, running_servers
from cloche_contract.registry import published_set
from tests.packages.cli.ran import Abx

KEY = "s3cr3t-key-0123456789"
TOKEN = "t0ken-0123456789"
WITHIN_S = 60


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, abx: Abx) -> Path:
    """A project below the home, and a provider that costs nothing to ask."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "CLINE_MCP_SETTINGS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ABX_PROVIDER", "scripted")
    monkeypatch.setenv("CLOCHE_TESTKIT_UNSANDBOXED", "1")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _status(abx: Abx) -> dict[str, Any]:
    ran = abx(["--json", "mcp", "status"])
    assert (ran.status, ran.err) == (0, "")
    return json.loads(ran.out)


@contextmanager
def _server(tmp_path: Path, *words: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server over HTTP in a process of its own, and its address."""
    environ = {**os.environ, "HOME": str(tmp_path), "ABX_MCP_AUTH_TOKEN": TOKEN}
    command = [sys.executable, "-m", "cloche_cli", "mcp", "start", "--transport", "http", "--port", "0", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "Serving MCP on " in line
            url = line.split()[3].rstrip(".")
            yield process, url
        finally:
            process.kill()


def test_the_status_tells_server_tools_key_and_clients(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 001, "status"; lines 179 to 183."""
    document = _status(abx)
    assert (document["name"], document["transport"], document["tool_count"]) == ("agent-sandbox", "stdio", 15)
    assert document["tools"] == list(published_set("sandbox").tool_names)
    assert document["api_key_configured"] is False
    assert {one["client"] for one in document["clients"]} == set(clients())
    assert {one["installed"] for one in document["clients"]} == {False}
    assert document["provider"] == {"name": "scripted", "usable": True, "problems": []}
    assert document["running"] == []
    monkeypatch.setenv("ABX_SANDBOX_API_KEY", KEY)
    assert _status(abx)["api_key_configured"] is True
    shown = abx(["mcp", "status"])
    for word in (
        "agent-sandbox",
        "stdio",
        "15: create_sandbox, ",
        "API key     configured",
        "Cursor",
        "No server runs.",
    ):
        assert word in shown.out
    assert KEY not in shown.out + shown.err


def test_each_client_says_whether_its_command_is_there_and_starts(abx: Abx, tmp_path: Path, surroundings: Path) -> None:
    """Seed 001, 183. One real start of our own program; a foreign one of a project is not tried."""

    def entry(**given: object) -> str:
        return json.dumps({"mcpServers": {"agent-sandbox": given}})

    abx(["mcp", "install", "--target", "cursor"])
    abx(["mcp", "install", "--target", "vscode"])
    abx(["mcp", "install", "--target", "goose"])
    abx(["mcp", "install", "--target", "opencode"])
    abx(["mcp", "install", "--target", "zed", "--transport", "http", "--url", "https://h.example/mcp"])
    program = surroundings / "evil"
    program.write_text(f"#!/bin/sh\ntouch {surroundings}/ran\n")
    program.chmod(0o755)
    (surroundings / ".mcp.json").write_text(entry(command=str(program)))
    (tmp_path / ".claude.json").write_text(entry(command="true"))
    (tmp_path / ".codeium/windsurf").mkdir(parents=True)
    (tmp_path / ".codeium/windsurf/mcp_config.json").write_text(entry(command="/no/such/abx", args=["mcp", "start"]))
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{,}")
    found = {(one["client"], one["scope"]): one for one in _status(abx)["clients"]}
    states = {key: one["state"] for key, one in found.items() if one["state"] != "absent"}
    assert states == {
        ("cursor", "user"): "starts",
        ("vscode", "project"): "starts",
        ("goose", "user"): "starts",
        ("opencode", "user"): "starts",
        ("zed", "user"): "remote",
        ("claude-code", "project"): "untried",
        ("claude-code", "user"): "fails",
        ("windsurf", "user"): "missing",
        ("gemini", "user"): "broken",
    }
    assert found["zed", "user"]["url"] == "https://h.example/mcp"
    assert found["gemini", "user"]["installed"] is None
    assert "line 1" in found["gemini", "user"]["problem"]
    assert not (surroundings / "ran").exists()


def test_a_server_that_runs_is_listed_without_its_token_and_stopped(abx: Abx, tmp_path: Path) -> None:
    with _server(tmp_path) as (process, url):
        (running,) = _status(abx)["running"]
        assert (running["pid"], running["transport"], running["url"]) == (process.pid, "http", url)
        (note,) = (tmp_path / ".local/state/cloche/mcp/running").iterdir()
        assert TOKEN not in note.read_text()
        assert note.stat().st_mode & 0o077 == 0
        assert url in abx(["mcp", "status"]).out
        ran = abx(["mcp", "stop"])
        assert (ran.status, ran.out) == (0, f"stopped {process.pid} ({url})\n")
        assert process.wait(WITHIN_S) == 0
    assert not note.exists()
    assert abx(["mcp", "stop"]).out == "No server runs.\n"


@pytest.mark.parametrize("words", [["--transport", "http", "--port", "0"], []], ids=["http", "stdio"])
def test_a_signal_that_comes_before_the_server_listens_ends_it_in_order(tmp_path: Path, words: list[str]) -> None:
    """`abx mcp stop` right after the start: an exit status of 0, and no note that stays."""
    program = (
        "import anyio, os, signal, sys\n"
        "run = anyio.run\n"
        "def interrupted(*given):\n"
        "    assert os.listdir(os.environ['ABX_MCP_RUNTIME_DIR'])\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return run(*given)\n"
        "anyio.run = interrupted\n"
        "from cloche_cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environ = {**os.environ, "HOME": str(tmp_path), "ABX_MCP_RUNTIME_DIR": str(tmp_path / "notes")}
    command = [sys.executable, "-c", program, "mcp", "start", *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
    ) as process:
        try:
            assert process.wait(WITHIN_S) == 0
        finally:
            process.kill()
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_server_that_was_killed_is_not_listed(abx: Abx, tmp_path: Path) -> None:
    with _server(tmp_path) as (process, _url):
        process.send_signal(signal.SIGKILL)
        process.wait(WITHIN_S)
        assert list((tmp_path / ".local/state/cloche/mcp/running").iterdir()) != []
        assert _status(abx)["running"] == []
    assert list((tmp_path / ".local/state/cloche/mcp/running").iterdir()) == []


def test_a_stdio_server_is_noted_while_it_runs(abx: Abx, tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "ABX_MCP_RUNTIME_DIR": str(tmp_path / "notes")}
    command = [sys.executable, "-m", "cloche_cli", "mcp", "start"]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        (server,) = running_servers(str(tmp_path / "notes"))
        assert (server.pid, server.transport, server.url) == (process.pid, "stdio", None)
        process.stdin.close()
        assert process.wait(WITHIN_S) == 0
    assert running_servers(str(tmp_path / "notes")) == []


def test_a_number_that_was_given_to_another_process_is_not_the_server(abx: Abx, tmp_path: Path) -> None:
    """Fault T35: a signal never reaches whoever got the process number later."""
    folder = tmp_path / ".local/state/cloche/mcp/running"
    with noted(str(folder), "http", "http://127.0.0.1:1/mcp", 1.0):
        (server,) = running_servers(str(folder))
        assert is_running(server)
        (note,) = folder.iterdir()
        note.write_text(json.dumps(asdict(replace(server, identity="another boot 1"))))
        assert abx(["mcp", "stop", "--all"]).out == "No server runs.\n"  # else this test would be ended
    assert list(folder.iterdir()) == []


def test_notes_of_another_machine_and_unreadable_ones_do_no_harm(tmp_path: Path) -> None:
    foreign = RunningServer(os.getpid(), "x", "another-machine", "http", None, 1.0, "")
    (tmp_path / "other.json").write_text(json.dumps(asdict(foreign)))
    (tmp_path / "torn.json").write_text('{"pid": 1')
    (tmp_path / "unknown.json").write_text('{"pid": 1, "colour": "red"}')
    assert running_servers(str(tmp_path)) == []
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == ["other.json"]


def test_a_server_starts_where_no_note_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with noted(str(tmp_path / "file"), "stdio", None, 1.0):
        assert running_servers(str(tmp_path / "file")) == []


def test_which_server_to_stop_is_never_guessed(abx: Abx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = RunningServer(1, "a", "h", "stdio", None, 1.0, "")
    two = replace(one, pid=2)
    monkeypatch.setattr("cloche_cli.stopping.running_servers", lambda _folder: [one, two])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    ran = abx(["mcp", "stop"])
    assert ran.status == 2
    assert "2 servers run" in ran.err
    assert abx(["mcp", "stop", "4711"]).status == 4
    assert abx(["mcp", "stop", "1", "--all"]).status == 2


def test_a_tool_is_shown_with_its_schema_and_an_example(abx: Abx) -> None:
    listed = json.loads(abx(["mcp", "tools", "--json"]).out)["tools"]
    assert [tool["name"] for tool in listed] == list(published_set("sandbox").tool_names)
    reading = json.loads(abx(["mcp", "tools", "--json", "--read-only"]).out)["tools"]
    assert reading
    assert all(tool["read_only"] for tool in reading)
    assert "run_code" in abx(["mcp", "tools"]).out
    for tool in listed:
        shown = json.loads(abx(["mcp", "tools", tool["name"], "--json"]).out)
        assert shown["example"]["name"] == tool["name"]
        jsonschema.validate(shown["example"]["arguments"], shown["inputSchema"])
    person = abx(["mcp", "tools", "run_code"]).out
    for word in ("arguments:", "result:", "example:", '"code": "print(1 + 1)"', "errors:"):
        assert word in person
    ran = abx(["mcp", "tools", "no_such_tool"])
    assert ran.status == 4
    assert "no_such_tool" not in ran.err
