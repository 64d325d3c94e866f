"""Output that is kept: process.Process/Connect with an offset."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tests.packages.agentd.plain_agent import Client, Json, PlainAgent, Running, peak_kb

KEPT_BYTES = 1024 * 1024


def _connect(client: Client, pid: int, **fields: object) -> list[Json]:
    """Follow a process to its end; return the messages."""
    frames: Iterator[tuple[int, Json]] = client.frames("/process.Process/Connect", {"process": {"pid": pid}, **fields})
    return [message for _flags, message in frames]


def _output(messages: list[Json], stream: str = "stdout") -> bytes:
    data = [message.get("event", {}).get("data", {}).get(stream, "") for message in messages]
    return b"".join(base64.b64decode(piece) for piece in data)


def _disconnected(agent: PlainAgent, command: str, until: bytes) -> int:
    """Start a command, read this much of it, and drop the connection."""
    with agent.client() as client:
        running = client.start(command, more={"stdin": True})
        running.until(until)
        return running.ran.pid


def _go_on(agent: PlainAgent, pid: int) -> None:
    with agent.client() as client:
        sent = {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(b"go\n").decode()}}
        assert client.rpc("/process.Process/SendInput", sent).status == 200


def test_t21_job_outlives_its_connection_and_its_output_is_kept(agent: PlainAgent, client: Client) -> None:
    """T21, E2B#1074: who comes back gets everything, while it runs and after its end."""
    pid = _disconnected(agent, "echo one; echo two >&2; read line; echo three; exit 5", b"one")
    with agent.client() as other:
        follower = Running(other.frames("/process.Process/Connect", {"process": {"pid": pid}, "offset": 0}))
        follower.until(b"one\n")
        _go_on(agent, pid)
        ran = follower.wait()
    assert (ran.stdout, ran.stderr, ran.end["exitCode"]) == (b"one\nthree\n", b"two\n", 5)
    late = _connect(client, pid, offset=0)
    assert (_output(late), _output(late, "stderr")) == (b"one\nthree\n", b"two\n")
    assert late[-2]["event"]["end"]["exitCode"] == 5


def test_t21_replay_begins_where_the_client_stopped(agent: PlainAgent, client: Client) -> None:
    """T21: the offset counts bytes over all streams; the start event says where the output begins."""
    pid = _disconnected(agent, "printf 0123456789; read line; printf abc", b"0123456789")
    _go_on(agent, pid)
    messages = _connect(client, pid, offset=7)
    assert messages[0]["event"]["start"] == {"pid": pid, "offset": 7}
    assert _output(messages) == b"789abc"
    assert _output(_connect(client, pid, offset=13)) == b""
    assert _connect(client, pid, offset=99)[0]["event"]["start"]["offset"] == 13


def test_connect_without_an_offset_replays_nothing(agent: PlainAgent, client: Client) -> None:
    """agent-protocol 2.2: what E2B clients expect."""
    pid = _disconnected(agent, "echo before; read line; echo after", b"before")
    follower = Running(client.frames("/process.Process/Connect", {"process": {"pid": pid}}))
    _go_on(agent, pid)
    assert follower.wait().stdout == b"after\n"


def test_t21_long_output_keeps_its_head_and_tail_and_tells_the_gap(agent: PlainAgent, client: Client) -> None:
    """T21: 1 MiB is kept; what is missing is told where it is missing."""
    ran = client.run("seq 1 1000000")
    messages = _connect(client, ran.pid, offset=0)
    kept = _output(messages)
    gaps = [message["event"]["skipped"]["bytes"] for message in messages if "skipped" in message.get("event", {})]
    assert len(gaps) == 1
    assert len(kept) + gaps[0] == len(ran.stdout)
    assert KEPT_BYTES * 0.9 < len(kept) <= KEPT_BYTES * 1.1
    head = next(size for size in range(len(kept), 0, -4096) if ran.stdout.startswith(kept[:size]))
    assert ran.stdout.endswith(kept[head + 4096 :])


def test_t21_terminal_is_replayed(agent: PlainAgent, client: Client) -> None:
    """T21: a session on a terminal is found as it was left."""
    with agent.client() as other:
        running = other.start("stty -echo; echo shown; read line; exit 3", more={"pty": {}})
        running.until(b"shown")
    with agent.client() as other:
        data = base64.b64encode(b"x\n").decode()
        other.rpc("/process.Process/SendInput", {"process": {"pid": running.ran.pid}, "input": {"pty": data}})
    messages = _connect(client, running.ran.pid, offset=0)
    assert b"shown" in _output(messages, "pty")
    assert messages[-2]["event"]["end"]["exitCode"] == 3


def test_negative_offset_is_refused(client: Client) -> None:
    """An offset is a position."""
    ran = client.run("true")
    assert _connect(client, ran.pid, offset=-1)[-1]["error"]["code"] == "invalid_argument"


def test_kept_output_of_many_commands_is_bounded(fresh_agent: PlainAgent) -> None:
    """16 MiB in all: those that ended first lose theirs; small pieces of two streams count for what they cost."""
    with fresh_agent.client() as client:
        first = client.run("head -c 900000 /dev/zero").pid
        before = peak_kb(fresh_agent.process.pid)
        for _ in range(40):
            client.run("head -c 2000000 /dev/zero")
        assert peak_kb(fresh_agent.process.pid) - before < 40_000
        assert _connect(client, first, offset=0)[1]["event"] == {"skipped": {"bytes": 900000}}
        ran = client.run("i=0; while [ $i -lt 20000 ]; do echo a; echo b >&2; i=$((i+1)); done")
        assert peak_kb(fresh_agent.process.pid) - before < 40_000
        messages = _connect(client, ran.pid, offset=0)
        assert _output(messages).count(b"a") > 1000
