"""What the agent answers keeps to the messages that schemas/agent declares."""

from __future__ import annotations

import json

import pytest

from cloche_agentd._gen import messages, wire
from tests.packages.agentd.plain_agent import Client, Json


def test_process_frames_are_declared(client: Client) -> None:
    """schemas/agent/process.json."""
    start = {"process": {"cmd": "/bin/sh", "args": ["-c", "echo a; echo b >&2; exit 3"]}, "tag": "t"}
    messages.check("StartRequest", start)
    seen = [message for flags, message in client.frames(wire.PROCESS_START, start) if not flags]
    assert len(seen) >= 4
    for message in seen:
        messages.check("ProcessMessage", message)
        _nothing_more("ProcessEvent", message["event"])
        _nothing_more("EndEvent", message["event"].get("end", {}))
    messages.check("ProcessListResponse", client.rpc(wire.PROCESS_LIST, {}).value)


def test_file_answers_are_declared(client: Client) -> None:
    """schemas/agent/filesystem.json."""
    client.put("listed", b"1")
    listing = client.rpc(wire.FILESYSTEM_LIST_DIR, {"path": ".", "depth": 1, "limit": 5}).value
    messages.check("ListDirResponse", listing)
    _nothing_more("ListDirResponse", listing)
    entry = client.rpc(wire.FILESYSTEM_STAT, {"path": "listed"}).value
    messages.check("EntryResponse", entry)
    _nothing_more("Entry", entry["entry"])


def test_execution_lines_are_declared(client: Client) -> None:
    """schemas/agent/interpreter.json."""
    request = {"code": "print(1)\nopen('f', 'w').close()\ndisplay(2)\n1/0", "timeout_ms": 5000, "max_results": 1}
    messages.check("ExecuteRequest", request)
    response = client.call("POST", wire.INTERPRETER_EXECUTE, json.dumps(request).encode())
    lines = [json.loads(line) for line in response.body.splitlines()]
    assert [line["type"] for line in lines] == [
        "number_of_executions",
        "stdout",
        "result",
        "error",
        "end_of_execution",
    ]
    for line in lines:
        messages.check("ExecuteLine", line)
        _nothing_more("ExecuteLine", line)
    context = client.call("POST", wire.INTERPRETER_CREATE_CONTEXT, b"{}").value
    messages.check("Context", context)
    client.call("DELETE", f"{wire.ROUTE_CONTEXTS}/{context['id']}")


def test_info_is_declared(client: Client) -> None:
    """schemas/agent/service.json."""
    info = client.call("GET", wire.ROUTE_INFO).value
    messages.check("AgentInfo", info)
    _nothing_more("AgentInfo", info)


def _nothing_more(message: str, value: Json) -> None:
    assert set(value) - set(messages.FIELDS[message]) == set()


@pytest.mark.parametrize("field", [name for name in messages.FIELDS["ExecuteRequest"] if name != "language"])
def test_requests_are_held_to_what_is_declared(client: Client, field: str) -> None:
    """schemas/agent/interpreter.json: type and bounds of each field of /execute, by the generated table."""
    kind, _required, least, most, *_ = messages.FIELDS["ExecuteRequest"][field]
    wrong: list[object] = [{"string": 5, "integer": "x", "object": "x"}[kind]]
    if kind == "integer":
        wrong += [] if least is None else [least - 1]
        wrong += [] if most is None else [most + 1]
    if kind == "object" and most is not None:
        wrong.append({f"N{number}": "" for number in range(most + 1)})
    for value in wrong:
        request = {"code": "1", field: value}
        reply = client.call("POST", wire.INTERPRETER_EXECUTE, json.dumps(request).encode())
        assert reply.status == 400, (field, value)
        assert reply.value["cloche"]["field"] == field
