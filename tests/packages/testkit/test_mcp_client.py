"""The in-memory client reaches a tool set in both eras, and its end is the session's end."""

import json

import anyio
import pytest
from mcp_types import TextContent

from cloche_contract.errors import QuotaExceeded
from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_testkit.markers import leaked_markers
from cloche_testkit.mcp_client import Era, connected_client
from cloche_testkit.plane import ScriptedPlane

SCRIPTED = ToolSetOptions(provider="scripted")


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_client_calls_tools_and_leaves_no_sandbox(scripted_plane: ScriptedPlane, era: Era) -> None:
    scripted_plane.marked = True
    with anyio.fail_after(10):
        async with connected_client(options=SCRIPTED, era=era) as client:
            made = await client.call_tool("create_sandbox", {})
            shown = await client.call_tool("get_sandbox", {})
            assert scripted_plane.alive == ["sb0001"]
    assert (made.is_error, shown.is_error) == (False, False)
    assert leaked_markers(made.model_dump_json(), allowed=["url"]) == []
    assert leaked_markers(shown.model_dump_json()) == []
    assert scripted_plane.alive == []


async def test_a_failure_of_the_platform_is_a_result(scripted_plane: ScriptedPlane) -> None:
    scripted_plane.script.fail_next("create", QuotaExceeded())
    with anyio.fail_after(10):
        async with connected_client(options=SCRIPTED) as client:
            answer = await client.call_tool("create_sandbox", {})
    (text,) = answer.content
    assert isinstance(text, TextContent)
    assert answer.is_error is True
    assert json.loads(text.text)["code"] == "quota_exceeded"
