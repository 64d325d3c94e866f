"""The agent after much use: no descriptor, no process and no memory is left behind."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import TOKEN, PlainAgent


@pytest.mark.soak
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


@pytest.mark.soak
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
