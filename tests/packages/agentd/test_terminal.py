"""Terminals: process.Process with `pty`."""

from __future__ import annotations

import base64
import os
import signal
import time
from pathlib import Path

from tests.packages.agentd.plain_agent import Client, Json, PlainAgent, Running, alive, processes_with

SHELL: Json = {"cmd": "/bin/bash", "args": ["-i", "-l"], "envs": {"PS1": "> "}}


def _terminal(client: Client, program: Json, size: Json | None = None, **headers: str) -> Running:
    """Start a program on a terminal; return when it runs."""
    message: Json = {"process": program, "pty": {"size": size or {"cols": 80, "rows": 24}}}
    return Running(client.frames("/process.Process/Start", message, **headers))


def _command(text: str) -> Json:
    return {"cmd": "/bin/sh", "args": ["-c", text]}


def _type(agent: PlainAgent, pid: int, data: bytes) -> None:
    with agent.client() as other:
        sent = {"process": {"pid": pid}, "input": {"pty": base64.b64encode(data).decode()}}
        assert other.rpc("/process.Process/SendInput", sent).status == 200


def test_terminal_is_the_controlling_one_with_the_asked_size(client: Client) -> None:
    """agent-protocol 2.2: a session of its own, /dev/tty opens, TERM is set, the size is that of the request."""
    ran = _terminal(client, _command("tty; stty size; echo $TERM; echo via-tty >/dev/tty"), {"cols": 101, "rows": 31})
    lines = ran.wait().pty.decode().split("\r\n")
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:4] == ["31 101", "xterm-256color", "via-tty"]
    assert ran.ran.end["stopReason"] == "exit"


def test_size_left_out_is_24_rows_of_80(client: Client) -> None:
    """protobuf JSON omits zeros: an empty size is the usual one."""
    message: Json = {"process": _command("stty size"), "pty": {}}
    assert Running(client.frames("/process.Process/Start", message)).wait().pty == b"24 80\r\n"


def test_size_out_of_range_is_refused(client: Client) -> None:
    """The kernel's fields have 16 bits."""
    ran = _terminal(client, _command("true"), {"cols": 65536, "rows": 1})
    assert ran.ran.failure == "invalid_argument"


def test_t17_exit_in_an_interactive_shell_gives_its_code(agent: PlainAgent, client: Client) -> None:
    """T17, sandbox-sdk PR#632: the shell ends with 42, and the next one works."""
    shell = _terminal(client, SHELL)
    _type(agent, shell.ran.pid, b"exit 42\n")
    assert shell.wait().end["exitCode"] == 42
    with agent.client() as other:
        again = _terminal(other, SHELL)
        _type(agent, again.ran.pid, b"exit 0\n")
        assert again.wait().end["exited"] is True


def test_t31_heredoc_in_a_session_is_one_command(agent: PlainAgent, client: Client) -> None:
    """T31, Daytona#4230: the lines reach `cat`, and the shell takes the next command."""
    shell = _terminal(client, SHELL)
    _type(agent, shell.ran.pid, b"stty -echo\n")
    _type(agent, shell.ran.pid, b"cat <<EOF\none\ntwo\nEOF\necho do''ne\n")
    shell.until(b"one\r\ntwo\r\n")
    shell.until(b"done")
    _type(agent, shell.ran.pid, b"exit\n")
    assert shell.wait().end["stopReason"] == "exit"


def test_t29_stream_of_a_terminal_ends_with_its_command(client: Client) -> None:
    """T29, agentuity/sdk PR#1261: a program left behind on the terminal does not hold the stream."""
    duration = f"30.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"
    started = time.monotonic()
    ran = _terminal(client, _command(f"trap '' HUP; sleep {duration} & echo left; exit 3")).wait()
    assert (ran.end["exitCode"], ran.pty) == (3, b"left\r\n")
    assert time.monotonic() - started < 10
    for pid in processes_with(duration):
        os.kill(pid, signal.SIGKILL)


def test_o15_large_output_of_a_terminal_is_complete(client: Client) -> None:
    """O15, libmodal#245: what was printed just before the exit arrives, every byte of it."""
    ran = _terminal(client, _command("stty -opost; seq 1 200000")).wait()
    assert ran.pty == b"".join(b"%d\n" % number for number in range(1, 200001))


def test_o15_output_that_waits_in_the_terminal_at_the_exit_is_not_lost(fresh_agent: PlainAgent, tmp_path: Path) -> None:
    """O15: the end is known before everything was read; the rest comes before the end event."""
    go, done = tmp_path / "go", tmp_path / "done"
    command = f"echo ready; while [ ! -e {go} ]; do :; done; head -c 9000 /dev/zero | tr '\\0' x; : >{done}"
    with fresh_agent.client() as client:
        running = _terminal(client, _command(command))
        running.until(b"ready")
        os.kill(fresh_agent.process.pid, signal.SIGSTOP)
        try:
            go.touch()
            deadline = time.monotonic() + 10
            while (not done.exists() or alive(running.ran.pid)) and time.monotonic() < deadline:
                os.sched_yield()
        finally:
            os.kill(fresh_agent.process.pid, signal.SIGCONT)
        assert running.wait().pty.count(b"x") == 9000


def test_resize_reaches_the_foreground_program(agent: PlainAgent, client: Client) -> None:
    """agent-protocol 2.2, Update: the program gets SIGWINCH and reads the new size."""
    running = _terminal(client, _command("trap 'stty size; exit' WINCH; echo ready; while :; do read line; done"))
    running.until(b"ready")
    with agent.client() as other:
        update = {"process": {"pid": running.ran.pid}, "pty": {"size": {"cols": 132, "rows": 50}}}
        assert other.rpc("/process.Process/Update", update).status == 200
    assert b"50 132" in running.wait().pty


def test_ctrl_c_interrupts_the_foreground_program(agent: PlainAgent, client: Client) -> None:
    """The kernel sends SIGINT because the terminal is the controlling one; the shell goes on."""
    shell = _terminal(client, SHELL)
    # Said by the program itself: an interrupt between the shell's fork and exec would be lost in any terminal.
    _type(agent, shell.ran.pid, b"sh -c 'echo sta\"\"rt; exec sleep 60'\n")
    shell.until(b"start")
    _type(agent, shell.ran.pid, b"\x03")
    _type(agent, shell.ran.pid, b"echo aft''er $?\n")
    shell.until(b"after 130")
    _type(agent, shell.ran.pid, b"exit\n")
    shell.wait()


def test_killed_terminal_leaves_no_process(agent: PlainAgent, client: Client) -> None:
    """commands.kill: the whole tree is gone when it is answered."""
    duration = f"60.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"
    running = _terminal(client, _command(f"echo ready; sleep {duration}"))
    running.until(b"ready")
    with agent.client() as other:
        listed = other.rpc("/process.Process/List", {}).value["processes"]
        assert running.ran.pid in [entry["pid"] for entry in listed]
        kill = {"process": {"pid": running.ran.pid}, "signal": "SIGNAL_SIGKILL"}
        assert other.rpc("/process.Process/SendSignal", kill).status == 200
    assert processes_with(duration) == []
    assert running.wait().end["exitCode"] == 137


def test_second_client_follows_a_terminal(agent: PlainAgent, client: Client) -> None:
    """pty.connect: output reaches everyone who is attached."""
    running = _terminal(client, _command("stty -echo; echo ready; read line; echo got $line"))
    running.until(b"ready")
    with agent.client() as other:
        follower = Running(other.frames("/process.Process/Connect", {"process": {"pid": running.ran.pid}}))
        _type(agent, running.ran.pid, b"it\n")
        assert b"got it" in follower.wait().pty
    assert b"got it" in running.wait().pty


def test_input_of_the_wrong_kind_is_refused(agent: PlainAgent, client: Client) -> None:
    """A terminal takes `pty`, a pipe `stdin`; closing the input of a terminal is typing Ctrl+D."""
    running = _terminal(client, _command("cat"))
    selected = {"process": {"pid": running.ran.pid}}
    with agent.client() as other:
        refused = other.rpc("/process.Process/SendInput", {**selected, "input": {"stdin": "aGk="}})
        assert refused.value["code"] == "failed_precondition"
        assert other.rpc("/process.Process/CloseStdin", selected).value["code"] == "failed_precondition"
    _type(agent, running.ran.pid, b"\x04")
    assert running.wait().end["exited"] is True


def test_terminal_that_ended_leaves_no_descriptor(fresh_agent: PlainAgent) -> None:
    """The keeper closes both ends; a machine has a bounded number of terminals."""
    descriptors = Path(f"/proc/{fresh_agent.process.pid}/fd")

    def terminals() -> int:
        return sum("/pt" in os.readlink(entry) for entry in descriptors.iterdir() if entry.is_symlink())

    with fresh_agent.client() as client:
        for _ in range(5):
            _terminal(client, _command("true")).wait()
        duration = f"30.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"
        _terminal(client, _command(f"trap '' HUP; sleep {duration} & :")).wait()
        refused = _terminal(client, {"cmd": "/no/such/program"})
        assert refused.ran.failure == "command_failed_to_start"
    left = terminals()
    for pid in processes_with(duration):
        os.kill(pid, signal.SIGKILL)
    assert left == 0
