"""`abx` as a process: signals, closed pipes, what it imports, what it leaves on stdout."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

WITHIN_S = 20


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A process of its own with the scripted provider, whose requests are logged to `log`."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "ABX_PROVIDER": "scripted",
        "CLOCHE_TESTKIT_UNSANDBOXED": "1",
        "CLOCHE_TESTKIT_LOG": str(tmp_path / "log"),
    }


def _start(words: Sequence[str], environ: Mapping[str, str], *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *options, "-m", "cloche_cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environ),
        cwd=environ["HOME"],
        start_new_session=True,
    )


def _asked(environ: Mapping[str, str]) -> list[str]:
    """The operations that reached the platform, in order."""
    lines = Path(environ["CLOCHE_TESTKIT_LOG"]).read_text().splitlines()
    return [json.loads(line)["operation"] for line in lines]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "words",
    [
        ["run", "print('up', flush=True)\nwhile True: pass"],
        ["run", "--keep", "print('up', flush=True)\nimport time; time.sleep(60)"],
        ["exec", "echo up; sleep 60"],
    ],
    ids=["busy code", "kept code", "command"],
)
def test_an_interrupted_program_leaves_no_sandbox(
    environ: dict[str, str], words: list[str], number: signal.Signals, status: int
) -> None:
    """Issue "The spine", item 8: Ctrl-C leaves nothing running."""
    with _start(words, environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out, err) == (status, "", "")
    assert [operation for operation in _asked(environ) if operation != "close"] == ["create", "kill"]


def test_an_impatient_second_interrupt_does_not_stop_the_clean_up(environ: dict[str, str]) -> None:
    with _start(["exec", "echo up; sleep 60"], environ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(5):
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130
    assert "kill" in _asked(environ)


def test_a_reader_that_goes_away_ends_the_program(environ: dict[str, str]) -> None:
    """Fault M4: `abx exec yes | head` ends, quietly, and kills its sandbox."""
    with _start(["exec", "--timeout", "60", "yes"], environ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(WITHIN_S) == 141
        assert process.stderr.read() == ""
    assert "kill" in _asked(environ)


def test_a_one_shot_run_imports_no_server_and_no_schema_validator(environ: dict[str, str]) -> None:
    """A cold `abx run` is short: what it does not need it does not load."""
    imported = _imported(["run", "print(1)"], environ)
    assert (
        imported & {"mcp", "jsonschema", "referencing", "numpy", "cloche_contract.serving", "cloche_cli.tables"}
        == set()
    )


def test_help_and_version_import_no_sdk(environ: dict[str, str]) -> None:
    for words in (["--help"], ["run", "--help"], ["--version"]):
        assert _imported(words, environ) & {"anyio", "asyncio", "pydantic", "cloche_sdk", "cloche_contract"} == set()


def test_the_stdio_server_starts_without_the_command_line_parser(environ: dict[str, str]) -> None:
    """What stands between a client and its tools/list is the server alone."""
    imported = _imported(["mcp", "start"], environ)
    assert imported & {"cloche_cli.launch", "cloche_cli.root", "httpx", "rich", "cloche_sdk.sandbox"} == set()


def test_the_stdio_server_writes_nothing_but_frames(environ: dict[str, str]) -> None:
    """Fault M1: without a client's message there is nothing to say."""
    with _start(["mcp", "start"], environ) as process:
        out, _err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out) == (0, "")


def _imported(words: Sequence[str], environ: Mapping[str, str]) -> set[str]:
    with _start(words, environ, "-X", "importtime") as process:
        _out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err[-2000:]
    return {line.rsplit("|", 1)[1].strip() for line in err.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("words", [["doctor"], ["mcp", "status"]])
def test_a_sign_of_life_is_for_a_person_at_a_terminal_only(environ: dict[str, str], words: list[str]) -> None:
    """Issue 6, item 4. With stderr in a file nothing of it is left."""
    ran = subprocess.run(
        [sys.executable, "-m", "cloche_cli", *words],
        env=environ,
        cwd=environ["HOME"],
        capture_output=True,
        timeout=WITHIN_S * 3,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cloche_cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**environ, "TERM": "xterm", "COLUMNS": "80"},
        cwd=environ["HOME"],
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        assert process.wait(WITHIN_S) == 0
    os.close(ours)
    assert "…".encode() in shown
    assert shown.endswith(b"\x1b[?25h") or b"\x1b[2K" in shown  # taken away again


def test_an_interrupted_status_leaves_no_server(environ: dict[str, str], tmp_path: Path) -> None:
    """Issue 6, item 4: Ctrl-C leaves nothing running, also what a client's file made us start."""
    program = tmp_path / "slow"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}; echo $$ > started.new; mv started.new started\nread line\nsleep 600\n"
    )
    program.chmod(0o755)
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"agent-sandbox": {"command": str(program)}}}))
    with _start(["mcp", "status"], environ) as process:
        deadline = time.monotonic() + WITHIN_S
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            select.select([], [], [], 0.02)
        server = os.pidfd_open(int((tmp_path / "started").read_text()))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(WITHIN_S) == 130
        ended, _, _ = select.select([server], [], [], WITHIN_S)
        os.close(server)
    assert ended


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side is gone: pty(7)
        return b""
