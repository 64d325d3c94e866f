"""Commands: process.Process of the agent."""

from __future__ import annotations

import base64
import os
import signal
import time

import pytest

from tests.packages.agentd.plain_agent import Client, PlainAgent, alive, processes_with


def _unique(seconds: int) -> str:
    """Return a sleep duration that no other process on this machine sleeps."""
    return f"{seconds}.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"


def test_command_streams_output_and_its_exit_code(client: Client) -> None:
    """agent-protocol 2.2: start first, data, then the end event."""
    ran = client.run("echo out; echo err >&2; exit 3")
    assert (ran.stdout, ran.stderr) == (b"out\n", b"err\n")
    assert ran.end == {
        "exitCode": 3,
        "exited": True,
        "stopReason": "exit",
        "status": "exit status 3",
        "error": "exit status 3",
    }


def test_t1_sleep_past_its_timeout_leaves_no_process(client: Client) -> None:
    """T1, E2B#500: the whole tree is dead before the stream ends."""
    sleep = f"sleep {_unique(60)}"
    ran = client.run(f"{sleep} & {sleep}; true", connect_timeout_ms="200")
    assert ran.error is not None
    assert ran.error["code"] == "deadline_exceeded"
    assert ran.failure == "command_timeout"
    assert processes_with(sleep.split()[1]) == []


def test_t3_background_child_dies_with_the_timeout(client: Client) -> None:
    """T3, langfuse#15955: a shell that waits for its background child."""
    duration = _unique(300)
    ran = client.run(f"sleep {duration} & wait", connect_timeout_ms="50")
    assert ran.failure == "command_timeout"
    assert processes_with(duration) == []


def test_timeout_kills_a_daemon_that_left_its_session_and_parent(client: Client) -> None:
    """T3: `setsid` and a dead parent do not hide a process; its environment still names the command."""
    duration = _unique(300)
    ran = client.run(f"(setsid sleep {duration} &) ; sleep {duration}", connect_timeout_ms="300")
    assert ran.failure == "command_timeout"
    assert processes_with(duration) == []


def test_timeout_kills_a_tree_that_keeps_forking(client: Client) -> None:
    """T1: stopped first and looked for again, a tree that forks while it is killed leaves nothing."""
    duration = _unique(5)
    ran = client.run(f"while :; do sleep {duration} & sleep 0.002; done", connect_timeout_ms="300")
    assert ran.failure == "command_timeout"
    assert processes_with(duration) == []


def test_timeout_kills_only_the_command_that_was_late(client: Client, agent: PlainAgent) -> None:
    """T20, OpenMinis#358: one timeout is no other command's business."""
    with agent.client() as other:
        running = other.start("read line; echo $line", more={"stdin": True})
        assert client.run("sleep 20", connect_timeout_ms="50").failure == "command_timeout"
        client.rpc("/process.Process/SendInput", _input(running.ran.pid, b"still here\n"))
        assert running.wait().stdout == b"still here\n"
    assert client.run("echo next").stdout == b"next\n"


def test_t6_background_child_does_not_hold_the_answer(client: Client) -> None:
    """T6, dagger#6672: `sleep 10 &` holds the pipe, and the command ends at once."""
    started = time.monotonic()
    ran = client.run("sleep 10 & echo $!")
    assert ran.end["exitCode"] == 0
    assert time.monotonic() - started < 5
    os.kill(int(ran.stdout), signal.SIGKILL)


def test_t8_timeout_keeps_the_output_so_far(client: Client) -> None:
    """T8, SWE-ReX#151: what was printed arrives before the stream ends."""
    ran = client.run("echo one; echo two >&2; sleep 60", connect_timeout_ms="300")
    assert (ran.stdout, ran.stderr) == (b"one\n", b"two\n")
    assert ran.failure == "command_timeout"


def test_t12_standard_input_is_empty_by_default(client: Client) -> None:
    """T12, microsandbox#1549: nothing waits for an input that never comes."""
    ran = client.run("cat; echo done; readlink /proc/self/fd/0")
    assert ran.stdout == b"done\n/dev/null\n"


def test_t12_open_standard_input_does_not_hold_the_timeout(client: Client) -> None:
    """T12: the timeout does not depend on input or output."""
    ran = client.run("cat", more={"stdin": True}, connect_timeout_ms="100")
    assert ran.failure == "command_timeout"


def test_t18_missing_cwd_is_named(client: Client) -> None:
    """T18, sandbox-sdk#288: the error says which folder is missing."""
    ran = client.run("pwd", process={"cwd": "/no/such/folder"})
    assert ran.error is not None
    assert ran.error["code"] == "invalid_argument"
    assert "cwd '/no/such/folder' does not exist" in ran.error["message"]
    assert ran.failure == "cwd_not_found"


def test_t18_removed_default_folder_falls_back(fresh_agent: PlainAgent) -> None:
    """T18: without a cwd in the request, a removed home does not end the sandbox's use."""
    with fresh_agent.client() as client:
        client.run('rm -rf "$HOME"')
        assert client.run("pwd").stdout == b"/\n"


def test_t20_commands_work_after_many_timeouts(client: Client) -> None:
    """T20: nothing is left wedged."""
    for _ in range(5):
        assert client.run("sleep 20", connect_timeout_ms="30").failure == "command_timeout"
    assert client.run("echo fine").stdout == b"fine\n"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("true && echo a; echo b || echo c", b"a\nb\n"),
        ("echo 'x & y ; z' && (echo sub)", b"x & y ; z\nsub\n"),
        ("cat <<'END'\n$HOME `id` \"q\"\nEND", b'$HOME `id` "q"\n'),
        ("printf '%s' \"$(printf 'a\\nb')\"", b"a\nb"),
    ],
)
def test_t32_shell_syntax_is_passed_verbatim(client: Client, command: str, printed: bytes) -> None:
    """T32, OpenSandbox#127: one shell gets the text as it is."""
    assert client.run(command).stdout == printed


def test_t34_background_server_outlives_its_call(client: Client, agent: PlainAgent) -> None:
    """T34, claude-code#35986: what runs on is the sandbox's, and may go on writing to the call's pipe."""
    log = agent.home / "beat"
    loop = f"while :; do echo beat; echo beat >> {log}; sleep 0.01; done"
    ran = client.run(f"({loop}) & echo $!")
    pid = int(ran.stdout.split()[0])
    try:
        seen = log.stat().st_size if log.exists() else 0
        # Far more than a pipe holds: a reader that went away would have ended it by SIGPIPE.
        client.run(f"while [ $(stat -c %s {log}) -lt {seen + 200} ]; do sleep 0.01; done", connect_timeout_ms="10000")
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_t34_background_writer_is_drained_and_not_blocked(client: Client, agent: PlainAgent) -> None:
    """T34: a child left behind can write more than a pipe holds, and ends by itself."""
    done = agent.home / "wrote-all"
    client.run(f"(head -c 3000000 /dev/zero; touch {done}) & true")
    assert client.run(f"while [ ! -e {done} ]; do sleep 0.01; done", connect_timeout_ms="15000").error is None


def test_o1_bytes_that_are_no_text_arrive(client: Client) -> None:
    """O1: output is bytes, and the exit code is kept."""
    ran = client.run("printf '\\377\\000\\376'; exit 7")
    assert ran.stdout == b"\xff\x00\xfe"
    assert ran.end["exitCode"] == 7


def test_o4_blank_lines_are_kept(client: Client) -> None:
    """O4, OpenSandbox PR#902."""
    assert client.run("printf 'a\\n\\nb\\n\\n\\nc\\n'").stdout == b"a\n\nb\n\n\nc\n"


def test_o6_burst_before_the_exit_is_complete(client: Client) -> None:
    """O6, codex#45540: 4 MiB at once, then the end."""
    ran = client.run("head -c 4194304 /dev/zero | tr '\\0' x; echo e >&2")
    assert len(ran.stdout) == 4194304
    assert ran.stderr == b"e\n"


def test_o7_endless_output_is_held_back_while_nobody_reads(fresh_agent: PlainAgent) -> None:
    """O7, ggcode#1316: memory of the agent stays flat while `yes` waits for its reader."""
    with fresh_agent.client() as client:
        running = client.start("yes")
        running.until(b"y\n" * 1000)
        before = _resident_kb(fresh_agent.process.pid)
        with fresh_agent.client() as other:
            # A second command's round trips are the time in which an unbounded buffer would grow.
            for _ in range(50):
                other.run("sleep 0.01")
            assert _resident_kb(fresh_agent.process.pid) - before < 8000
            other.rpc("/process.Process/SendSignal", {"process": {"pid": running.ran.pid}, "signal": "SIGNAL_SIGKILL"})


def test_o17_locale_is_utf8(client: Client) -> None:
    """O17: Python prints any character, whatever the image sets."""
    ran = client.run("python3 -c 'print(\"\\u2639\")'; echo $LANG $LC_ALL $PYTHONIOENCODING")
    assert ran.stdout.decode() == "☹\nC.UTF-8 C.UTF-8 utf-8\n"


def test_e1_environment_starts_empty(client: Client) -> None:
    """E1: nothing of the host's environment, and the documented base only."""
    names = {line.split("=")[0] for line in client.run("env -0").stdout.decode().split("\0") if line}
    base = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "PYTHONIOENCODING", "CLOCHE_TASK"}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == base


def test_request_environment_wins(client: Client) -> None:
    """agent-protocol 2.2: the request's variables come last."""
    ran = client.run('echo "$A|$LANG"', process={"envs": {"A": "1 2", "LANG": "C"}})
    assert ran.stdout == b"1 2|C\n"


def test_large_request_passes(client: Client) -> None:
    """D9: a 64 KiB command and 100 variables of many KiB are within the limits."""
    envs = {f"V{number}": "x" * 10000 for number in range(100)}
    ran = client.run(f"printf %s {'a' * 60000} | wc -c; printf %s $V99 | wc -c", process={"envs": envs})
    assert ran.stdout.split() == [b"60000", b"10000"]


def test_too_large_environment_is_refused_with_the_reason(client: Client) -> None:
    """The kernel's bound is told as such, not as an unknown error."""
    envs = {f"V{number}": "x" * 120000 for number in range(40)}
    ran = client.run("true", process={"envs": envs})
    assert ran.failure == "command_failed_to_start"
    assert ran.error is not None
    assert "too long" in ran.error["message"]


def test_missing_program_is_told(client: Client) -> None:
    """A program that is not there is no internal error."""
    ran = client.run("x", process={"cmd": "no-such-program", "args": []})
    assert ran.failure == "command_failed_to_start"


def test_program_is_found_on_the_path_of_the_request(client: Client, agent: PlainAgent) -> None:
    """The PATH of the command's own environment decides."""
    tool = agent.home / "bin" / "mytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    ran = client.run("", process={"cmd": "mytool", "args": [], "envs": {"PATH": str(tool.parent)}})
    assert ran.stdout == b"mine\n"


def test_signal_ends_are_told(client: Client) -> None:
    """D5: 128 + signal, and the signal itself."""
    ran = client.run("kill -TERM $$")
    assert ran.end["exitCode"] == 128 + signal.SIGTERM
    assert ran.end["signal"] == signal.SIGTERM
    assert not ran.end["exited"]


def test_input_reaches_the_process_and_ends(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.2: SendInput, then CloseStdin."""
    with agent.client() as other:
        running = other.start("cat; echo end", more={"stdin": True})
        pid = running.ran.pid
        assert client.rpc("/process.Process/SendInput", _input(pid, b"a" * 200000)).status == 200
        assert client.rpc("/process.Process/CloseStdin", {"process": {"pid": pid}}).status == 200
        assert running.wait().stdout == b"a" * 200000 + b"end\n"


def test_running_commands_are_listed_by_pid_and_tag(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.2: List."""
    with agent.client() as other:
        running = other.start("sleep 60", more={"tag": "mine"})
        listed = client.rpc("/process.Process/List", {}).value["processes"]
        entry = next(item for item in listed if item["pid"] == running.ran.pid)
        assert entry["tag"] == "mine"
        assert entry["config"]["args"] == ["-c", "sleep 60"]
        selector = {"process": {"tag": "mine"}, "signal": "SIGNAL_SIGKILL"}
        assert client.rpc("/process.Process/SendSignal", selector).status == 200
        assert running.wait().end["signal"] == signal.SIGKILL
    assert all(item["pid"] != running.ran.pid for item in client.rpc("/process.Process/List", {}).value["processes"])


def test_kill_takes_the_whole_tree_before_it_answers(client: Client, agent: PlainAgent) -> None:
    """E2B#1034: kill means everything, confirmed."""
    duration = _unique(300)
    with agent.client() as other:
        running = other.start(f"(setsid sleep {duration} &); sleep {duration}")
        client.run(f"while [ $(pgrep -fc 'sleep {duration}') -lt 2 ]; do sleep 0.01; done")
        selector = {"process": {"pid": running.ran.pid}, "signal": "SIGNAL_SIGKILL"}
        assert client.rpc("/process.Process/SendSignal", selector).status == 200
        assert processes_with(f"sleep\0{duration}") == []


def test_terminate_reaches_the_commands_group(client: Client, agent: PlainAgent) -> None:
    """SIGTERM goes to the group, as a terminal's would: the shell's programs get it too."""
    with agent.client() as other:
        # A child that is still a shell would take the signal for its parent's trap, and lose it.
        started = "while ! grep -q sleep /proc/$!/comm; do :; done; echo $!"
        running = other.start(f"trap 'exit 9' TERM; sleep 300 & {started}; wait")
        running.until(b"\n")
        selector = {"process": {"pid": running.ran.pid}, "signal": "SIGNAL_SIGTERM"}
        assert client.rpc("/process.Process/SendSignal", selector).status == 200
        ran = running.wait()
    assert ran.end["exitCode"] == 9
    waited = client.run(f"while kill -0 {int(ran.stdout)}; do sleep 0.01; done", connect_timeout_ms="5000")
    assert waited.error is None


def test_unknown_process_is_not_found(client: Client) -> None:
    """agent-protocol 2.2: not_found makes kill() return False."""
    reply = client.rpc("/process.Process/SendSignal", {"process": {"pid": 999999}, "signal": "SIGNAL_SIGKILL"})
    assert (reply.status, reply.value["code"]) == (404, "not_found")
    assert reply.value["cloche"]["code"] == "process_not_found"


def test_connect_follows_from_now_and_tells_a_past_end(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.2: a late reader gets the exit event."""
    with agent.client() as other:
        running = other.start("read x; echo got $x; exit 5", more={"stdin": True})
        with agent.client() as late:
            follower = late.frames("/process.Process/Connect", {"process": {"pid": running.ran.pid}})
            assert next(follower)[1] == {"event": {"start": {"pid": running.ran.pid}}}
            client.rpc("/process.Process/SendInput", _input(running.ran.pid, b"it\n"))
            seen = [message["event"] for flags, message in follower if not flags]
        assert base64.b64decode(seen[0]["data"]["stdout"]) == b"got it\n"
        assert seen[-1]["end"]["exitCode"] == 5
        running.wait()
    again = list(client.frames("/process.Process/Connect", {"process": {"pid": running.ran.pid}}))
    assert again[1][1]["event"]["end"]["exitCode"] == 5


def test_command_outlives_its_client_unless_asked(agent: PlainAgent, client: Client) -> None:
    """agent-protocol 2.2: the stream's end is not the command's end."""
    marker = agent.home / "outlived"
    with agent.client() as other:
        other.start(f"sleep 0.2; touch {marker}")
        other.connection.close()
    assert client.run(f"while [ ! -e {marker} ]; do sleep 0.01; done", connect_timeout_ms="10000").error is None


def test_kill_on_disconnect_kills_the_tree(agent: PlainAgent, client: Client) -> None:
    """Cancellation of a call: its client says that the command ends with the connection."""
    duration = _unique(300)
    with agent.client() as other:
        other.start(f"sleep {duration} & wait", cloche_kill_on_disconnect="1")
        other.connection.sock.close()
        other.connection.close()
    waited = client.run(
        f"while pgrep -f '^sleep {duration}' >/dev/null; do sleep 0.01; done", connect_timeout_ms="10000"
    )
    assert waited.error is None


def test_keepalives_fill_silence(client: Client) -> None:
    """agent-protocol 2.2: keepalive-ping-interval."""
    frames = list(
        client.frames(
            "/process.Process/Start",
            {"process": {"cmd": "/bin/sleep", "args": ["1.2"]}},
            keepalive_ping_interval="1",
        )
    )
    assert {"event": {"keepalive": {}}} in [message for _flags, message in frames]


def test_l5_parallel_commands_do_not_mix(agent: PlainAgent) -> None:
    """L5, deer-flow#1435: separate processes, separate outputs."""
    clients = [agent.client() for _ in range(8)]
    running = [client.start(f"for i in 1 2 3; do echo {n}; done") for n, client in enumerate(clients)]
    outputs = [one.wait().stdout for one in running]
    assert outputs == [f"{n}\n".encode() * 3 for n in range(8)]
    for client in clients:
        client.connection.close()


def _input(pid: int, data: bytes) -> dict[str, object]:
    return {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(data).decode()}}


def _resident_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))
