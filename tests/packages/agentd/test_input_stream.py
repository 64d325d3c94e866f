"""Input as a stream: process.Process/StreamInput."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator

from tests.packages.agentd.plain_agent import Client, Json, PlainAgent

METHOD = "/process.Process/StreamInput"


def _frame(message: Json) -> bytes:
    payload = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(payload)) + payload


def _start(pid: int) -> bytes:
    return _frame({"start": {"process": {"pid": pid}}})


def _data(data: bytes, kind: str = "stdin") -> bytes:
    return _frame({"data": {"input": {kind: base64.b64encode(data).decode()}}})


def _answer(client: Client, pieces: Iterable[bytes], **headers: str) -> list[Json]:
    """Stream these pieces, each as a chunk of its own; return the messages of the answer."""
    fields = {"x-access-token": "test-token", "content-type": "application/connect+json"}
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    client.connection.request("POST", METHOD, iter(pieces), fields, encode_chunked=True)
    response = client.connection.getresponse()
    body = response.read()
    found: list[Json] = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        found.append(json.loads(body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def test_streamed_input_arrives_while_it_is_streamed(agent: PlainAgent, client: Client) -> None:
    """agent-protocol 2.2: start names the process, each message is written at once, the answer is one {}."""
    running = client.start("while read line; do echo got $line; done", more={"stdin": True})

    def pieces() -> Iterator[bytes]:
        yield _start(running.ran.pid)
        yield _data(b"one\n")
        running.until(b"got one\n")
        yield _frame({"keepalive": {}})
        two = _data(b"two\n")
        yield two[:7]
        yield two[7:]
        running.until(b"got two\n")

    with agent.client() as other:
        assert _answer(other, pieces()) == [{}, {}]
        other.rpc("/process.Process/CloseStdin", {"process": {"pid": running.ran.pid}})
    assert running.wait().stdout == b"got one\ngot two\n"


def test_streamed_input_waits_for_a_process_that_reads_slowly(agent: PlainAgent, client: Client) -> None:
    """More than may wait in the queue is held back instead of refused, and every byte arrives."""
    running = client.start("sleep 0.3; sha256sum; wc -c </dev/null", more={"stdin": True})
    block = bytes(range(256)) * 4096
    with agent.client() as other:
        assert _answer(other, [_start(running.ran.pid), *[_data(block)] * 12, _data(block * 6)]) == [{}, {}]
        other.rpc("/process.Process/CloseStdin", {"process": {"pid": running.ran.pid}})
    assert running.wait().stdout.split()[0].decode() == hashlib.sha256(block * 18).hexdigest()


def test_streamed_input_to_a_terminal(agent: PlainAgent, client: Client) -> None:
    """pty.stream_input of E2B clients."""
    running = client.start("stty -echo; echo ready; read line; echo got $line", more={"pty": {}})
    running.until(b"ready")
    with agent.client() as other:
        assert _answer(other, [_start(running.ran.pid), _data(b"it\n", "pty")]) == [{}, {}]
    assert b"got it" in running.wait().pty


def test_stream_past_its_timeout_ends_with_deadline_exceeded(agent: PlainAgent, client: Client) -> None:
    """connect-timeout-ms bounds the stream; the process runs on."""
    running = client.start("sleep 20 & echo ready; wait", more={"stdin": True})
    running.until(b"ready")
    block = bytes(1024 * 1024)
    with agent.client() as other:
        found = _answer(other, [_start(running.ran.pid), *[_data(block)] * 4], connect_timeout_ms="300")
        assert found[-1]["error"]["code"] == "deadline_exceeded"
        listed = other.rpc("/process.Process/List", {}).value["processes"]
        assert running.ran.pid in [entry["pid"] for entry in listed]
        other.rpc("/process.Process/SendSignal", {"process": {"pid": running.ran.pid}, "signal": "SIGNAL_SIGKILL"})
    running.wait()


def test_process_that_ends_while_input_waits_ends_the_stream(agent: PlainAgent, client: Client) -> None:
    """Nobody reads any more: the rest is refused and nothing hangs."""
    running = client.start("sleep 0.3", more={"stdin": True})
    block = bytes(1024 * 1024)
    with agent.client() as other:
        found = _answer(other, [_start(running.ran.pid), *[_data(block)] * 6])
        assert found[-1]["error"]["code"] == "failed_precondition"
    assert running.wait().end["stopReason"] == "exit"


def test_stream_without_a_process_is_refused(agent: PlainAgent) -> None:
    """The first message names it; an unknown one is not_found; half a message is an error."""
    with agent.client() as client:
        assert _answer(client, [_data(b"x")])[-1]["error"]["code"] == "invalid_argument"
    with agent.client() as client:
        assert _answer(client, [_start(99999999)])[-1]["error"]["code"] == "not_found"
    with agent.client() as client:
        assert _answer(client, [_start(1)[:9]])[-1]["error"]["code"] == "invalid_argument"
