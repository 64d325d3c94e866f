"""`abx config`, `abx provider` and `abx completion`."""

import io
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloche_cli.clients.edit import Broken, Unsafe
from cloche_cli.env_file import with_variable
from cloche_cli.toml_value import with_value
from cloche_contract.settings import SETTINGS
from cloche_sdk import load_settings
from tests.packages.cli.ran import Abx

SECRET = "s3cr3t key # with \"quotes'"


def _type(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_what_is_set_is_what_counts(abx: Abx, tmp_path: Path) -> None:
    ran = abx(["config", "set", "http_timeout", "60"])
    assert (ran.status, ran.out) == (0, "http_timeout: 60 (~/.abx/config.toml)\n")
    assert abx(["config", "get", "http_timeout"]).out == "60\n"
    assert load_settings().integer("http_timeout") == 60
    assert tomllib.loads((tmp_path / ".abx/config.toml").read_text()) == {"transport": {"http_timeout": 60}}
    abx(["config", "set", "provider", "local"])
    listed = json.loads(abx(["--json", "config", "list"]).out)["settings"]
    assert {one["key"]: (one["value"], one["layer"]) for one in listed if one["layer"] != "environment"} == {
        "http_timeout": ("60", "~/.abx/config.toml"),
        "provider": ("local", "~/.abx/config.toml"),
    }
    assert {one["key"] for one in json.loads(abx(["--json", "config", "list", "-a"]).out)["settings"]} == {
        setting.key for setting in SETTINGS
    }
    assert abx(["config", "unset", "http_timeout"]).out == "http_timeout: removed (~/.abx/config.toml)\n"
    assert abx(["config", "get", "http_timeout"]).out == "30\n"
    assert abx(["config", "unset", "http_timeout"]).out == "http_timeout: nothing to change.\n"


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS if setting.secret])
def test_a_secret_is_kept_for_its_owner_and_never_shown(
    key: str, abx: Abx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generated table decides what is secret; a secret never goes into TOML, which people commit."""
    _type(monkeypatch, SECRET + "\n")
    said = [abx(["config", "set", key])]
    file = tmp_path / ".abx/.env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_settings().text(key) == SECRET
    assert not (tmp_path / ".abx/config.toml").exists()
    said += [abx(["config", "get", key]), abx(["config", "list"]), abx(["--json", "config", "list", "--all"])]
    said += [abx(["--json", "config", "get", key]), abx(["config", "set", key, SECRET])]
    assert [ran.status for ran in said] == [0, 0, 0, 0, 0, 2]
    assert said[1].out == "********\n"
    assert all("s3cr3t" not in ran.out + ran.err for ran in said)
    abx(["config", "unset", key])
    assert load_settings().text(key) is None


def test_a_secret_is_typed_without_being_shown(tmp_path: Path) -> None:
    """On a terminal of its own: what is typed does not come back."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cloche_cli", "config", "set", "sandbox_api_key"]
    environ = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    seen = b""
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=tmp_path) as process:
        os.close(theirs)
        while b"sandbox_api_key: " not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, b"typed-s3cr3t\n")
        while (more := _read(ours)) != b"":
            seen += more
        assert process.wait(60) == 0
    os.close(ours)
    assert b"typed-s3cr3t" not in seen
    assert (tmp_path / ".abx/.env").read_text() == "ABX_SANDBOX_API_KEY=typed-s3cr3t\n"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1024)
    except OSError:  # the other side is gone: pty(7)
        return b""


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["set", "no_such", "1"], "enum"),
        (["set", "http_timeout", "0"], "range"),
        (["set", "http_timeout", "x"], "range"),
        (["set", "log_level", "LOUD"], "enum"),
        (["set", "provider", " "], "length"),
        (["get", "no_such"], "enum"),
        (["get", "provider"], "not_found"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(words: list[str], rule: str, abx: Abx, tmp_path: Path) -> None:
    ran = abx(["--json", "config", *words])
    assert ran.status == (4 if rule == "not_found" else 2)
    assert json.loads(ran.err)["details"]["rule"] == rule
    assert not (tmp_path / ".abx").exists()


def test_a_higher_layer_that_wins_is_told(abx: Abx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ABX_LOG_LEVEL", "ERROR")
    ran = abx(["config", "set", "log_level", "INFO"])
    assert "ABX_LOG_LEVEL of environment still wins" in ran.err
    (tmp_path / ".abx/.env").write_text("# mine\nABX_PROVIDER=cloud\n")
    assert abx(["config", "set", "provider", "local"]).status == 0
    assert abx(["config", "get", "provider"]).out == "local\n"
    assert (tmp_path / ".abx/.env").read_text() == "# mine\n"


def test_a_broken_file_is_left_as_it_is(abx: Abx, tmp_path: Path) -> None:
    (tmp_path / ".abx").mkdir()
    file = tmp_path / ".abx/config.toml"
    file.write_text("a = 1\n[core\n")
    ran = abx(["config", "set", "log_level", "INFO"])
    assert (ran.status, file.read_text()) == (2, "a = 1\n[core\n")
    assert "~/.abx/config.toml is not TOML: line 2" in ran.err


def test_the_files_are_named(abx: Abx, tmp_path: Path) -> None:
    assert abx(["config", "path"]).out == f"{tmp_path}/.abx/config.toml\n{tmp_path}/.abx/.env\n"
    assert json.loads(abx(["--json", "config", "path"]).out)["secrets"] == {
        "path": f"{tmp_path}/.abx/.env",
        "exists": False,
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[core]\nprovider = "x"\n'),
        ("# mine\n", '# mine\n\n[core]\nprovider = "x"\n'),
        ("[core]\n# c\nlog_level = 'INFO' # l\n", "[core]\nprovider = \"x\"\n# c\nlog_level = 'INFO' # l\n"),
        ("[core] # h\r\nprovider='y'\r\n[z]\r\n", '[core] # h\r\nprovider = "x"\r\n[z]\r\n'),
        ("[z]\nprovider = 1", '[z]\nprovider = 1\n\n[core]\nprovider = "x"\n'),
    ],
)
def test_one_line_of_the_settings_changes(before: str, after: str) -> None:
    assert with_value(before, "core.provider", "x") == after
    assert tomllib.loads(with_value(after, "core.provider", None)).get("core", {}).get("provider") is None


@pytest.mark.parametrize(
    "text", ["core = {provider = 'a'}\n", "[core]\nprovider = '''\na'''\n", "core.provider = 'a'\n"]
)
def test_settings_whose_lines_cannot_be_changed_are_left(text: str) -> None:
    with pytest.raises((Unsafe, Broken)):
        with_value(text, "core.provider", "x")


LINES = ["# c", "", "A=1", "export ABX_PROVIDER = 'old'", "ABX_PROVIDER=older", "ABX_PROVIDERS=2"]
VALUES = st.text(st.sampled_from(list("ab1 =#'\"\\$é🐍")), min_size=1, max_size=8).filter(
    lambda text: text == text.strip()
)


@settings(max_examples=60, deadline=None, database=None)
@given(value=VALUES, others=st.lists(st.sampled_from(LINES), max_size=5))
def test_any_value_of_a_variable_is_read_as_it_was_written(value: str, others: list[str]) -> None:
    text = "".join(f"{line}\n" for line in others)
    changed = with_variable(text, "ABX_PROVIDER", value)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / ".env").write_text(changed, encoding="utf-8")
        assert load_settings({}, home=Path(home) / "none", workdir=Path(home)).text("provider") == value
    ours = ("export ABX_PROVIDER = 'old'", "ABX_PROVIDER=older")
    assert [line for line in changed.splitlines() if not line.startswith("ABX_PROVIDER=")] == [
        line for line in others if line not in ours
    ]
    assert with_variable(changed, "ABX_PROVIDER", value) == changed


def test_providers_are_listed_and_told(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABX_PROVIDER", "scripted")
    monkeypatch.setenv("CLOCHE_TESTKIT_UNSANDBOXED", "1")
    listed = {one["name"]: one for one in json.loads(abx(["--json", "provider", "list"]).out)["providers"]}
    assert listed["scripted"]["default"] is True
    assert listed["local"]["distribution"].startswith("cloche-local ")
    assert "local" in abx(["provider", "list"]).out
    told = json.loads(abx(["--json", "provider", "info", "scripted"]).out)
    assert told["usable"] is True
    assert "capabilities" in told
    assert "abilities:" in abx(["provider", "info", "scripted"]).out
    assert abx(["provider", "info", "no_such"]).status == 4
    assert abx(["provider", "doctor"]).out == abx(["doctor"]).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_written_for_both_names(shell: str, abx: Abx) -> None:
    ran = abx(["completion", shell])
    assert ran.status == 0
    assert "_ABX_COMPLETE" in ran.out
    assert "abx" in ran.out
    assert "cloche" in ran.out
    assert abx(["completion", "tcsh"]).status == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_targets(tmp_path: Path) -> None:
    """A real bash reads the script and completes with it."""
    program = Path(sys.executable).with_name("abx")
    script = f"""
        PATH={program.parent}:$PATH
        eval "$(abx completion bash)"
        complete_words() {{
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _abx_completion abx; echo "${{COMPREPLY[*]}}"
        }}
        complete_words abx mcp st
        complete_words abx mcp install --target cl
        complete_words abx config get http
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.splitlines() == ["status start stop", "claude claude-code cline", "http_timeout"]
