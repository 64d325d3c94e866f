"""A server offers the tools that its operator allows, and no text of it mentions another.

Source: issue 4; fault rows M18 and O21.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from cloche_contract.errors import ERRORS, FileTooLarge, SandboxNotFound, envelope
from cloche_contract.registry import EnabledTools, ToolFilter, UnusableFilter, published_set
from tests.contract.serving_session import MODES, serving

SANDBOX = published_set("sandbox")
READ_ONLY = ["list_sandboxes", "get_sandbox", "read_file", "list_files", "get_task", "download_file"]
LONGEST = 2_000


def enabled(**asked: object) -> EnabledTools:
    return ToolFilter(**asked).apply(SANDBOX)  # type: ignore[arg-type]  # names and types as in ToolFilter


def mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def test_m18_the_operator_chooses_what_a_client_sees() -> None:
    """OpenSandbox PR#145: fewer tools, less context; the order stays."""
    assert list(enabled().tools) == list(SANDBOX.tool_names)
    assert list(enabled(only=["run_command", "create_sandbox"]).tools) == ["create_sandbox", "run_command"]
    assert list(enabled(only=["run_command", "read_file"], exclude=["read_file"]).tools) == ["run_command"]
    assert list(enabled(read_only=True).tools) == READ_ONLY
    assert list(enabled(only=["run_command", "read_file"], read_only=True).tools) == ["read_file"]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"only": ["nothing_like_it"]}, "names a tool that this set does not have; it has: create_sandbox, "),
        ({"exclude": ["run_comand"]}, "names a tool that this set does not have"),
        ({"only": []}, "leaves no tool to serve."),
        ({"only": ["run_command"], "read_only": True}, "leaves no tool to serve."),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(asked: dict[str, object], text: str) -> None:
    """A misspelt exclusion would otherwise offer what was to be kept away; what was typed is not echoed."""
    with pytest.raises(UnusableFilter) as caught:
        enabled(**asked)
    assert str(caught.value).startswith(text)
    assert "comand" not in str(caught.value)


@pytest.mark.parametrize("name", SANDBOX.tool_names)
def test_o21_no_text_mentions_a_tool_that_is_not_enabled(name: str) -> None:
    """deepagents#5798: descriptions, instructions, and the advice of every error."""
    without = enabled(exclude=[name])
    assert name not in without.tools
    assert not mentions(json.dumps(list(without.tools.values())), name)
    assert not mentions(without.instructions, name)
    for kind in ERRORS.values():
        assert not mentions(without.text(kind.suggestion), name)
        assert not mentions(without.text(kind.message), name)
        assert without.text(kind.message)
    for tool in without.tools.values():
        first = str(published(tool["name"])["description"]).partition(".")[0]
        assert str(tool["description"]).startswith(first)


def published(name: str) -> Mapping[str, Any]:
    entry = SANDBOX.tool(name)
    assert entry is not None
    return entry


def test_without_a_filter_everything_is_as_published() -> None:
    assert list(enabled().tools.values()) == list(SANDBOX.tools)


def test_the_filter_changes_texts_only() -> None:
    """Names, limits and rules of an enabled tool stay."""
    schema = published("download_file")["inputSchema"]
    assert enabled(only=["download_file"]).tools["download_file"]["inputSchema"] == schema


@pytest.mark.parametrize("asked", [{}, {"read_only": True}, {"only": ["run_code"]}, {"exclude": ["start_task"]}])
def test_instructions_are_what_the_enabled_tools_make_true(asked: dict[str, object]) -> None:
    """Claude Code cuts them at 2,048 characters."""
    text = enabled(**asked).instructions
    assert 0 < len(text) < LONGEST
    assert ("took a task" in text) is ("start_task" in enabled(**asked).tools)


@pytest.mark.parametrize("mode", MODES)
async def test_a_server_lists_and_takes_enabled_tools_only(mode: str) -> None:
    async def get_sandbox(request: object, call: object) -> object:
        raise SandboxNotFound

    async def download_file(request: object, call: object) -> object:
        raise FileTooLarge

    options = {"tools": ToolFilter(exclude=["list_sandboxes", "run_command", "upload_file"])}
    async with serving(mode, options, get_sandbox=get_sandbox, download_file=download_file) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "list_sandboxes" not in names
        assert len(names) == 12
        with pytest.raises(Exception, match="Unknown tool: list_sandboxes"):
            await client.call_tool("list_sandboxes", {})
        told = await client.call_tool("get_sandbox", {"sandbox_id": "x"})
        assert json.loads(told.content[0].text)["suggestion"] == "Check the id."  # type: ignore[union-attr]  # text
        told = await client.call_tool("download_file", {"path": "/x"})
        suggestion = json.loads(told.content[0].text)["suggestion"]  # type: ignore[union-attr]  # text
        assert suggestion == "Work on parts of it. download_file takes offset and length."


def test_advice_that_is_left_empty_is_replaced() -> None:
    """An error always says what to do next."""
    failure = envelope("sandbox", ERRORS["sandbox_expired"]())
    assert enabled(exclude=["create_sandbox"]).without_others(failure)["suggestion"].startswith("Check the arguments")


def test_o12_limits_of_output_are_documented_where_a_model_reads_them() -> None:
    """sandbox-sdk#370: in the description of the result or of the argument that sets it."""
    for tool, place, text in (
        ("run_command", "outputSchema", "at most 30000 characters"),
        ("run_code", "outputSchema", "at most 30000 characters"),
        ("get_task", "inputSchema", "1 to 30000, default 16384"),
        ("get_task", "outputSchema", "the first 768 KiB and the last 256 KiB"),
        ("download_file", "inputSchema", "1 to 1048576"),
        ("upload_file", "inputSchema", "at most 1048576 bytes"),
    ):
        assert text in json.dumps(published(tool)[place]), tool
    assert "30000 characters" in enabled().instructions


def test_t27_a_model_is_told_to_start_long_work_in_the_background() -> None:
    """xpipe#870, claude-code#43791: clients give up after a minute; a wait for a task ends before."""
    assert "start_task" in enabled().instructions
    assert published("get_task")["inputSchema"]["properties"]["wait"]["maximum"] < 60
