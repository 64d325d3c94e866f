"""The fifteen tools on a platform, over real HTTP, and E2B's own client on the same platform.

The platform is the reference of the testkit; what runs in its sandboxes is real. That the unmodified
client of E2B is content with it shows that the platform tells the truth.

Source: issue 8, "Shown by"; agent-protocol 9.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import e2b_code_interpreter as e2b
import pytest
from e2b import ApiParams
from mcp import Client, StdioServerParameters, stdio_client

from cloche_sdk import AsyncSandbox, Doors, load_settings
from cloche_testkit.platform import ReferencePlatform
from tests.e2e.every_tool import remaining_calls, value_of
from tests.e2e.platforms import environ_of, real_platform
from tests.e2e.servers import SERVER, settings_for
from tests.packages.mcp_stdio.raw_client import clean_environ

pytestmark = pytest.mark.anyio

# What the seed names: create, list, get, timeout, delete. Nothing else may be asked for.
OWN_PATHS = ("/cloche.Tasks/Get", "/cloche.Tasks/Cancel")
NAMED = {"create_sandbox", "list_sandboxes", "get_sandbox", "set_timeout", "delete_sandbox"}


@pytest.fixture
def behind() -> Generator[dict[str, str]]:
    """Where the sandboxes of the platform live: a folder with a short name, for their sockets."""
    with TemporaryDirectory(prefix="cl-") as name:
        yield {"HOME": name, **settings_for("local", Path(name))}


@pytest.fixture
async def platform(behind: dict[str, str]) -> AsyncGenerator[ReferencePlatform]:
    async with real_platform(behind) as platform:
        yield platform


@pytest.mark.parametrize(
    ("mode", "additions"),
    [("legacy", True), ("auto", True), ("auto", False)],
    ids=["legacy", "auto", "auto, on their agent"],
)
async def test_every_tool_works_on_a_platform(
    mode: str, additions: bool, behind: dict[str, str], tmp_path: Path
) -> None:
    """Source: checklist 6; issue 8, the fifteen tools over stdio in both eras, on either agent."""
    async with real_platform(behind, additions=additions) as platform:
        environ = clean_environ(**environ_of(platform, tmp_path))
        parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=environ)
        with anyio.fail_after(120):
            async with Client(stdio_client(parameters), mode=mode) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                made = await value_of(client, "create_sandbox", {"timeout": 600})
                assert made["url"] == platform.url
                home = (await value_of(client, "run_command", {"command": "pwd"}))["stdout"].strip()
                assert (await value_of(client, "run_code", {"code": "print(6 * 7)"}))["stdout"] == "42\n"
                task = await value_of(client, "start_task", {"command": "sleep 600"})
                calls = remaining_calls(home, made["sandbox_id"], task["task_id"])
                assert set(calls) | {"create_sandbox", "run_command", "start_task"} == tools
                for tool, arguments in calls.items():
                    await value_of(client, tool, arguments)
                await value_of(client, "run_command", {"command": "true"})
                assert len(platform.alive) == 1
        assert platform.alive == []  # the session's default went with it
        assert set(platform.calls) <= NAMED
        own = {seen.path for seen in platform.data_plane if seen.path.startswith(("/cloche.", "/cloche/"))}
        # Where the agent does not have them they are asked for once, and then done over what it has.
        assert own == {"/cloche.Tasks/Start", *([] if not additions else OWN_PATHS), "/cloche/upload"}


async def test_a_paused_sandbox_is_resumed_by_its_use_alone(platform: ReferencePlatform, tmp_path: Path) -> None:
    """Source: checklist 37, 75; systems facts 2.6."""
    environ = environ_of(platform, tmp_path)
    doors = Doors(settings=load_settings(environ), environ=environ)
    sandbox = await AsyncSandbox.create(doors=doors)
    platform.pause(sandbox.sandbox_id)
    assert (await AsyncSandbox.get_info_by_id(sandbox.sandbox_id, doors=doors)).status == "paused"
    assert platform.is_paused(sandbox.sandbox_id)
    async with await AsyncSandbox.connect(sandbox.sandbox_id, doors=doors) as again:
        assert (await again.commands.run("echo back")).stdout == "back\n"
    assert platform.calls[-1] == "connect_sandbox"
    await sandbox.kill()


async def test_the_client_of_e2b_is_content_with_the_platform(platform: ReferencePlatform) -> None:
    """The reference flow. Source: agent-protocol 9."""
    options = ApiParams(api_key=platform.api_key, api_url=platform.url, sandbox_url=platform.url)

    def flow() -> None:
        with e2b.Sandbox.create("code-interpreter-v1", timeout=120, **options) as sandbox:
            assert sandbox.commands.run("echo hi").stdout == "hi\n"
            sandbox.files.write("/tmp/note.txt", "héllo")  # pyright: ignore[reportUnknownMemberType] - untyped there
            assert sandbox.files.read("/tmp/note.txt") == "héllo"
            assert "note.txt" in [entry.name for entry in sandbox.files.list("/tmp")]
            assert sandbox.run_code("print(6 * 7)").logs.stdout == ["42\n"]
            assert sandbox.get_info().template_id == "code-interpreter-v1"
            found = e2b.Sandbox.list(**options)
            assert [each.sandbox_id for each in found.next_items()] == [sandbox.sandbox_id]
            sandbox.set_timeout(60)
            assert sandbox.kill()
            assert not sandbox.kill()

    with anyio.fail_after(60):
        await anyio.to_thread.run_sync(flow, abandon_on_cancel=True)
    assert platform.alive == []
