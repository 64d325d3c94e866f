"""What the management server is about: the system, not one session; and what it does not let anybody call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.kernel.registry import UnknownTool
from cloche_docker_manager.registry import Record
from tests.packages.agentd.plain_agent import TOKEN, running_agent
from tests.packages.docker_manager.conftest import manager_environ
from tests.packages.docker_manager.managed import opened, registry_of
from tests.packages.docker_manager.test_server import TOOLS, client

ABOUT_ONE = {"inspect_sandbox", "destroy_sandbox", "squash_layerstacks", "export_changes"}


INNER = ("squash_layerstack", "export_layerstack", "read_export_chunk", "exec_command", "run_command", "snapshot")
PATHS = ("C:\\Users\\me", "C:/Users/me", "\\\\server\\share", "~/project", "project", "//./pipe/x y\0")


@pytest.fixture
def no_engine(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "workspaces").mkdir()
    return manager_environ(f"unix://{tmp_path}/docker.sock", tmp_path, tmp_path / "cache")


async def test_every_tool_is_about_the_whole_system(no_engine: dict[str, str]) -> None:
    """Checklist 215, 333: one session sees what another one made, and an id travels in the arguments alone."""
    registry_of(no_engine).put(Record("sbox-1", "/w", "image", "failed", "token"))
    async with client(no_engine) as one, client(no_engine) as other:
        tools = {tool.name: tool.input_schema for tool in (await one.list_tools()).tools}
        assert {name for name, schema in tools.items() if "sandbox_id" in schema["properties"]} == ABOUT_ONE
        assert all("sandbox_id" in tools[name]["required"] for name in ABOUT_ONE)
        assert not [name for name, schema in tools.items() if "scope" in schema["properties"]]
        for session in (one, other):
            listed: Any = (await session.call_tool("list_sandboxes", {})).structured_content
            assert [record["id"] for record in listed["sandboxes"]] == ["sbox-1"]
            assert (await session.call_tool("inspect_sandbox", {})).is_error


async def test_what_goes_on_inside_cannot_be_called(no_engine: dict[str, str]) -> None:
    """Checklist 335: operations of the agent, and of the other tool sets, are no tools; no scope is taken."""
    async with opened(no_engine) as tools:
        for name in INNER:
            assert name not in TOOLS
            with pytest.raises(UnknownTool):
                await tools.outcome(name)
        told = await tools.refused("list_sandboxes", scope={"kind": "sandbox", "sandbox_id": "sbox-1"})
        assert told == ("invalid_request", "invalid_argument")


@pytest.mark.parametrize("path", PATHS)
async def test_p12_a_path_of_another_system_is_refused_and_nothing_is_made(
    no_engine: dict[str, str], tmp_path: Path, path: str
) -> None:
    """Fault P12: drive letters, UNC and what only a shell understands; spaces are fine."""
    before = sorted(tmp_path.rglob("*"))
    async with opened(no_engine) as tools:
        told = await tools.refused("create_sandbox", image="image", workspace_root=path)
        assert told == ("invalid_request", "invalid_argument")
        told = await tools.refused("export_changes", sandbox_id="sbox-1", dest=path)
        assert told == ("invalid_request", "invalid_argument")
    assert [one for one in sorted(tmp_path.rglob("*")) if one not in before and "state" not in one.parts] == []


async def test_an_agent_of_an_older_manager_has_to_be_made_anew(no_engine: dict[str, str], tmp_path: Path) -> None:
    """Checklist 275: an agent that knows no layers is an operation_failed for squash and export."""
    with running_agent(tmp_path) as agent:
        async with _published(agent.socket_path) as port:
            registry_of(no_engine).put(Record("sbox-old", "/w", "image", "ready", TOKEN, None, port, port))
            async with opened(no_engine) as tools:
                for tool, more in (("squash_layerstacks", {}), ("export_changes", {"dest": f"{tmp_path}/out"})):
                    told = await tools.refused(tool, sandbox_id="sbox-old", **more)
                    assert told == ("operation_failed", "unsupported_operation")
                registry_of(no_engine).remove("sbox-old")


@asynccontextmanager
async def _published(socket_path: str) -> AsyncGenerator[int]:
    """A port of this machine that leads to the agent's socket, as the engine's own proxy does it."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket_path)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
