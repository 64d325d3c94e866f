"""The provider docker beside the management tools: one registry, and one workspace for everything that runs in it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from cloche_agentd.limits import WORKSPACE_LAYERS
from cloche_contract.errors import BackendUnavailable, SandboxNotFound
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    KillRequest,
    ListRequest,
    ProviderOptions,
    SandboxProvider,
)
from cloche_docker_manager.agent_link import AgentLink
from cloche_docker_manager.provider import open_provider
from cloche_sdk import AsyncSandbox, Doors, Sandbox, load_settings
from cloche_sdk.unpublished import unpublished_note
from cloche_testkit.agent_client import AgentRefused
from cloche_testkit.conformance.base import agent_of, eventually, is_gone
from tests.docker_engine import BUSYBOX
from tests.e2e.every_tool import remaining_calls, value_of
from tests.e2e.servers import ABX, SERVER
from tests.packages.docker_manager.conftest import Bench
from tests.packages.docker_manager.managed import objects_of, opened, registry_of
from tests.packages.mcp_stdio.raw_client import clean_environ

ASKED = CreateRequest(template="base", timeout=600)


def environ_of(bench: Bench, workspace: Path | None = None) -> dict[str, str]:
    more = {} if workspace is None else {"ABX_DOCKER_WORKSPACE": str(workspace)}
    return {**bench.environ, "ABX_DOCKER_IMAGE": BUSYBOX, **more}


@asynccontextmanager
async def provided(environ: dict[str, str]) -> AsyncGenerator[SandboxProvider]:
    """The provider; its sandboxes are killed at the end, whatever the test did."""
    async with open_provider(ProviderOptions(settings={}, environ=environ)) as provider:
        try:
            yield provider
        finally:
            for record in (await provider.list(ListRequest())).sandboxes:
                await provider.kill(KillRequest(sandbox_id=record.sandbox_id))


@pytest.fixture
def project(bench: Bench) -> Path:
    """A workspace with a file."""
    folder = bench.workspaces / "project"
    folder.mkdir()
    (folder / "read.me").write_text("from the host\n")
    return folder


@pytest.mark.parametrize("mode", ["auto"])
async def test_every_tool_works_on_docker(mode: str, bench: Bench) -> None:
    """Issue 7, part 6: the fifteen tools over stdio; the session's sandbox goes with it."""
    environ = clean_environ(**environ_of(bench))
    parameters = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], "--provider", "docker"], env=environ)
    before = objects_of(bench)
    with anyio.fail_after(120):
        async with Client(stdio_client(parameters), mode=mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            made = await value_of(client, "create_sandbox", {"timeout": 600})
            home = (await value_of(client, "run_command", {"command": "pwd"}))["stdout"].strip()
            assert home == "/workspace"
            assert (await value_of(client, "run_code", {"code": "print(6 * 7)"}))["stdout"] == "42\n"
            task = await value_of(client, "start_task", {"command": "sleep 600"})
            calls = remaining_calls(home, made["sandbox_id"], task["task_id"])
            assert set(calls) | {"create_sandbox", "run_command", "start_task"} == tools
            for tool, arguments in calls.items():
                await value_of(client, tool, arguments)
            await value_of(client, "run_command", {"command": "true"})
            assert len(registry_of(bench.environ).all()) == 1
    assert registry_of(bench.environ).all() == []
    assert objects_of(bench) == before


async def test_the_command_line_and_the_sdk_use_docker(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 7, part 6: `abx run`, `abx provider doctor|info`, and the synchronous SDK."""
    environ = environ_of(bench)
    ran = await _abx(environ, "run", "--provider", "docker", "print(6 * 7)")
    assert (ran.returncode, ran.stdout) == (0, b"42\n")
    assert (await _abx(environ, "provider", "doctor", "docker")).returncode == 0
    told = json.loads((await _abx(environ, "--json", "provider", "info", "docker")).stdout)
    assert {"tasks", "limits_memory"} <= set(told["capabilities"])
    assert not {"egress", "diff", "limits_disk"} & set(told["capabilities"])
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    def use() -> str:
        with Sandbox.create(provider="docker") as sandbox:
            return sandbox.commands.run("pwd").stdout

    assert await anyio.to_thread.run_sync(use) == "/workspace\n"
    assert registry_of(environ).all() == []


async def _abx(environ: dict[str, str], *arguments: str) -> CompletedProcess[bytes]:
    return await anyio.run_process([ABX, *arguments], env=clean_environ(**environ), check=False)


async def test_limits_that_are_asked_for_are_those_of_the_container(bench: Bench) -> None:
    """Decision D23."""
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(CreateRequest(template="base", timeout=600, cpu=2, memory=300))
        assert (made.cpu_count, made.memory_mb) == (2, 300)
        host = bench.engine.api.inspect_container(registry_of(bench.environ).get(made.sandbox_id).container)[
            "HostConfig"
        ]
        assert (host["NanoCpus"], host["Memory"]) == (2_000_000_000, 300 * 1024 * 1024)
        hungry = await (await agent_of(provider, made.sandbox_id)).run("tail -c 1000000000 /dev/zero")
        assert hungry.end is not None
        assert hungry.end["stopReason"] == "memory_limit"


async def test_both_tool_sets_have_the_same_sandboxes(bench: Bench, project: Path) -> None:
    """Issue 7, part 6: made by one, listed, used and killed by the other."""
    async with opened(bench.environ) as tools, provided(environ_of(bench)) as provider:
        managed = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(project))
        agent = await agent_of(provider, managed["id"])
        assert (await provider.get(GetRequest(sandbox_id=managed["id"]))).end_at is None
        assert (await agent.run("cat read.me")).stdout == b"from the host\n"
        mine = await provider.create(ASKED)
        listed = {record.sandbox_id for record in (await provider.list(ListRequest())).sandboxes}
        shown = {entry["id"] for entry in (await tools.ok("list_sandboxes"))["sandboxes"]}
        assert listed == shown == {managed["id"], mine.sandbox_id}
        await provider.kill(KillRequest(sandbox_id=managed["id"]))
        await tools.ok("destroy_sandbox", sandbox_id=mine.sandbox_id)
        assert (await provider.list(ListRequest())).sandboxes == []
        assert (await tools.ok("list_sandboxes"))["sandboxes"] == []


async def test_everything_that_runs_sees_one_workspace(bench: Bench, project: Path) -> None:
    """ADR 36: a command, code, a task and the file tools see what each of the others has done; so does an export."""
    async with provided(environ_of(bench, project)) as provider:
        made = await provider.create(ASKED)
        agent = await agent_of(provider, made.sandbox_id)
        await agent.write("/workspace/written", b"by a tool\n")
        assert (await agent.run("cat written; echo by a command > commanded")).stdout == b"by a tool\n"
        assert await agent.read("/workspace/commanded") == b"by a command\n"
        code = (
            "print(open('written').read() + open('commanded').read(), end='')\nopen('coded', 'w').write('by code\\n')"
        )
        assert (await agent.run_code(code)).stdout == "by a tool\nby a command\n"
        assert (await agent.run("cat coded; rm written")).stdout == b"by code\n"
        assert (await agent.run_code("import os; print(os.getcwd(), os.path.exists('written'))")).stdout == (
            "/workspace False\n"
        )
        await agent.start_task("0" * 32, "cat commanded; echo by a task > tasked")
        assert (await agent.ended_task("0" * 32)).stdout == b"by a command\n"
        names = sorted(entry["name"] for entry in await agent.list("/workspace"))
        assert names == ["coded", "commanded", "read.me", "tasked"]
        async with opened(bench.environ) as tools:
            target = bench.workspaces / "out"
            await tools.ok("export_changes", sandbox_id=made.sandbox_id, dest=str(target), format="dir")
            assert sorted(path.name for path in target.iterdir()) == ["coded", "commanded", "tasked"]
            assert [path.name for path in project.iterdir()] == ["read.me"]


async def test_no_link_leads_a_file_tool_to_the_layers(bench: Bench) -> None:
    """What code plants is followed by an agent that may do more than the code."""
    async with provided(environ_of(bench)) as provider:
        agent = await agent_of(provider, (await provider.create(ASKED)).sandbox_id)
        await agent.run("ln -s /cloche/store/manifest.json planted; ln -s /cloche/store folder")
        for path in ("planted", "folder/manifest.json", "folder/new"):
            with pytest.raises(AgentRefused) as refusal:
                await agent.write(f"/workspace/{path}", b"{}")
            assert refusal.value.code == "file_permission_denied"
        with pytest.raises(AgentRefused):
            await agent.list("/workspace/folder")


async def test_code_that_keeps_a_file_open_is_published_when_it_lets_go(bench: Bench) -> None:
    """ADR 36: what somebody still writes to is no layer yet."""
    async with provided(environ_of(bench)) as provider:
        agent = await agent_of(provider, (await provider.create(ASKED)).sandbox_id)
        await agent.run_code("kept = open('kept', 'w'); n = kept.write('half')")
        assert (await agent.run("ls")).stdout == b""
        await agent.run_code("n = kept.write(' and half'); kept.close()")
        assert (await agent.run("cat kept")).stdout == b"half and half"


async def test_a_change_that_loses_is_told(bench: Bench) -> None:
    """Two commands write one file: whoever ends later is told that nothing of it was kept."""
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(ASKED)
        environ = environ_of(bench)
        doors = Doors(settings=load_settings(environ), environ=environ)
        async with await AsyncSandbox.connect(f"docker:{made.sandbox_id}", doors=doors) as sandbox:
            slow = await sandbox.commands.start("mkfifo /tmp/go; echo up; cat /tmp/go; echo slow > shared")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sandbox.commands.run, "until [ -p /tmp/go ]; do sleep 0.05; done; echo fast > shared")
            await sandbox.commands.run("echo > /tmp/go")
            lost = (await slow.wait()).unpublished
            assert lost is not None
            assert (lost.reason, lost.paths) == ("source_conflict", ("shared",))
            assert "shared" in unpublished_note(lost)
            assert await sandbox.files.read("/workspace/shared") == "fast\n"


async def test_many_small_changes_need_no_squash(bench: Bench) -> None:
    """A user of the fifteen tools knows of no layers: before an overlay has too many, the agent squashes them."""
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(ASKED)
        agent = await agent_of(provider, made.sandbox_id)
        for number in range(WORKSPACE_LAYERS + 2):
            await agent.write(f"/workspace/f{number % 7}", b"%d" % number)

        async def few() -> bool:
            return len((await agent.call("/cloche.Layers/Status", {}))["layers"]) < 10

        await eventually(few, "there are few layers")
        assert await agent.read("/workspace/f3") == b"101"
        assert (await agent.run("ls")).stdout.split() == [b"f%d" % number for number in range(7)]


async def test_a_killed_sandbox_leaves_nothing_at_all(bench: Bench) -> None:
    """Issue 7: container, volume and record go at once, the network with the last who could need it."""
    before, networks = objects_of(bench), _networks(bench)
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(ASKED)
        assert objects_of(bench) > before
        await provider.kill(KillRequest(sandbox_id=made.sandbox_id))
        assert objects_of(bench) == before
        assert list((Path(bench.environ["ABX_DOCKER_STATE_DIR"]) / "records").iterdir()) == []
    assert _networks(bench) == networks


async def test_l7_a_sandbox_ends_at_its_time_without_a_manager(bench: Bench) -> None:
    """Fault L7: its own agent ends it; whoever looks next removes what is left."""
    before = objects_of(bench)
    environ = environ_of(bench)
    async with open_provider(ProviderOptions(settings={}, environ=environ)) as provider:
        made = await provider.create(CreateRequest(template="base", timeout=2))
    container = registry_of(bench.environ).get(made.sandbox_id).container
    with anyio.fail_after(60):
        await anyio.to_thread.run_sync(bench.engine.api.wait, container)
    async with provided(environ) as provider:
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=made.sandbox_id))
        assert (await provider.list(ListRequest())).sandboxes == []
    assert objects_of(bench) == before


async def test_a_lost_container_of_a_provider_is_over(bench: Bench) -> None:
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(ASKED)
        bench.engine.api.kill(registry_of(bench.environ).get(made.sandbox_id).container)
        await eventually(lambda: is_gone(provider, made.sandbox_id), "the sandbox is gone")
        with pytest.raises(SandboxNotFound):
            await provider.connect(ConnectRequest(sandbox_id=made.sandbox_id))


async def test_the_renewal_of_a_request_is_what_get_tells(bench: Bench) -> None:
    """ADR 36: the agent knows when it ends; no manager is asked."""
    async with provided(environ_of(bench)) as provider:
        made = await provider.create(CreateRequest(template="base", timeout=60))
        record = registry_of(bench.environ).get(made.sandbox_id)
        link = AgentLink(record.agent_port or 0, record.token)
        await link.renew(1000)
        await link.aclose()
        told = await provider.get(GetRequest(sandbox_id=made.sandbox_id))
        assert (told.end_at or "") > (made.end_at or "")


async def test_without_an_image_the_cause_and_the_fix_are_told(bench: Bench) -> None:
    async with provided(bench.environ) as provider:
        with pytest.raises(BackendUnavailable) as refusal:
            await provider.create(ASKED)
        assert "ABX_DOCKER_IMAGE" in refusal.value.hint
        assert (await provider.create(CreateRequest(template=BUSYBOX, timeout=600))).template == BUSYBOX


def _networks(bench: Bench) -> set[str]:
    return {network["Name"] for network in bench.engine.api.networks()}
