"""Both ends of the agent protocol come from the same schemas: the host's client and the agent's field tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from cloche_agentd._gen import errors as agent_errors
from cloche_agentd._gen import messages, wire
from cloche_codegen.examples import documents_with_examples
from cloche_codegen.load import load
from cloche_contract import agent
from cloche_contract.agent import ExecuteRequest, ListDirRequest, ProcessConfig, StartRequest
from cloche_contract.client import AgentClient
from cloche_contract.errors import ERRORS
from tests.contract.sets import ROOT

EXAMPLES = [
    (name, example)
    for doc, name, node in documents_with_examples(load(ROOT / "schemas"))
    if doc.path.startswith("agent/")
    for example in node["examples"]
]


class Transport:
    """Answers from a script and keeps what was asked."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.asked: list[tuple[str, Mapping[str, Any], Mapping[str, str]]] = []
        self._answers = answers

    async def unary(self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> Mapping[str, Any]:
        self.asked.append((path, message, headers))
        return self._answers[0]

    async def stream(
        self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        self.asked.append((path, message, headers))
        for answer in self._answers:
            yield answer


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_both_ends_accept_every_example(name: str, example: Any) -> None:
    messages.check(name, example)
    model = getattr(agent, name)
    assert model.model_validate(example).model_dump(mode="json", by_alias=True, exclude_unset=True) == example


@pytest.mark.parametrize(
    ("name", "value", "field", "rule"),
    [
        ("StartRequest", {}, "process", "required"),
        ("StartRequest", {"process": {"cmd": ""}}, "process.cmd", "minimum"),
        ("StartRequest", {"process": {"cmd": "a", "args": [1]}}, "process.args", "type"),
        ("StartRequest", {"process": {"cmd": "a", "envs": {"A": 1}}}, "process.envs", "type"),
        ("ListDirRequest", {"path": "/", "depth": True}, "depth", "type"),
        ("ListDirRequest", {"path": "/", "depth": 33}, "depth", "maximum"),
        ("SendSignalRequest", {"process": {}, "signal": "SIGKILL"}, "signal", "enum"),
        ("ExecuteRequest", {"code": 7}, "code", "type"),
        ("ExecuteRequest", [], "ExecuteRequest", "type"),
    ],
)
def test_agent_refuses_what_the_schema_refuses(name: str, value: Any, field: str, rule: str) -> None:
    with pytest.raises(messages.FieldError) as caught:
        messages.check(name, value)
    assert (caught.value.field, caught.value.rule) == (field, rule)


def test_agent_ignores_fields_of_a_newer_host() -> None:
    """Agent-protocol 2.1: unknown fields are ignored."""
    messages.check("StatRequest", {"path": "/", "newer": {"a": 1}})


def test_agent_takes_null_for_nothing() -> None:
    """E2B clients send null for what they leave out."""
    messages.check("ExecuteRequest", {"code": "1", "context_id": None, "language": None, "env_vars": None})


async def test_client_sends_what_was_given_and_reads_what_it_knows() -> None:
    transport = Transport({"entries": [{"name": "a", "path": "/a", "newer": 1}], "total": 1, "newer": 2})
    client = AgentClient(transport)
    answer = await client.filesystem_list_dir(ListDirRequest(path="/", limit=5), headers={"Cloche-Renew": "60"})
    assert transport.asked == [(wire.FILESYSTEM_LIST_DIR, {"path": "/", "limit": 5}, {"Cloche-Renew": "60"})]
    assert answer.total == 1
    assert isinstance(answer.entries, list)
    assert answer.entries[0].name == "a"


async def test_client_streams_messages_as_they_come() -> None:
    transport = Transport({"event": {"start": {"pid": 7}}}, {"event": {"end": {"exited": True, "stopReason": "exit"}}})
    request = StartRequest(process=ProcessConfig(cmd="/bin/sh", args=["-c", "true"]))
    found = [message.event async for message in AgentClient(transport).process_start(request)]
    assert [event.model_fields_set for event in found] == [{"start"}, {"end"}]
    assert transport.asked[0][0] == "/process.Process/Start"
    assert transport.asked[0][1] == {"process": {"cmd": "/bin/sh", "args": ["-c", "true"]}}


async def test_client_streams_lines_of_an_execution() -> None:
    transport = Transport({"type": "stdout", "text": "1\n"}, {"type": "end_of_execution", "exit_code": 0})
    lines = [line async for line in AgentClient(transport).interpreter_execute(ExecuteRequest(code="print(1)"))]
    assert [line.type for line in lines] == ["stdout", "end_of_execution"]


def test_agent_knows_its_errors_as_the_catalogue_does() -> None:
    for code, spec in agent_errors.ERRORS.items():
        kind = ERRORS[code]
        assert (spec.connect, spec.http, spec.message) == (kind.connect_code, kind.http_status, kind.message)


def test_agent_side_needs_nothing_but_the_standard_library() -> None:
    for module in (agent_errors, messages, wire):
        text = (ROOT / "packages/agentd/src/cloche_agentd/_gen" / f"{module.__name__.rsplit('.', 1)[-1]}.py").read_text(
            encoding="utf-8"
        )
        imports = [line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))]
        assert set(imports) <= {"re", "typing"}


def test_paths_and_headers_are_the_same_on_both_sides() -> None:
    assert {name: getattr(agent, name) for name in wire.__all__} == {name: getattr(wire, name) for name in wire.__all__}
