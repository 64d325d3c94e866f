"""`abx task` and `abx sandbox timeout`: long work in a real sandbox, by processes that come and go."""

import json
import signal
import subprocess
import sys
from datetime import datetime

from tests.packages.cli.desk import WITHIN_S, Desk, desk

__all__ = ["desk"]


def _started(desk: Desk, *words: str) -> str:
    done = desk.abx("task", "start", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def test_a_task_goes_on_when_its_starter_is_gone(desk: Desk) -> None:
    """Started by one process, followed by another; the status is the program's, each stream is where it belongs."""
    task = _started(desk, desk.sandbox, "until [ -e go ]; do sleep 0.05; done; echo out; echo err >&2; exit 7")
    listed = json.loads(desk.abx("--json", "task", "list", desk.sandbox).stdout)
    assert [(entry["task_id"], entry["state"]) for entry in listed["tasks"]] == [(task, "running")]
    desk.inside("touch go")
    done = desk.abx("task", "logs", "--follow", desk.sandbox, task)
    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert done.stderr.decode().splitlines() == ["err", "failed (exit 7)"]
    assert b"failed (exit 7)" in desk.abx("task", "list", desk.sandbox).stdout


def test_output_of_many_pages_comes_whole_and_once(desk: Desk) -> None:
    """More than one page, less than what is kept of a stream."""
    task = _started(desk, desk.sandbox, "seq 60000")
    assert desk.abx("task", "logs", desk.sandbox, task, "-f").stdout == b"".join(b"%d\n" % n for n in range(1, 60001))
    told = json.loads(desk.abx("--json", "task", "logs", desk.sandbox, task).stdout)
    assert (told["state"], told["exit_code"], told["skipped"]) == ("succeeded", 0, 0)
    assert told["stdout"].endswith("59999\n60000\n")


def test_a_cancelled_task_is_gone_and_so_is_what_it_started(desk: Desk) -> None:
    """Its status is the one that a shell gives for SIGTERM."""
    line = "sleep 1000 & echo $WHO > who; wait"
    task = _started(desk, desk.sandbox, "--env", "WHO=me", "--", "sh", "-c", line)
    assert desk.inside("until [ -s who ]; do sleep 0.05; done; cat who") == "me\n"
    assert "sleep 1000" in desk.inside("cat /proc/*/cmdline | tr '\\0' ' '")
    assert desk.abx("task", "cancel", desk.sandbox, task).stdout == b"cancelled\n"
    assert "sleep 1000" not in desk.inside("cat /proc/*/cmdline | tr '\\0' ' '")
    assert desk.abx("task", "logs", desk.sandbox, task, "--follow").returncode == 128 + signal.SIGTERM


def test_a_task_past_its_timeout_has_the_status_of_one(desk: Desk) -> None:
    task = _started(desk, desk.sandbox, "--timeout", "1", "sleep 1000")
    done = desk.abx("task", "logs", desk.sandbox, task, "--follow")
    assert (done.returncode, done.stderr) == (5, b"timed_out\n")


def test_whoever_stops_to_follow_leaves_the_task_running(desk: Desk) -> None:
    """Ctrl+C ends the look, not the work."""
    task = _started(desk, desk.sandbox, "echo here; sleep 1000")
    command = [sys.executable, "-m", "cloche_cli", "task", "logs", desk.sandbox, task, "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=desk.environ, cwd=desk.folder) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"here\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(WITHIN_S) == 130
    listed = json.loads(desk.abx("--json", "task", "list", desk.sandbox).stdout)
    assert listed["tasks"][0]["state"] == "running"


def test_a_task_that_may_outlast_its_sandbox_is_told_how_not_to(desk: Desk) -> None:
    """The sandbox lives for five minutes, as made; the note names the command that gives it more."""
    done = desk.abx("task", "start", "--timeout", "4000", desk.sandbox, "true")
    assert f"abx sandbox timeout {desk.sandbox} SECONDS" in done.stderr.decode()
    before = json.loads(desk.abx("--json", "sandbox", "get", desk.sandbox).stdout)["end_at"]
    assert desk.abx("sandbox", "timeout", desk.sandbox, "5000").returncode == 0
    after = json.loads(desk.abx("--json", "sandbox", "get", desk.sandbox).stdout)["end_at"]
    assert (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds() > 4000
    assert not desk.abx("task", "start", "--timeout", "4000", desk.sandbox, "true").stderr


def test_what_is_not_there_is_status_4(desk: Desk) -> None:
    assert desk.abx("task", "logs", desk.sandbox, "0" * 32).returncode == 4
    assert desk.abx("task", "start", "sb-nothing", "true").returncode == 4
    assert desk.abx("sandbox", "timeout", "sb-nothing", "60").returncode == 4
