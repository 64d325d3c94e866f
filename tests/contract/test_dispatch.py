"""One call through the kernel: what reaches the handler, what comes back, what never does."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from cloche_contract.errors import NoDefaultSandbox, ProviderUnavailable
from cloche_contract.kernel.dispatch import Outcome, dispatch
from cloche_contract.kernel.registry import UnknownTool, UnknownToolSet, published_set
from cloche_contract.sandbox import GetSandboxInput, KillSandboxInput, KillSandboxOutput, SetSandboxTimeoutInput

SECRET = "hunter2-9f81c3"


class Call:
    """A call that nobody watches."""

    async def report(self, progress: float, message: str) -> None:
        raise AssertionError("nothing reports here")

    def attach_image(self, media_type: str, data: bytes) -> bool:
        raise AssertionError("nothing attaches here")


class Handlers:
    """One handler per way to end."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    async def kill_sandbox(self, request: KillSandboxInput, call: Call) -> KillSandboxOutput:
        self.seen.append(request)
        return KillSandboxOutput(success=True, sandbox_id="sb1")

    async def get_sandbox(self, request: GetSandboxInput, call: Call) -> object:
        raise NoDefaultSandbox

    async def set_sandbox_timeout(self, request: SetSandboxTimeoutInput, call: Call) -> object:
        raise ValueError(SECRET)

    async def list_sandboxes(self, request: object, call: Call) -> object:
        return KillSandboxOutput(success=True, sandbox_id=SECRET)

    async def run_command(self, request: object, call: Call) -> object:
        return KillSandboxOutput.model_validate({"success": True, "sandbox_id": "a", "token": SECRET})

    async def read_file(self, request: object, call: Call) -> object:
        try:
            raise OSError(SECRET)
        except OSError as cause:
            raise ProviderUnavailable(http_status=503) from cause

    async def run_code(self, request: object, call: Call) -> object:
        await anyio.sleep_forever()
        return None


class Session:
    def __init__(self) -> None:
        self.handlers = Handlers()


@pytest.fixture
def session() -> Session:
    return Session()


async def _call(session: Session, tool: str, arguments: Any = None) -> Outcome:
    return await dispatch("sandbox", session, tool, arguments, Call())


async def test_result_of_the_handler_is_the_structured_answer(session: Session) -> None:
    assert await _call(session, "kill_sandbox", {"sandbox_id": "sb1"}) == Outcome(
        {"success": True, "sandbox_id": "sb1"}, False
    )
    assert session.handlers.seen == [KillSandboxInput(sandbox_id="sb1")]


async def test_missing_arguments_are_an_empty_object(session: Session) -> None:
    assert not (await _call(session, "kill_sandbox")).is_error


async def test_refused_arguments_never_reach_the_handler(session: Session) -> None:
    """Seed-000: a tool error before platform calls."""
    outcome = await _call(session, "kill_sandbox", {"sandbox_id": ""})
    assert outcome.is_error
    assert outcome.structured["details"] == {"field": "sandbox_id", "rule": "minLength", "limit": 1}
    assert session.handlers.seen == []


async def test_catalogue_error_becomes_its_envelope(session: Session) -> None:
    """Fault M20: a failure is isError with a stable code."""
    outcome = await _call(session, "get_sandbox")
    assert outcome.is_error
    assert outcome.structured == {
        "error": "This session has no default sandbox.",
        "code": "no_default_sandbox",
        "error_code": "E2008",
        "category": "not_found",
        "suggestion": "Pass sandbox_id. Or call create_sandbox first.",
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("set_sandbox_timeout", {"timeout": 5}, "internal_error"),
        ("list_sandboxes", {}, "output_mismatch"),
        ("run_command", {"command": "ls"}, "internal_error"),
        ("read_file", {"path": "/a"}, "provider_unavailable"),
        ("write_file", {"path": "/a", "content": ""}, "internal_error"),
    ],
    ids=["foreign-exception", "wrong-result", "leaked-field", "cause", "no-handler"],
)
async def test_nothing_foreign_leaves_the_process(
    session: Session, caplog: pytest.LogCaptureFixture, tool: str, arguments: Any, code: str
) -> None:
    """Seed-000: raw messages and tracebacks appear neither in results nor in the log."""
    caplog.set_level(logging.INFO)
    outcome = await _call(session, tool, arguments)
    assert outcome.is_error
    assert outcome.structured["code"] == code
    assert SECRET not in str(outcome.structured)
    assert SECRET not in caplog.text
    assert "Traceback" not in caplog.text


async def test_http_status_is_told_when_there_is_one(session: Session) -> None:
    """Seed-000: an HTTP status when available."""
    outcome = await _call(session, "read_file", {"path": "/a"})
    assert outcome.structured["http_status"] == 503
    assert "details" not in outcome.structured


@pytest.mark.parametrize("tool", ["unknown", "", "__class__", "handlers", "../sandbox"])
async def test_unknown_tool_is_no_result(session: Session, tool: str) -> None:
    with pytest.raises(UnknownTool):
        await _call(session, tool, {})


@pytest.mark.parametrize("name", ["runtime", "../errors", "", "sandbox.json", "a\0b"])
def test_unknown_tool_set_is_typed(name: str) -> None:
    with pytest.raises(UnknownToolSet):
        published_set(name)


async def test_cancellation_passes_through(session: Session) -> None:
    """Style S6."""
    with anyio.move_on_after(0.01) as scope:
        await _call(session, "run_code", {"code": "1"})
    assert scope.cancelled_caught
