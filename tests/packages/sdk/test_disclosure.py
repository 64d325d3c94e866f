"""Nothing confidential of a provider, an agent or a failure reaches a result or the log, through any of the tools.

Markers stand in every field of every record, in the text of every error, in addresses and in what an agent answers.
Source: issue 4, part 5; seed 000, lines 40 to 48 and 86 to 96; checklist 317.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.errors import (
    AuthenticationFailed,
    ClocheError,
    PermissionDenied,
    ProviderFailed,
    ProviderUnavailable,
    SandboxNotFound,
)
from cloche_contract.registry import published_set
from cloche_sdk import Doors, SandboxSession, load_settings
from cloche_sdk.toolset import SandboxToolSet
from cloche_testkit.markers import MARKERS, leaked_markers
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.script import Operation
from cloche_testkit.scripted import installed_plane
from tests.packages.sdk.stub_agent import Answer, Peer, Request, send_json, stub
from tests.packages.sdk.tools import RecordedCall, dispatched

MARKER = "marker-of-a-message"
ADDRESS = "https://marker-address.invalid/v2/sandboxes?key=marker-key"
SECRETS = (MARKER, ADDRESS, "marker-address", "marker-key", "Traceback", "site-packages")
TASK = "0123456789abcdef0123456789abcdef"
CALLS: Mapping[str, Mapping[str, Any]] = {
    "create_sandbox": {"envs": {"PASSWORD": "marker-envs"}},
    "list_sandboxes": {},
    "get_sandbox": {"sandbox_id": "sb1"},
    "set_sandbox_timeout": {"timeout": 60, "sandbox_id": "sb1"},
    "run_code": {"code": "1", "sandbox_id": "sb1"},
    "run_command": {"command": "true", "sandbox_id": "sb1"},
    "read_file": {"path": "/a", "sandbox_id": "sb1"},
    "write_file": {"path": "/a", "content": "", "sandbox_id": "sb1"},
    "list_files": {"sandbox_id": "sb1"},
    "kill_sandbox": {"sandbox_id": "sb1"},
    "start_task": {"command": "true", "sandbox_id": "sb1"},
    "get_task": {"sandbox_id": "sb1", "task_id": TASK},
    "cancel_task": {"sandbox_id": "sb1", "task_id": TASK},
    "upload_file": {"path": "/a", "content_base64": "", "sandbox_id": "sb1"},
    "download_file": {"path": "/a", "sandbox_id": "sb1"},
}
OPERATIONS: tuple[Operation, ...] = ("create", "get", "list", "set_timeout", "kill", "connect")


def failure(kind: str) -> Exception:
    """An error as a careless provider raises it."""
    cause = RuntimeError(f"GET {ADDRESS} answered: {MARKER}")
    if kind == "foreign":
        return cause
    kinds: Mapping[str, Callable[[], ClocheError]] = {
        "failed": lambda: ProviderFailed(http_status=500),
        "unavailable": ProviderUnavailable,
        "refused": lambda: AuthenticationFailed(http_status=401),
        "forbidden": lambda: PermissionDenied(http_status=403),
        "missing": SandboxNotFound,
    }
    error = kinds[kind]()
    error.__cause__ = cause
    return error


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Every message with every field, as a formatter of an operator may write it."""
    return "\n".join(f"{record.getMessage()} {record.__dict__!r}" for record in caplog.records)


@pytest.fixture
def marked(caplog: pytest.LogCaptureFixture) -> Iterator[ScriptedPlane]:
    caplog.set_level(logging.INFO)
    with installed_plane(ScriptedPlane(marked=True)) as plane:
        yield plane


def opened(doors: Doors | None = None) -> SandboxSession:
    return SandboxSession(doors or Doors(settings=load_settings({}).override(provider="scripted"), environ={}))


def test_every_tool_is_called_here() -> None:
    assert sorted(CALLS) == sorted(published_set("sandbox").tool_names)


@pytest.mark.parametrize("tool", CALLS)
async def test_no_field_of_a_record_is_told(tool: str, marked: ScriptedPlane, caplog: pytest.LogCaptureFixture) -> None:
    """Lines 40 to 48; the address of a sandbox is the one exception, in the answer of create_sandbox (D3)."""
    async with opened() as session:
        made = await session.create()
        arguments = dict(CALLS[tool])
        if "sandbox_id" in arguments:
            arguments["sandbox_id"] = made.sandbox_id
        told = await dispatched(SandboxToolSet(session), tool, arguments, RecordedCall())
    allowed = ["url"] if tool == "create_sandbox" else []
    assert leaked_markers(json.dumps(told.structured), allowed=allowed) == []
    assert leaked_markers(logged(caplog)) == []
    assert "marker" in MARKERS["envs"]


@pytest.mark.parametrize("kind", ["foreign", "failed", "unavailable", "refused", "forbidden", "missing"])
@pytest.mark.parametrize("tool", CALLS)
async def test_no_text_of_a_failure_is_told(
    tool: str, kind: str, marked: ScriptedPlane, caplog: pytest.LogCaptureFixture
) -> None:
    """Lines 86 to 94, 317: a fixed category, a status, a static sentence; the same for the log."""
    async with opened() as session:
        arguments = dict(CALLS[tool])
        if "sandbox_id" in arguments:
            arguments["sandbox_id"] = (await session.create()).sandbox_id
        for operation in OPERATIONS:
            marked.script.fail_next(operation, failure(kind))
        told = await dispatched(SandboxToolSet(session), tool, arguments, RecordedCall())
    # Whether a task began that was never answered is not known, which is no error.
    assert told.is_error or told.structured["state"] == "unknown"
    text = json.dumps(told.structured)
    assert [secret for secret in SECRETS if secret in text] == []
    assert not told.is_error or told.structured["suggestion"]
    assert [secret for secret in SECRETS if secret in logged(caplog)] == []


def answers() -> Mapping[str, Answer]:
    """What a broken or hostile agent says."""
    body = {"code": "internal", "message": f"{MARKER} {ADDRESS}", "details": [{"type": MARKER, "value": MARKER}]}

    async def error(peer: Peer, _request: Request) -> None:
        await send_json(peer, 500, body)

    async def known_error(peer: Peer, _request: Request) -> None:
        extra = {"code": "file_not_found", "path": MARKER, "field": MARKER, "rule": MARKER}
        await send_json(peer, 404, {**body, "cloche": extra})

    async def unknown_error(peer: Peer, _request: Request) -> None:
        await send_json(peer, 418, {**body, "cloche": {"code": MARKER, "limit": MARKER}})

    async def page(peer: Peer, _request: Request) -> None:
        text = f"<html>{MARKER} {ADDRESS}</html>".encode()
        head = f"HTTP/1.1 502 {MARKER}\r\ncontent-type: text/html\r\nlocation: {ADDRESS}\r\n"
        await peer.send(f"{head}content-length: {len(text)}\r\n\r\n".encode() + text)

    async def nonsense(peer: Peer, _request: Request) -> None:
        await send_json(peer, 200, {MARKER: ADDRESS})

    return {f.__name__: f for f in (error, known_error, unknown_error, page, nonsense)}


@pytest.mark.parametrize("answer", answers())
async def test_no_text_of_an_agent_is_told(answer: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines 90 to 94 and 317, for every tool that asks an agent."""
    caplog.set_level(logging.INFO)
    told: list[str] = []
    async with stub(tmp_path, answers()[answer]) as found, opened(found.doors) as session:
        await session.create()
        for tool in ("run_code", "run_command", "read_file", "write_file", "list_files", "start_task", "get_task",
                     "cancel_task", "upload_file", "download_file"):  # fmt: skip
            if answer == "nonsense" and tool in ("read_file", "download_file"):
                continue  # there it is the content of the file
            outcome = await dispatched(SandboxToolSet(session), tool, CALLS[tool], RecordedCall())
            told.append(json.dumps(outcome.structured))
    assert [secret for secret in SECRETS if any(secret in text for text in told)] == []
    assert [secret for secret in SECRETS if secret in logged(caplog)] == []
