"""The serving core behind the official client, in both protocol eras."""

import base64
import json
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import CallToolResult, ImageContent, TextContent

from cloche_contract.errors import ERRORS, BackendUnavailable, ClocheError, SandboxNotFound
from cloche_contract.kernel.toolset import ToolCall
from cloche_contract.registry import ToolFilter, published_set
from cloche_contract.sandbox import KillSandboxInput, RunCommandInput, RunCommandOutput
from tests.contract.serving_session import MODES, ran, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("mode", MODES)]


async def echo(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
    return ran(request.command)


def text_of(result: CallToolResult) -> Any:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return json.loads(block.text)


async def test_the_list_is_the_published_json_in_contract_order(mode: str) -> None:
    published = published_set("sandbox")
    async with serving(mode) as client:
        listed = await client.list_tools()
    assert tuple(tool.name for tool in listed.tools) == published.tool_names
    for tool, expected in zip(listed.tools, published.tools, strict=True):
        assert tool.model_dump(by_alias=True, mode="json", exclude_none=True) == expected
        assert set(expected["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool.title
        assert (tool.output_schema or {})["type"] == "object"


async def test_the_server_says_who_it_is_and_which_contract_it_serves(mode: str) -> None:
    published = published_set("sandbox")
    async with serving(mode) as client:
        info = client.server_info
        assert info is not None
        assert (info.name, info.title) == (published.server_name, published.server_title)
        assert info.version == f"0.1.0+contract.{published.contract_version}"
        capabilities = client.server_capabilities
        assert capabilities.tools is not None
        assert (capabilities.resources, capabilities.prompts, capabilities.completions) == (None, None, None)
        assert client.instructions == ToolFilter().apply(published).instructions


async def test_m12_the_text_of_a_result_is_its_structured_content(mode: str) -> None:
    """mcp-ts-core#19: many clients show the model only the text."""
    async with serving(mode, run_command=echo) as client:
        result = await client.call_tool("run_command", {"command": "é\u2028"})
    assert not result.is_error
    assert result.structured_content == ran("é\u2028").model_dump()
    assert text_of(result) == result.structured_content


async def test_m20_a_failure_is_an_error_with_a_stable_code_for_every_code(mode: str) -> None:
    """code-sandbox-mcp answered failures as successes."""
    for code, kind in ERRORS.items():
        error = kind.__new__(kind)
        ClocheError.__init__(error, {})

        async def fail(request: KillSandboxInput, call: ToolCall, error: ClocheError = error) -> None:
            raise error

        async with serving(mode, kill_sandbox=fail) as client:
            result = await client.call_tool("kill_sandbox", {})
        assert result.is_error, code
        assert text_of(result)["code"] == code


async def test_m11_an_error_is_text_only(mode: str) -> None:
    """Widespread clients hold structuredContent of errors against the output schema and hide the error."""

    async def fail(request: KillSandboxInput, call: ToolCall) -> None:
        raise SandboxNotFound

    async with serving(mode, kill_sandbox=fail) as client:
        result = await client.call_tool("kill_sandbox", {})
    assert text_of(result)["code"] == "sandbox_not_found"
    assert result.structured_content is None


async def test_m11_a_result_that_does_not_fit_its_schema_is_held_back(mode: str) -> None:
    """gemini-cli#21053 and others."""

    async def lie(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        return ran("secret").model_copy(update={"stop_reason": "bored"})

    async with serving(mode, run_command=lie) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert result.is_error
    assert text_of(result)["code"] == "output_mismatch"
    assert "secret" not in result.model_dump_json()


async def test_e16_an_unusable_backend_reaches_the_model_with_cause_and_fix(mode: str) -> None:
    """srt#74: an obscure error of a program that the user never heard of."""

    async def refuse(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        raise BackendUnavailable(cause="namespaces_blocked")

    async with serving(mode, run_command=refuse) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    said = text_of(result)
    assert said["code"] == "backend_unavailable"
    assert said["details"]["cause"] == "namespaces_blocked"
    assert said["suggestion"]


async def test_arguments_are_refused_before_anything_is_opened(mode: str) -> None:
    opened: list[str] = []

    async def record(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        opened.append(request.command)
        return ran()

    async with serving(mode, run_command=record) as client:
        for arguments in ({}, {"command": 7}, {"command": "x", "team": "sk-secret"}, {"command": "x", "timeout": 3601}):
            result = await client.call_tool("run_command", arguments)
            assert result.is_error
            said = text_of(result)
            assert said["code"] == "invalid_argument"
            assert set(said["details"]) >= {"field", "rule"}
            assert "sk-secret" not in json.dumps(said)
    assert opened == []


async def test_t7_a_command_without_a_timeout_gets_the_default(mode: str) -> None:
    """rakazo#28: without one it hung for ever."""

    async def tell(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        return ran(str(request.timeout))

    async with serving(mode, run_command=tell) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert (result.structured_content or {})["stdout"] == "60"


async def test_an_unknown_tool_is_a_protocol_error(mode: str) -> None:
    async with serving(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such_tool", {})
        assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: no_such_tool")
        with pytest.raises(MCPError) as caught:
            await client.call_tool("sk-secret value", {})
        assert caught.value.message == "Unknown tool"


async def test_a_foreign_exception_tells_nothing_about_itself(mode: str) -> None:
    async def crash(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        raise ValueError("sk-secret")

    async with serving(mode, run_command=crash) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert text_of(result)["code"] == "internal_error"
    assert "sk-secret" not in result.model_dump_json()


async def test_images_follow_the_text_up_to_four_of_one_mib(mode: str) -> None:
    """Decision D7. What is no picture for a model stays a file."""
    accepted: list[bool] = []

    async def draw(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        accepted.append(call.attach_image("image/svg+xml", b"<svg/>"))
        accepted.append(call.attach_image("image/png", b"x" * (1024 * 1024 + 1)))
        accepted.extend(call.attach_image("image/png", bytes([number])) for number in range(5))
        return ran()

    async with serving(mode, run_command=draw) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert accepted == [False, False, True, True, True, True, False]
    images = result.content[1:]
    assert [(image.mime_type, base64.b64decode(image.data)) for image in images if isinstance(image, ImageContent)] == [
        ("image/png", bytes([number])) for number in range(4)
    ]
    assert len(images) == 4


async def test_text_that_is_no_unicode_is_replaced(mode: str) -> None:
    """A file name that is not UTF-8 must not cost the whole answer."""

    async def odd(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        return ran().model_copy(update={"stdout": "a\udcffb"})

    async with serving(mode, run_command=odd) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert (result.structured_content or {})["stdout"] == "a?b"
    assert text_of(result) == result.structured_content


@pytest.mark.parametrize(("size", "fits"), [(3_900_000, True), (4_300_000, False)])
async def test_a_result_larger_than_a_message_may_be_is_an_error_that_says_so(mode: str, size: int, fits: bool) -> None:
    """Text and structuredContent together: TypeScript clients end the connection over a line of 10 MiB."""

    async def much(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        return ran("x" * size)

    async with serving(mode, run_command=much) as client:
        result = await client.call_tool("run_command", {"command": "x"})
    assert result.is_error is not fits
    if not fits:
        assert text_of(result)["code"] == "result_too_large"


async def test_calls_run_at_the_same_time(mode: str) -> None:
    both = anyio.Event()
    running: list[str] = []

    async def meet(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        running.append(request.command)
        if len(running) == 2:
            both.set()
        await both.wait()
        return ran()

    async with serving(mode, run_command=meet) as client, anyio.create_task_group() as calls:
        calls.start_soon(client.call_tool, "run_command", {"command": "a"})
        calls.start_soon(client.call_tool, "run_command", {"command": "b"})


async def test_m6_a_cancelled_call_cancels_its_handler(mode: str) -> None:
    """codex#20925."""
    started, cancelled = anyio.Event(), anyio.Event()

    async def wait(request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return ran()

    async with serving(mode, run_command=wait) as client, anyio.create_task_group() as calls:
        calls.start_soon(client.call_tool, "run_command", {"command": "x"})
        await started.wait()
        calls.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await cancelled.wait()
