"""Tasks and transfers as clients use them: over both transports, in both eras, across the end of a server."""

import base64
import hashlib
import json
import os
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cloche_contract.registry import published_set
from tests.e2e.http_servers import http_server
from tests.e2e.servers import ABX, SERVER
from tests.packages.mcp_stdio.raw_client import ERAS, Era, raw_client

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ERAS)
async def test_tasks_outlive_their_server_and_are_read_over_the_other_transport(
    era: Era, environ: dict[str, str], provider: str
) -> None:
    """Checklist 1 to 5, 311, 318: the fifteen tools in the seed's order; started over stdio, read over HTTP."""
    if provider != "local":
        pytest.skip("sandboxes of the scripted provider end with its process")
    async with raw_client(SERVER, environ, era) as client:
        listed = (await client.request("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == list(published_set("sandbox").tool_names)
        assert len(listed) == 15
        await client.call("create_sandbox", {"timeout": 600})
        made = (await client.call("start_task", {"command": "echo kept; exit 7"}))["structuredContent"]
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    async with http_server(environ) as server, Client(streamable_http_client(server.url)) as reader:
        found: dict[str, Any] = {"state": "running"}
        while found["state"] == "running":
            answer = await reader.call_tool("get_task", {**ids, "wait": 30})
            assert answer.is_error is False
            assert answer.structured_content is not None
            found = answer.structured_content
    assert (found["state"], found["exit_code"], found["stdout"]) == ("failed", 7, "kept\n")
    done = await anyio.run_process([ABX, "sandbox", "list", "--json"], env=environ)
    assert [sandbox["sandbox_id"] for sandbox in json.loads(done.stdout)["sandboxes"]] == [made["sandbox_id"]]
    await anyio.run_process([ABX, "sandbox", "kill", made["sandbox_id"]], env=environ)


@pytest.mark.parametrize("era", ERAS)
async def test_f10_the_largest_part_fits_into_a_message_both_ways(era: Era, environ: dict[str, str]) -> None:
    """OpenSandbox#1016: 1 MiB of bytes, as base64 in one line of 8 MiB at most, text and structured content."""
    data = os.urandom(1_048_576)
    async with raw_client(SERVER, environ, era) as client:
        content = base64.b64encode(data).decode()
        path = {"path": "/home/user/a"} if environ["ABX_PROVIDER"] == "local" else {"path": environ["HOME"] + "/a"}
        written = (await client.call("upload_file", {**path, "content_base64": content}))["structuredContent"]
        assert written["sha256"] == hashlib.sha256(data).hexdigest()
        read = (await client.call("download_file", path))["structuredContent"]
        assert base64.b64decode(read["content_base64"]) == data


async def test_o11_what_prints_for_ever_ends_with_a_reason_for_the_client(environ: dict[str, str]) -> None:
    """piston#301: a limit of the operator, over stdio; the output so far, data and no tool error."""
    environ["ABX_OUTPUT_LIMIT"] = "100000"
    async with raw_client(SERVER, environ, "legacy") as client:
        calls = {"run_command": {"command": "yes"}, "run_code": {"code": "while True: print('y')"}}
        for tool, arguments in calls.items():
            answer = await client.call(tool, arguments)
            found = answer["structuredContent"]
            assert (answer["isError"], found["stop_reason"], found["stdout_bytes"]) == (False, "output_limit", 100_000)
            assert found["stdout"].startswith("y\ny\n")
        made = (await client.call("start_task", {"command": "yes"}))["structuredContent"]
        ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
        found = {"state": "running", "stdout_size": 0}
        while found["state"] == "running":
            asked = {**ids, "wait": 30, "stdout_offset": found["stdout_size"]}
            found = (await client.call("get_task", asked))["structuredContent"]
        assert (found["state"], found["stop_reason"], found["stdout_size"]) == ("failed", "output_limit", 100_000)
