"""`sandbox-mcp --set management`, as a client meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from tests.docker_engine import BUSYBOX
from tests.packages.docker_manager.conftest import Bench, manager_environ
from tests.packages.docker_manager.managed import opened

SERVER = str(Path(sys.executable).parent / "sandbox-mcp")
TOOLS = [
    *("list_docker_images", "list_workspace_directories"),
    *("create_sandbox", "list_sandboxes", "inspect_sandbox", "destroy_sandbox"),
    *("squash_layerstacks", "export_changes"),
]


@asynccontextmanager
async def client(environ: Mapping[str, str], *options: str) -> AsyncGenerator[ClientSession]:
    environment = {**environ, "PATH": os.environ["PATH"]}
    server = StdioServerParameters(command=SERVER, args=["--set", "management", *options], env=environment)
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


@pytest.fixture
def no_engine(tmp_path: Path) -> dict[str, str]:
    """A manager whose engine does not run."""
    (tmp_path / "workspaces").mkdir()
    return manager_environ(f"unix://{tmp_path}/docker.sock", tmp_path, tmp_path / "cache")


async def test_one_stdio_server_has_the_management_tools_and_nothing_else(no_engine: dict[str, str]) -> None:
    """Checklist 213 to 220, 330: its own tools in the seed's order, no prompts, no resources."""
    async with client(no_engine) as session:
        assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
        for ask in (session.list_prompts, session.list_resources, session.list_resource_templates):
            with pytest.raises(MCPError) as told:
                await ask()
            assert told.value.error.code == -32601


async def test_initialize_and_list_need_no_engine(no_engine: dict[str, str]) -> None:
    """Checklist 330: only the tools capability; what needs no engine works, what does says why not."""
    async with client(no_engine) as session:
        assert (await session.call_tool("list_sandboxes", {})).structured_content == {"sandboxes": []}
        listed = await session.call_tool("list_workspace_directories", {})
        assert listed.structured_content is not None
        assert [one["name"] for one in listed.structured_content["directories"]] == ["workspaces"]
        refused = await session.call_tool("list_docker_images", {})
        assert refused.is_error is True
        assert refused.structured_content is not None
        error = refused.structured_content["error"]
        assert (error["kind"], error["details"]["code"]) == ("connection_error", "backend_unavailable")


async def test_results_have_empty_content_and_errors_are_structured(no_engine: dict[str, str]) -> None:
    """Checklist 291 to 294, 331, 332."""
    async with client(no_engine) as session:
        good = await session.call_tool("list_sandboxes", {})
        assert (good.content, good.is_error) == ([], False)
        for arguments, field in (({}, "sandbox_id"), ({"sandbox_id": "a", "force": True}, "force")):
            bad = await session.call_tool("destroy_sandbox", arguments)
            assert (bad.content, bad.is_error) == ([], True)
            assert bad.structured_content is not None
            error = bad.structured_content["error"]
            assert set(error) == {"kind", "message", "details"}
            assert (error["kind"], error["details"]["field"]) == ("invalid_request", field)


async def test_mirrored_text_is_the_structured_result(no_engine: dict[str, str]) -> None:
    """Decision D7: for clients that show only text."""
    async with client(no_engine, "--mirror-text") as session:
        for tool in ("list_sandboxes", "list_docker_images"):
            found = await session.call_tool(tool, {})
            (block,) = found.content
            assert json.loads(_text(block)) == found.structured_content


def _text(block: Any) -> str:
    return str(block.text)


@pytest.mark.parametrize(
    "words", [[], ["--set"], ["--set", "nothing"], ["--set", "all"], ["--set", "management,sandbox"]], ids=str
)
def test_the_words_of_the_set_are_checked_before_anything_is_served(words: list[str]) -> None:
    """Checklist 329: status 2, nothing on stdout, and stdin is not waited for."""
    done = subprocess.run([SERVER, *words], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--set" in done.stderr


async def test_a_client_makes_finds_and_removes_sandboxes(bench: Bench) -> None:
    """Seed 003, from end to end over stdio."""
    (bench.workspaces / "project").mkdir()
    async with client(bench.environ) as session:
        arguments = {"image": BUSYBOX, "workspace_root": f"{bench.workspaces}/project", "count": 2}
        made = (await session.call_tool("create_sandbox", arguments)).structured_content
        assert made is not None
        assert (await session.call_tool("list_sandboxes", {})).structured_content == {
            "sandboxes": sorted(made["sandboxes"], key=lambda one: str(one["id"]))
        }
        for one in made["sandboxes"]:
            gone = await session.call_tool("destroy_sandbox", {"sandbox_id": one["id"]})
            assert gone.structured_content == {**one, "state": "stopped"}


async def test_any_listed_image_can_be_created_from(bench: Bench) -> None:
    """Checklist 226: also the id of an untagged one, passed on unchanged."""
    (bench.workspaces / "project").mkdir()
    api = bench.engine.api
    container = api.create_container(BUSYBOX, ["/bin/true"])
    untagged = api.commit(container["Id"])["Id"]
    api.remove_container(container["Id"])
    async with opened(bench.environ) as tools:
        assert untagged in (await tools.ok("list_docker_images"))["images"]
        made = await tools.ok("create_sandbox", image=untagged, workspace_root=f"{bench.workspaces}/project")
        assert made["state"] == "ready"
        await tools.ok("destroy_sandbox", sandbox_id=made["id"])
    api.remove_image(untagged)
