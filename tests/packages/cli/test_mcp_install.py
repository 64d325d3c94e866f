"""`abx mcp install`: one command for each client, and nothing else in its file changes."""

import base64
import json
import os
import shlex
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from cloche_cli.clients.formats import editor
from cloche_cli.clients.places import Surroundings, config_path
from cloche_cli.clients.table import Client, Scope, clients
from cloche_cli.own_command import own_command
from cloche_contract.registry import published_set
from tests.packages.cli.client_texts import BROKEN, TEXTS
from tests.packages.cli.ran import Abx, Ran

KEY = "s3cr3t-key-0123456789"
TOKEN = "t0ken-0123456789"
ABX = str(Path(sys.executable).with_name("abx"))
EVERY = [(client, scope) for client in clients().values() for scope in client.files]
Install = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path, abx: Abx, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below the home, and a state folder that is not the person's."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "CLINE_MCP_SETTINGS_PATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def install(project: Path, abx: Abx) -> Install:
    def run(*words: str) -> Ran:
        return abx(["mcp", "install", *words])

    return run


def _file(client: Client, scope: Any, tmp_path: Path) -> Path:
    return config_path(client, scope, Surroundings(os.environ, tmp_path, tmp_path / "project", "linux"))


def _read(client: Client, path: Path) -> Any:
    text = path.read_text()
    value: Any = yaml.safe_load(text) if client.format == "yaml" else None
    value = tomllib.loads(text) if client.format == "toml" else value or json.loads(text)
    for key in client.path:
        value = value[key]
    return value["agent-sandbox"]


def test_cursor_gets_its_entry_and_the_words_of_the_seed(install: Install, tmp_path: Path) -> None:
    """Seed 001, "Installation Output"; lines 163, 166, 169, 171, 172, 175 to 178."""
    ran = install("--target", "cursor")
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "MCP Server config written to ~/.cursor/mcp.json"
    assert lines[1:3] == ["", "Registered tools:"]
    assert lines[-2:] == ["", "Please restart Cursor to apply changes."]
    named = [line.split("—")[0].strip("• ") for line in lines[3:-2]]
    assert named == list(published_set("sandbox").tool_names)
    assert all(line.split("—")[1].strip() for line in lines[3:-2])
    document = json.loads((tmp_path / ".cursor/mcp.json").read_text())
    assert document == {"mcpServers": {"agent-sandbox": {"command": ABX, "args": ["mcp", "start"]}}}


def test_claude_desktop_gets_its_entry(install: Install, tmp_path: Path) -> None:
    """Seed 001, 164."""
    assert "Please restart Claude Desktop" in install("--target", "claude").out
    document = json.loads((tmp_path / ".config/Claude/claude_desktop_config.json").read_text())
    assert document == {"mcpServers": {"agent-sandbox": {"command": ABX, "args": ["mcp", "start"]}}}


def test_vs_code_gets_its_entry_in_the_workspace(install: Install, project: Path) -> None:
    """Seed 001, 165."""
    assert install("--target", "vscode").out.startswith("MCP Server config written to .vscode/mcp.json\n")
    document = json.loads((project / ".vscode/mcp.json").read_text())
    assert document == {"servers": {"agent-sandbox": {"type": "stdio", "command": ABX, "args": ["mcp", "start"]}}}


@pytest.mark.parametrize("platform", ["linux", "darwin", "windows"])
def test_every_client_has_a_file_on_every_platform(platform: str, tmp_path: Path) -> None:
    around = Surroundings({}, tmp_path / "home", tmp_path / "work", platform)
    for client, scope in EVERY:
        path = config_path(client, cast("Scope", scope), around)
        base = around.home if scope == "user" else around.workdir
        assert path.is_relative_to(base)
        assert "$" not in str(path)
        assert client.sources
    assert config_path(clients()["claude"], "user", Surroundings({}, tmp_path, tmp_path, "darwin")) == (
        tmp_path / "Library/Application Support/Claude/claude_desktop_config.json"
    )


@pytest.mark.parametrize(("client", "scope"), EVERY, ids=lambda value: getattr(value, "id", value))
def test_an_installation_and_its_removal_leave_the_bytes_that_were_there(
    client: Client, scope: str, install: Install, tmp_path: Path
) -> None:
    """Seed 001, 167 and 168: merged, the second time nothing changes, and removal is exact."""
    path = _file(client, scope, tmp_path)
    texts = list(TEXTS[client.format].values())
    before = texts[EVERY.index((client, scope)) % len(texts)].encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    path.chmod(0o640)
    words = ("--target", client.id, "--scope", scope)
    assert install(*words).status == 0
    once = path.read_bytes()
    assert _entry_command(_read_any(client, path)) in (ABX, [ABX, "mcp", "start"])
    again = install(*words)
    assert (again.status, path.read_bytes()) == (0, once)
    assert "nothing was changed" in again.out
    assert install(*words, "--read-only").status == 0
    assert path.read_bytes() != once
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert install(*words, "--remove").status == 0
    assert path.read_bytes() == before
    assert {entry.name for entry in path.parent.iterdir()} <= {path.name, "project", ".local"}
    assert "no such server" in install(*words, "--remove").out


def _read_any(client: Client, path: Path) -> Any:
    return editor(client.format).find(path.read_bytes().decode(), (*client.path, "agent-sandbox"))


def _entry_command(entry: Any) -> Any:
    return entry.get("command", entry.get("cmd"))


@pytest.mark.parametrize(("client", "scope"), EVERY, ids=lambda value: getattr(value, "id", value))
def test_a_file_that_is_not_there_is_made_and_removed_with_its_folders(
    client: Client, scope: str, install: Install, tmp_path: Path
) -> None:
    """Seed 001, 178."""
    before = sorted(tmp_path.rglob("*"))
    assert install("--target", client.id, "--scope", scope).status == 0
    path = _file(client, scope, tmp_path)
    assert _entry_command(_read(client, path)) in (ABX, [ABX, "mcp", "start"])
    assert path.stat().st_mode & 0o077 == (0 if scope == "user" else 0o044)
    assert install("--target", client.id, "--scope", scope, "--read-only").status == 0
    assert install("--target", client.id, "--scope", scope, "--remove").status == 0
    left = [one for one in sorted(tmp_path.rglob("*")) if ".local" not in one.parts]
    assert left == before


def test_what_somebody_adds_after_the_installation_stays_at_its_removal(install: Install, project: Path) -> None:
    install("--target", "vscode")
    path = project / ".vscode/mcp.json"
    path.write_text(path.read_text().replace('"servers": {', '"servers": {\n    "mine": {"command": "x"},', 1))
    assert install("--target", "vscode", "--remove").status == 0
    assert json.loads(path.read_text()) == {"servers": {"mine": {"command": "x"}}}


@pytest.mark.parametrize(("form", "text", "line", "_word"), BROKEN[1:3] + BROKEN[15:16] + BROKEN[17:18])
def test_a_broken_file_is_left_as_it_is_and_named_with_its_line(
    form: str, text: str, line: int, _word: str, install: Install, tmp_path: Path
) -> None:
    """Seed 001, 174."""
    client = next(client for client in clients().values() if client.format == form)
    path = _file(client, client.default_scope, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    for words in ((), ("--remove",), ("--dry-run",)):
        ran = install("--target", client.id, *words)
        assert (ran.status, ran.out) == (2, "")
        assert path.relative_to(tmp_path).as_posix() in ran.err
        assert f"line {line}" in ran.err
        assert path.read_bytes() == text.encode()
        assert ("agent-sandbox" in ran.err) is (words != ("--remove",))
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_edited_safely_is_left_and_the_entry_shown_without_a_secret(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML whose extensions stand in two places by an alias; JSON with our name twice."""
    monkeypatch.setenv("ABX_SANDBOX_API_KEY", KEY)
    texts = {
        (".config/goose/config.yaml", "goose"): "extensions: &e\n  a: 1\nother: *e\n",
        (".cursor/mcp.json", "cursor"): '{"mcpServers": {"agent-sandbox": 1, "agent-sandbox": 2}}',
    }
    for (name, client), text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        ran = install("--target", client)
        assert (ran.status, ran.out, path.read_text()) == (2, "", text)
        assert "agent-sandbox" in ran.err.replace("agent-sandbox-", "")
        assert '"start"' in ran.err or "- start" in ran.err
        assert KEY not in ran.err
        refused = install("--target", client, "--json")
        assert json.loads(refused.err)["details"]["rule"] == "unsafe"


def test_a_file_that_is_not_utf_8_is_left_as_it_is(install: Install, tmp_path: Path) -> None:
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_bytes(b'{\n"a": "\xff"}')
    ran = install("--target", "cursor")
    assert (ran.status, path.read_bytes()) == (2, b'{\n"a": "\xff"}')
    assert "line 2" in ran.err


@pytest.mark.parametrize(("client", "scope"), EVERY, ids=lambda value: getattr(value, "id", value))
def test_a_key_stands_only_in_the_files_of_cursor_and_claude_desktop(
    client: Client, scope: str, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 001, 172 and 173."""
    monkeypatch.setenv("ABX_SANDBOX_API_KEY", KEY)
    ran = install("--target", client.id, "--scope", scope, "--json")
    assert KEY not in ran.out + ran.err
    path = _file(client, scope, tmp_path)
    allowed = client.id in ("cursor", "claude") and scope == "user"
    assert (KEY in path.read_text()) == allowed
    if allowed:
        assert _read(client, path)["env"] == {"ABX_SANDBOX_API_KEY": KEY}
    for words in (("--dry-run",), ("--print",)):
        shown = install("--target", client.id, "--scope", scope, *words, "--read-only")
        assert shown.status == 0
        assert KEY not in shown.out + shown.err


@pytest.mark.parametrize(("client", "scope"), EVERY, ids=lambda value: getattr(value, "id", value))
def test_a_remote_server_is_a_url_and_a_header_only_with_a_token(
    client: Client, scope: str, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 001, 184 and 185; a token stands only where a key may."""
    words = ("--target", client.id, "--scope", scope, "--transport", "http", "--url", "https://h.example/mcp")
    if client.http is None:
        ran = install(*words)
        assert (ran.status, ran.out) == (2, "")
        assert "Connectors" in ran.err
        return
    path = _file(client, scope, tmp_path)
    install(*words)
    assert "https://h.example/mcp" in path.read_text()
    assert "bearer" not in path.read_text().lower()
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", TOKEN)
    ran = install(*words)
    assert TOKEN not in ran.out + ran.err
    text = path.read_text()
    assert (TOKEN in text) == (scope in client.secrets)
    if client.id == "cursor" and scope == "user":
        assert _read(client, path) == {
            "url": "https://h.example/mcp",
            "headers": {"Authorization": f"Bearer {TOKEN}"},
        }
    elif client.reference is None:
        assert "by hand" in ran.err
    else:
        assert "ABX_MCP_AUTH_TOKEN" in text


def test_provider_and_tools_are_carried_into_the_entry(install: Install, tmp_path: Path) -> None:
    ran = install(
        "--target", "codex", "--provider", "local", "--tools", "run_code, read_file", "--tools", "list_files",
        "--exclude-tools", "read_file", "--json",
    )  # fmt: skip
    entry = _read(clients()["codex"], tmp_path / ".codex/config.toml")
    assert entry["env"] == {"ABX_PROVIDER": "local"}
    assert entry["args"] == [
        "mcp", "start", "--tools", "run_code,read_file,list_files", "--exclude-tools", "read_file",
    ]  # fmt: skip
    document = json.loads(ran.out)
    assert document["tools"] == ["run_code", "list_files"]
    assert shlex.split(document["add_command"]) == [
        "codex", "mcp", "add", "agent-sandbox", "--env", "ABX_PROVIDER=local", "--", ABX, *entry["args"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--target", "emacs"], "--target"),
        ([], "--target"),
        (["--target", "claude", "--scope", "project"], "--scope"),
        (["--target", "cursor", "--url", "https://h/mcp"], "--url"),
        (["--target", "cursor", "--transport", "http"], "--url"),
        (["--target", "cursor", "--transport", "http", "--url", "ftp://h"], "--url"),
        (["--target", "cursor", "--transport", "http", "--url", "https://u:p@h/mcp"], "--url"),
        (["--target", "cursor", "--transport", "http", "--url", "https://h:x/mcp"], "--url"),
        (["--target", "cursor", "--transport", "http", "--url", "https://h/mcp", "--read-only"], "These"),
        (["--target", "cursor", "--tools", "no_such_tool"], "The choice of tools"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(words: list[str], field: str, install: Install, tmp_path: Path) -> None:
    ran = install(*words, "--json")
    assert ran.status == 2
    assert json.loads(ran.err)["details"]["field"] == field
    assert not (tmp_path / ".cursor").exists()


def test_a_token_does_not_go_over_plain_http(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", TOKEN)
    words = ("--target", "cursor", "--transport", "http", "--url")
    assert install(*words, "http://h.example/mcp").status == 2
    assert install(*words, "http://127.0.0.1:8080/mcp").status == 0


def test_a_dry_run_shows_a_diff_and_writes_nothing(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABX_SANDBOX_API_KEY", KEY)
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  "mcpServers": {\n    "a": {}\n  }\n}\n')
    before = sorted(tmp_path.rglob("*"))
    ran = install("--target", "cursor", "--dry-run")
    assert ran.out.startswith("--- ~/.cursor/mcp.json\n+++ ~/.cursor/mcp.json\n@@ ")
    assert '+    "agent-sandbox": {\n' in ran.out
    assert '+        "ABX_SANDBOX_API_KEY": "********"\n' in ran.out
    assert json.loads(install("--target", "cursor", "--dry-run", "--json").out)["changed"] is True
    assert sorted(tmp_path.rglob("*")) == before
    assert "agent-sandbox" not in path.read_text()


def test_links_and_commands_are_shown_and_lead_to_the_same_entry(install: Install) -> None:
    shown: dict[str, Any] = {name: json.loads(install("--target", name, "--print", "--json").out) for name in clients()}
    query = parse_qs(urlsplit(str(shown["cursor"]["link"])).query)
    assert query["name"] == ["agent-sandbox"]
    assert json.loads(base64.b64decode(query["config"][0])) == shown["cursor"]["entry"]
    code = json.loads(unquote(str(shown["vscode"]["link"]).partition("?")[2]))
    assert code == {"name": "agent-sandbox", **shown["vscode"]["entry"]}
    goose = parse_qs(urlsplit(str(shown["goose"]["link"])).query)
    assert (goose["cmd"], goose["arg"]) == ([ABX], ["mcp", "start"])
    assert shlex.split(shown["claude-code"]["add_command"])[-3:] == [ABX, "mcp", "start"]
    assert shown["claude"]["add_command"] is None


def test_a_file_behind_a_link_is_changed_and_the_link_stays(install: Install, tmp_path: Path) -> None:
    """People keep such files in a folder of their own and link to it."""
    real = tmp_path / "dotfiles/cursor.json"
    real.parent.mkdir()
    real.write_text('{"mcpServers": {}}')
    link = tmp_path / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert install("--target", "cursor").status == 0
    assert link.is_symlink()
    assert "agent-sandbox" in real.read_text()
    assert install("--target", "cursor", "--remove").status == 0
    assert (link.is_symlink(), real.read_text()) == (True, '{"mcpServers": {}}')


@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_link_of_a_project_does_not_choose_a_file_outside(
    whole_folder: bool, install: Install, project: Path, tmp_path: Path
) -> None:
    """A project comes from somebody else."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}")
    if whole_folder:
        (project / ".vscode").symlink_to(outside)
    else:
        (project / ".vscode").mkdir()
        (project / ".vscode/mcp.json").symlink_to(outside / "mcp.json")
    ran = install("--target", "vscode")
    assert (ran.status, (outside / "mcp.json").read_text()) == (2, "{}")
    assert ".vscode/mcp.json leads out of this project" in ran.err


def test_what_is_no_ordinary_file_is_refused(install: Install, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    os.mkfifo(tmp_path / ".cursor/mcp.json")
    assert install("--target", "cursor").status == 2
    (tmp_path / ".codex/config.toml").mkdir(parents=True)
    assert install("--target", "codex").status == 2


def test_a_client_that_writes_at_the_same_time_loses_nothing(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".claude.json"
    path.write_text('{"a": 1}')
    real = os.fsync

    def write_meanwhile(descriptor: int) -> None:
        real(descriptor)
        path.write_text('{"a": 2}')

    monkeypatch.setattr(os, "fsync", write_meanwhile)
    ran = install("--target", "claude-code")
    assert (ran.status, path.read_text()) == (2, '{"a": 2}')
    assert "somebody else" in ran.err
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".claude")] == [".claude.json"]


def test_the_bytes_from_before_are_kept_and_only_for_their_owner(install: Install, tmp_path: Path) -> None:
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"other": {"env": {"TOKEN": "x"}}}}')
    backup = Path(json.loads(install("--target", "cursor", "--json").out)["backup"])
    assert backup.read_text() == '{"mcpServers": {"other": {"env": {"TOKEN": "x"}}}}'
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700


def test_without_a_place_for_the_backup_nothing_is_changed(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    ran = install("--target", "cursor")
    assert (ran.status, path.read_text()) == (2, "{}")
    assert "XDG_STATE_HOME" in ran.err


def test_without_the_server_nothing_is_installed(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install cloche` alone brings no MCP server."""
    monkeypatch.setattr("cloche_cli.extras.find_spec", lambda _name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    ran = install("--target", "cursor")
    assert ran.status == 2
    assert "pip install 'cloche[mcp]'" in ran.err
    assert not (tmp_path / ".cursor").exists()
    words = ("--target", "cursor", "--transport", "http", "--url", "https://h.example/mcp")
    assert install(*words).status == 0


def test_the_command_is_the_abx_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seed 001, 169 and 170."""
    program = tmp_path / "abx"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert own_command() == (str(program),)
    monkeypatch.setattr(sys, "argv", ["abx"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command() == (str(program),)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["./abx"])
    assert own_command() == (str(program),)
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python3"))
    assert own_command() == (str(tmp_path / "bin/python3"), "-m", "cloche_cli")
