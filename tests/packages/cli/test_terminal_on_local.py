"""`abx exec --tty` and `abx sandbox watch`, by a person at a real terminal, with real sandboxes of this machine."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cloche_sdk import Doors, Sandbox, load_settings
from tests.e2e.servers import local_is_refused
from tests.packages.cli.terminal_client import WITHIN_S, person_at

ABX = [sys.executable, "-m", "cloche_cli"]
LOCAL_FLAGS = 3


@pytest.fixture(scope="module")
def environ() -> Generator[dict[str, str]]:
    if refused := local_is_refused():
        pytest.skip(f"this machine cannot make a local sandbox: {refused}")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    with TemporaryDirectory(prefix="cl-") as folder:
        yield {
            **kept,
            "HOME": folder,
            "TERM": "vt220",
            "ABX_LOCAL_STATE_DIR": f"{folder}/state",
            "ABX_LOCAL_RUNTIME_DIR": f"{folder}/run",
        }


@pytest.fixture(scope="module")
def doors(environ: dict[str, str]) -> Doors:
    home = Path(environ["HOME"])
    return Doors(settings=load_settings(environ, home=home, workdir=home), environ=environ)


@pytest.fixture(scope="module")
def living(doors: Doors) -> Generator[Sandbox]:
    """A sandbox that this process made; `abx` is another one."""
    with Sandbox.create(timeout=600, doors=doors) as sandbox:
        yield sandbox


def in_sandbox(sandbox: Sandbox, *words: str) -> list[str]:
    return [*ABX, "exec", "-t", "--sandbox", sandbox.sandbox_id, *words]


def test_a_shell_is_a_terminal_of_this_size_and_ends_with_its_status(environ: dict[str, str], doors: Doors) -> None:
    before = Sandbox.list(doors=doors)
    with person_at([*ABX, "exec", "--tty"], environ) as person:
        person.sees("$ ")
        person.types("stty size; echo $TERM; tty\n")
        person.sees("31 99")
        person.sees("vt220")
        person.sees("/dev/pts/")
        person.resizes(120, 40)
        # The size travels beside what is typed: the shell waits for it.
        person.types("while [ \"$(stty size)\" != '40 120' ]; do sleep 0.05; done; echo resized\n")
        person.sees("\rresized\r")
        person.types("exit 7\n")
        assert person.status() == 7
    assert Sandbox.list(doors=doors) == before


def test_ctrl_c_is_for_the_program_inside(environ: dict[str, str]) -> None:
    with person_at(
        [*ABX, "exec", "--tty", "trap 'echo caught' INT; echo ready; sleep 60; echo after"], environ
    ) as person:
        person.sees("ready")
        person.types("\x03")
        person.sees("caught")
        person.sees("after")
        assert person.status() == 0


def test_the_terminal_is_as_before_at_the_end(environ: dict[str, str], living: Sandbox) -> None:
    with person_at(in_sandbox(living, "echo ready; read line; echo got $line"), environ) as person:
        before = person.settings()
        person.sees("ready")
        assert not person.settings()[LOCAL_FLAGS] & (termios.ICANON | termios.ISIG)
        person.types("it\n")
        person.sees("got it")
        assert person.status() == 0
        assert person.settings() == before
    assert living.is_running()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_restores_the_terminal(
    environ: dict[str, str], living: Sandbox, number: signal.Signals, status: int
) -> None:
    with person_at(in_sandbox(living, "echo ready; sleep 60"), environ) as person:
        before = person.settings()
        person.sees("ready")
        os.kill(person.pid, number)
        assert person.status() == status
        assert person.settings() == before
    assert "sleep" not in living.commands.run("cat /proc/[0-9]*/comm").stdout


def test_a_closed_window_hangs_up_inside(environ: dict[str, str], living: Sandbox) -> None:
    with person_at(in_sandbox(living, "echo ready; sleep 60"), environ) as person:
        person.sees("ready")
        person.leaves()
        assert person.status() == 129
    assert "sleep" not in living.commands.run("cat /proc/[0-9]*/comm").stdout


def test_a_terminal_is_needed(environ: dict[str, str]) -> None:
    done = subprocess.run([*ABX, "--json", "exec", "--tty"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stderr)["details"]["field"]) == (2, "--tty")
    done = subprocess.run(
        [*ABX, "exec", "--tty"], env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs a terminal" in done.stderr


def test_changes_of_a_directory_are_lines(environ: dict[str, str], living: Sandbox) -> None:
    command = [*ABX, "--json", "sandbox", "watch", living.sandbox_id, "/home/user", "-r"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            # Made again and again: the watch may begin after the first ones.
            made = 0
            seen: dict[str, str] = {}
            while not seen:
                made += 1
                living.commands.run(f"mkdir d{made} && echo x > d{made}/f")
                seen = _first_line(process)
            assert seen["type"] == "create"
            assert seen["name"].startswith("d")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130


def _first_line(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], 0.2)[0]:
        return {}
    return json.loads(process.stdout.readline())
