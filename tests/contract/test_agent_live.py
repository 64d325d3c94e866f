"""The agent says on the wire what the schemas declare, and nothing else: every answer fits its model strictly."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from cloche_contract import agent
from cloche_contract.agent import (
    CreateContextRequest,
    ExecuteRequest,
    ListDirRequest,
    MakeDirRequest,
    MoveRequest,
    ProcessConfig,
    ProcessListRequest,
    RemoveRequest,
    StartRequest,
    StartTaskRequest,
    StatRequest,
    TaskListRequest,
    TaskRequest,
)
from cloche_contract.client import AgentClient
from cloche_contract.errors import ERRORS
from cloche_contract.wire import connect, ndjson
from cloche_testkit.unsandboxed_agent import UnsandboxedAgent

STRICT = {
    agent.FILESYSTEM_STAT: agent.EntryResponse,
    agent.FILESYSTEM_LIST_DIR: agent.ListDirResponse,
    agent.FILESYSTEM_MAKE_DIR: agent.EntryResponse,
    agent.FILESYSTEM_MOVE: agent.EntryResponse,
    agent.FILESYSTEM_REMOVE: agent.RemoveResponse,
    agent.PROCESS_LIST: agent.ProcessListResponse,
    agent.PROCESS_START: agent.ProcessMessage,
    agent.INTERPRETER_EXECUTE: agent.ExecuteLine,
    agent.TASKS_START: agent.TaskSummary,
    agent.TASKS_GET: agent.TaskReport,
    agent.TASKS_CANCEL: agent.TaskReport,
    agent.TASKS_LIST: agent.TaskListResponse,
    agent.INTERPRETER_CREATE_CONTEXT: agent.Context,
}


class Refused(Exception):
    """The agent answered with an error."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(str(body))
        self.body = body


class StrictTransport:
    """Carries messages over HTTP and refuses every key that the schemas do not declare."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def unary(self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> Mapping[str, Any]:
        answer = await self._client.post(path, json=message, headers=dict(headers))
        body: dict[str, Any] = answer.json()
        if answer.status_code >= 400:
            raise Refused(body)
        STRICT[path].model_validate(body)
        return body

    async def stream(
        self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        lines = path == agent.INTERPRETER_EXECUTE
        decoder = ndjson.LineDecoder() if lines else connect.StreamDecoder()
        kind = connect.UNARY_CONTENT_TYPE if lines else connect.STREAM_CONTENT_TYPE
        body = ndjson.encode_line(message) if lines else connect.encode_message(message)
        sent = {"Content-Type": kind, **headers}
        async with self._client.stream("POST", path, content=body, headers=sent) as answer:
            assert answer.status_code == 200
            async for chunk in answer.aiter_raw():
                for found in decoder.feed(chunk):
                    if set(found) == {"error"}:
                        raise Refused(found["error"])
                    STRICT[path].model_validate(found)
                    yield found


@pytest.fixture
async def client() -> AsyncGenerator[AgentClient]:
    running = await UnsandboxedAgent.start("live", {})
    try:
        endpoint = running.endpoint
        transport = httpx.AsyncHTTPTransport(uds=endpoint.socket_path)
        headers = {agent.HEADER_ACCESS_TOKEN: endpoint.access_token.get_secret_value()}
        async with httpx.AsyncClient(transport=transport, base_url="http://agent", headers=headers, timeout=30) as http:
            yield AgentClient(StrictTransport(http))
    finally:
        await running.stop()


def _shell(command: str) -> StartRequest:
    return StartRequest(process=ProcessConfig(cmd="/bin/sh", args=["-c", command]), tag="live")


async def _home(client: AgentClient) -> str:
    """The home of the agent's user, as the agent knows it."""
    return (await client.filesystem_stat(StatRequest(path="."))).entry.path


async def test_processes_answer_with_declared_events_only(client: AgentClient) -> None:
    events = [message.event async for message in client.process_start(_shell("echo out; echo err >&2; exit 3"))]
    assert [sorted(event.model_fields_set) for event in (events[0], events[-1])] == [["start"], ["end"]]
    data = [event.data for event in events if isinstance(event.data, agent.DataEvent)]
    assert b"out\n" in b"".join(base64.b64decode(each.stdout) for each in data if isinstance(each.stdout, str))
    end = events[-1].end
    assert isinstance(end, agent.EndEvent)
    assert (end.exitCode, end.stopReason) == (3, "exit")
    async for message in client.process_start(_shell("read line")):
        assert isinstance(message.event, agent.ProcessEvent)
        break
    assert (await client.process_list(ProcessListRequest())).model_fields_set <= {"processes"}


async def test_tasks_answer_with_declared_reports_only(client: AgentClient) -> None:
    wanted = StartTaskRequest(task_id="0" * 32, command="echo out; read line < gate", timeout=60)
    async for _ in client.process_start(_shell("mkfifo gate")):
        pass
    assert (await client.tasks_start(wanted)).state == "running"
    report = await client.tasks_get(TaskRequest(task_id="0" * 32, limit=100, wait_ms=10_000))
    assert base64.b64decode(report.stdout.data) == b"out\n"
    assert (await client.tasks_cancel(TaskRequest(task_id="0" * 32))).task.stop_reason == "cancelled"
    assert [task.state for task in (await client.tasks_list(TaskListRequest())).tasks] == ["cancelled"]


async def test_files_answer_with_declared_entries_only(client: AgentClient) -> None:
    home = await _home(client)
    made = await client.filesystem_make_dir(MakeDirRequest(path=f"{home}/one"))
    assert made.entry.name == "one"
    async for _ in client.process_start(_shell(f"cd {home} && echo hello > one/a.txt && ln -s a.txt one/link")):
        pass
    listed = await client.filesystem_list_dir(ListDirRequest(path=f"{home}/one", depth=1, limit=1))
    assert listed.total == 2
    assert isinstance(listed.entries, list)
    assert [entry.name for entry in listed.entries] == ["a.txt"]
    assert listed.entries[0].size == "6"
    moved = await client.filesystem_move(MoveRequest(source=f"{home}/one", destination=f"{home}/two"))
    assert moved.entry.path == f"{home}/two"
    await client.filesystem_remove(RemoveRequest(path=f"{home}/two"))
    with pytest.raises(Refused) as caught:
        await client.filesystem_stat(StatRequest(path=f"{home}/two"))
    found = connect.catalogue_error(caught.value.body)
    assert found is not None
    assert found["code"] == "file_not_found"


async def test_executions_answer_with_declared_lines_only(client: AgentClient) -> None:
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('made.txt', 'w').write('x')\n6 * 7"
    lines = [line async for line in client.interpreter_execute(ExecuteRequest(code=code, timeout_ms=20000))]
    kinds = [line.type for line in lines if line.type != "keepalive"]
    assert kinds[-1] == "end_of_execution"
    assert {"stdout", "stderr", "result"} <= set(kinds)
    end = lines[-1]
    assert (end.exit_code, end.stop_reason, end.state_kept) == (0, "exit", True)
    assert isinstance(end.output_files, list)
    assert [each.name for each in end.output_files] == ["made.txt"]
    failed = [line async for line in client.interpreter_execute(ExecuteRequest(code="1 / 0"))]
    assert [line.name for line in failed if line.type == "error"] == ["ZeroDivisionError"]
    context = await client.interpreter_create_context(CreateContextRequest(language="python"))
    assert context.language == "python"


RICH = """
class Rich:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/json": {"a": [1]}, "text/html": "<b>a</b>", "application/x-own": "own"}
Rich()
"""


async def test_rich_results_have_declared_forms_only(client: AgentClient) -> None:
    lines = [line async for line in client.interpreter_execute(ExecuteRequest(code=RICH))]
    (result,) = [line for line in lines if line.type == "result"]
    assert result.html == "<b>a</b>"
    assert result.json_ == {"a": [1]}
    assert result.extra == {"application/x-own": "own"}


@pytest.mark.parametrize(
    ("path", "message", "code"),
    [
        (agent.FILESYSTEM_STAT, {"path": "/nothing/here"}, "file_not_found"),
        (agent.FILESYSTEM_LIST_DIR, {"path": 7}, "invalid_argument"),
        (agent.PROCESS_SEND_SIGNAL, {"process": {"pid": 1}, "signal": "SIGNAL_SIGKILL"}, "process_not_found"),
        (agent.INTERPRETER_CREATE_CONTEXT, {"language": "cobol"}, "unsupported_language"),
        (agent.TASKS_GET, {"task_id": "f" * 32}, "task_not_found"),
        (agent.TASKS_START, {"task_id": "f" * 32, "command": "", "timeout": 1}, "invalid_argument"),
    ],
)
async def test_refusals_carry_a_code_of_the_catalogue(
    client: AgentClient, path: str, message: Mapping[str, Any], code: str
) -> None:
    transport: Any = vars(client)["_transport"]
    with pytest.raises(Refused) as caught:
        await transport.unary(path, message, headers={})
    found = connect.catalogue_error(caught.value.body)
    assert found is not None
    assert found["code"] == code
    assert set(found) - {"code"} <= set(ERRORS[code].detail_keys)
