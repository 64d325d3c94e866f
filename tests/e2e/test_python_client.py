"""`abx mcp start` behind the Python client, in every way it can connect."""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ImageContent, TextContent

from tests.e2e.every_tool import remaining_calls, value_of
from tests.e2e.servers import SERVER

pytestmark = pytest.mark.anyio

MODES = ("legacy", "auto", "2026-07-28")
Connect = Callable[[str], AbstractAsyncContextManager[Client]]


@pytest.fixture
def connect(environ: dict[str, str]) -> Connect:
    @asynccontextmanager
    async def connected(mode: str) -> AsyncGenerator[Client]:
        parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=environ)
        with anyio.fail_after(60):
            async with Client(stdio_client(parameters), mode=mode) as client:
                yield client

    return connected


@pytest.mark.parametrize(("provider", "mode"), [("scripted", "auto"), *(("local", mode) for mode in MODES)])
async def test_a_client_runs_code_and_commands_and_reads_what_it_wrote(mode: str, connect: Connect) -> None:
    async with connect(mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools[:1] == ["create_sandbox"]
        assert (await value_of(client, "run_code", {"code": "answer = 6 * 7\nprint(answer)"}))["stdout"] == "42\n"
        assert (await value_of(client, "run_code", {"code": "print(answer + 1)"}))["stdout"] == "43\n"
        ran = await value_of(client, "run_command", {"command": "echo out; echo err >&2; exit 3"})
        assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 3)
        home = (await value_of(client, "run_command", {"command": "pwd"}))["stdout"].strip()
        written = await value_of(client, "write_file", {"path": f"{home}/note.txt", "content": "héllo\n"})
        assert written == {"success": True, "bytes_written": 7}
        read = await value_of(client, "read_file", {"path": f"{home}/note.txt"})
        assert read["content"] == "héllo\n"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_m11_every_tool_answers_what_its_schema_says(mode: str, connect: Connect) -> None:
    """gemini-cli#21053. The client refuses a structuredContent that does not match."""
    async with connect(mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        made = await value_of(client, "create_sandbox", {"timeout": 600})
        home = (await value_of(client, "run_command", {"command": "pwd"}))["stdout"].strip()
        task = await value_of(client, "start_task", {"command": "sleep 600"})
        calls = remaining_calls(home, made["sandbox_id"], task["task_id"])
        assert set(calls) | {"create_sandbox", "run_command", "start_task"} == set(listed)
        for tool, arguments in calls.items():
            value = await value_of(client, tool, arguments)
            schema: Any = Draft202012Validator(listed[tool].output_schema or False)
            schema.validate(value)


async def test_a_mebibyte_of_every_byte_makes_the_round_trip(connect: Connect) -> None:
    """Checklist 298."""
    content = base64.b64encode(bytes(range(256)) * 4096).decode()
    async with connect("legacy") as client:
        path = (await value_of(client, "run_command", {"command": "pwd"}))["stdout"].strip() + "/bytes"
        await value_of(client, "write_file", {"path": path, "content": content, "encoding": "base64"})
        read = await value_of(client, "read_file", {"path": path, "encoding": "base64"})
    assert read == {"content": content, "encoding": "base64", "size": 1024 * 1024}


async def test_m8_m9_m10_input_schemas_hold_nothing_that_a_client_rejects(connect: Connect) -> None:
    """cursor#3778, copilot-cli#4623, DesktopCommander#79; VS Code wants draft-07."""
    async with connect("legacy") as client:
        for tool in (await client.list_tools()).tools:
            Draft7Validator.check_schema(tool.input_schema)
            for node in nodes(tool.input_schema):
                assert isinstance(node["type"], str), tool.name
                assert node["type"] != "null"
                assert not FOREIGN & set(node), tool.name
                assert (node["type"] != "array") or isinstance(node["items"], dict)


FOREIGN = {"$schema", "$ref", "$defs", "$id", "anyOf", "oneOf", "allOf", "not", "const", "format", "prefixItems"}


def nodes(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema and every schema inside it."""
    inner = [*schema.get("properties", {}).values()]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    return [schema, *(node for each in inner for node in nodes(each))]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_m20_failures_are_errors_with_a_code(mode: str, connect: Connect) -> None:
    """code-sandbox-mcp. The client must not choke on any of them."""
    failures: dict[str, tuple[str, dict[str, Any]]] = {
        "invalid_argument": ("run_command", {"command": ""}),
        "no_default_sandbox": ("kill_sandbox", {}),
        "sandbox_not_found": ("get_sandbox", {"sandbox_id": "no-such-sandbox"}),
        "file_not_found": ("read_file", {"path": "/no/such/file"}),
        "cwd_not_found": ("run_command", {"command": "pwd", "cwd": "/no/such/folder"}),
        "unsupported_language": ("run_code", {"code": "1", "language": "r"}),
    }
    async with connect(mode) as client:
        await client.list_tools()
        found = {code: code_of(await client.call_tool(tool, arguments)) for code, (tool, arguments) in failures.items()}
    assert found == {code: code for code in failures}


def code_of(result: CallToolResult) -> str:
    (text,) = result.content
    assert isinstance(text, TextContent)
    assert result.is_error
    return json.loads(text.text)["code"]


async def test_t8_a_timeout_keeps_the_output_so_far(connect: Connect) -> None:
    """SWE-ReX#151: the partial output was lost."""
    async with connect("auto") as client:
        result = await value_of(client, "run_command", {"command": "echo begun; sleep 100", "timeout": 1})
    assert (result["stdout"], result["timed_out"], result["stop_reason"]) == ("begun\n", True, "timeout")


async def test_o9_output_that_was_cut_says_so(connect: Connect) -> None:
    """Ix#425; checklist 328: bounded, with a marker and the total."""
    async with connect("auto") as client:
        whole = await value_of(client, "run_command", {"command": "echo short"})
        cut = await value_of(client, "run_command", {"command": "head -c 100000 /dev/zero | tr '\\0' x; echo END"})
    assert (whole["truncated"], cut["truncated"]) == (False, True)
    assert cut["stdout_bytes"] == 100_004
    assert len(cut["stdout"]) < 31_000
    assert cut["stdout"].startswith("xxx")
    assert cut["stdout"].endswith("END\n")
    assert cut["note"]


@pytest.mark.parametrize("provider", ["local"])
async def test_a_figure_arrives_as_an_image(connect: Connect) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"
    async with connect("legacy") as client:
        result = await client.call_tool("run_code", {"code": code, "timeout": 60})
    assert not result.is_error
    (image,) = [block for block in result.content if isinstance(block, ImageContent)]
    assert image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert image.data not in json.dumps(result.structured_content)


async def test_progress_comes_while_a_command_runs(connect: Connect) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with connect("auto") as client:
        await client.call_tool("run_command", {"command": "sleep 0.2"}, progress_callback=hear)
    assert heard
    assert heard == sorted(set(heard))
