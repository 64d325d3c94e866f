"""The agent after much use: no descriptor, no process and no memory is left behind."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

from tests.packages.agentd.plain_agent import TOKEN, PlainAgent


def test_much_use_leaves_no_descriptor_and_no_process(fresh_agent: PlainAgent, scale: int, seed: int) -> None:
    """Commands, timeouts, disconnects, code and files in random order; afterwards everything is as before."""
    chooser = random.Random(seed)
    with fresh_agent.client() as client:
        client.execute("1")
        client.run("true")
    before = _state(fresh_agent)
    for _ in range(60 * scale):
        with fresh_agent.client() as client:
            match chooser.randrange(8):
                case 0:
                    client.run("echo x; sleep 0.01 & echo y >&2")
                case 1:
                    client.run("sleep 5 & sleep 5", connect_timeout_ms="20")
                case 2:
                    client.start("yes", cloche_kill_on_disconnect="1").until(b"y")
                case 3:
                    client.start("cat", more={"stdin": True}, connect_timeout_ms="50")
                case 4:
                    client.execute("import os; os.system('true'); print(1); display(2)")
                case 5:
                    client.execute("echo 1; sleep 5", language="shell", timeout_ms=30)
                case 6:
                    client.put("f", chooser.randbytes(10000))
                    client.get("f")
                case _:
                    client.execute("while True: pass", timeout_ms=20)

    def is_as_before() -> bool:
        keeper, init, programs = _state(fresh_agent)
        return keeper <= before[0] and init <= before[1] and programs == before[2]

    assert _settle(fresh_agent, is_as_before), (before, _state(fresh_agent))


def test_t37_ten_thousand_commands_end_where_they_began(fresh_agent: PlainAgent, scale: int) -> None:
    """T37, SandboxFusion#67: descriptors, threads and temporary files; memory stays flat after a fifth of the calls.

    A tenth of them at scale 1. Every tenth call is code, in the interpreter and in a program per call.
    """
    calls = min(10_000, 1_000 * scale)
    with fresh_agent.client() as client:
        client.execute("1")
        client.execute("true", language="shell")
        before = _Use(fresh_agent)
        settled = before
        for number in range(calls):
            if number == calls // 5:
                settled = _Use(fresh_agent)
            if number % 10:
                assert client.run("echo out; echo err >&2").end["exitCode"] == 0
            else:
                assert client.execute(f"x = {number}\nprint(x)\nx").results[0]["text"] == str(number)
                assert client.execute("echo out", language="shell").stdout == "out\n"
        after = _Use(fresh_agent)
    assert after.counts == before.counts
    grown_kb = {name: after.memory_kb[name] - settled.memory_kb[name] for name in after.memory_kb}
    assert all(grown < 2048 for grown in grown_kb.values()), grown_kb


def test_t37_contexts_come_and_go_without_a_trace(fresh_agent: PlainAgent, scale: int) -> None:
    """T37: each with an execution, an interrupt of nothing, and its removal."""
    with fresh_agent.client() as client:
        client.execute("1")
        before = _Use(fresh_agent)
        for _ in range(40 * scale):
            identity = client.call("POST", "/contexts", b"{}").value["id"]
            assert client.execute("1", context_id=identity).results[0]["text"] == "1"
            assert client.call("DELETE", f"/contexts/{identity}").status == 204
        after = _Use(fresh_agent)
    assert after.counts == before.counts


def test_random_bytes_do_not_end_the_agent(fresh_agent: PlainAgent, scale: int, seed: int) -> None:
    """Noise, cut requests and damaged ones: the agent answers the next client, and holds no connection."""
    chooser = random.Random(seed)
    valid = (
        f"POST /process.Process/List HTTP/1.1\r\nX-Access-Token: {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}"
        f"POST /execute HTTP/1.1\r\nX-Access-Token: {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
        '1a\r\n{"code": "1", "language": ""}\r\n0\r\n\r\n'
    ).encode()
    with fresh_agent.client() as client:
        client.call("GET", "/health")
    before = _descriptors(fresh_agent.process.pid)
    for _ in range(150 * scale):
        data = bytearray(valid[: chooser.randint(0, len(valid))])
        for _ in range(chooser.randint(0, 4)):
            if data:
                data[chooser.randrange(len(data))] = chooser.randrange(256)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(10)
            peer.connect(fresh_agent.socket_path)
            peer.sendall(bytes(data))
            if chooser.random() < 0.5:
                peer.shutdown(socket.SHUT_WR)
    with fresh_agent.client() as client:
        assert client.execute("5").results[0]["text"] == "5"
    assert _settle(fresh_agent, lambda: _descriptors(fresh_agent.process.pid) <= before + 5)


class _Use:
    """What the agent's processes hold: keeper, init and the default interpreter."""

    def __init__(self, agent: PlainAgent) -> None:
        init = _children(agent.process.pid)[0]
        (context,) = _children(init)
        self.pids = {"keeper": agent.process.pid, "init": init, "context": context}
        self.memory_kb = {name: _status(pid, "VmRSS") for name, pid in self.pids.items()}
        self.counts = {
            **{f"descriptors of {name}": _descriptors(pid) for name, pid in self.pids.items()},
            **{f"threads of {name}": _status(pid, "Threads") for name, pid in self.pids.items()},
            "files in the home folder": len(os.listdir(agent.home)),
            "files in the temporary folder": len(os.listdir(agent.folder / "tmp")),
            **self.pids,
        }


def _status(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith(field + ":"))


def _state(agent: PlainAgent) -> tuple[int, int, list[str]]:
    init = _children(agent.process.pid)[0]
    programs = sorted(_name(pid) for pid in _children(init))
    return _descriptors(agent.process.pid), _descriptors(init), programs


def _settle(agent: PlainAgent, done: Callable[[], bool]) -> bool:
    """Wait until `done()` holds, asking the agent something meanwhile."""
    deadline = time.monotonic() + 15
    while not done():
        if time.monotonic() > deadline:
            return False
        with agent.client() as client:
            client.run("sleep 0.05")
    return True


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
