"""What the package offers, what importing it costs, and that its synchronous half works."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

import cloche_sdk
from cloche_contract.errors import FileNotFound
from cloche_sdk import AsyncSandbox, CommandTimeout, Doors, Sandbox, load_settings
from cloche_testkit.plane import ScriptedPlane

PUBLIC = [
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncContexts",
    "AsyncFiles",
    "AsyncPty",
    "AsyncSandbox",
    "AsyncTasks",
    "AsyncTerminal",
    "AsyncTransfers",
    "AsyncWatch",
    "CodeContext",
    "CodeError",
    "CodeResult",
    "CommandHandle",
    "CommandInterrupted",
    "CommandResult",
    "CommandTimeout",
    "Commands",
    "Contexts",
    "Denial",
    "Doors",
    "Endpoint",
    "Execution",
    "FileChange",
    "FileEntry",
    "FileListing",
    "FilePart",
    "Files",
    "Metrics",
    "OutputFile",
    "ProcessInfo",
    "ProviderPool",
    "Pty",
    "Sandbox",
    "SandboxSession",
    "Settings",
    "TaskInfo",
    "TaskReport",
    "TaskText",
    "Tasks",
    "Terminal",
    "Transfers",
    "Unpublished",
    "UploadedPart",
    "Watch",
    "WriteResult",
    "load_settings",
]


def test_public_names_change_on_purpose_only() -> None:
    """S16: adding a name is an API decision."""
    assert list(cloche_sdk.__all__) == PUBLIC
    assert all(getattr(cloche_sdk, name) for name in PUBLIC)
    with pytest.raises(AttributeError):
        _ = cloche_sdk.Nothing


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("cloche_sdk", {"pydantic", "httpx", "httpcore", "anyio", "asyncio"}),
        ("cloche_sdk.toolset", {"httpx", "httpcore"}),
        ("cloche_sdk._http", {"httpx"}),
    ],
)
def test_importing_it_imports_nothing_heavy(module: str, absent: set[str]) -> None:
    """A server answers tools/list before it needs any of this."""
    code = f"import sys, {module}; print(*(set(sys.modules) & {absent!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def _doors() -> Doors:
    return Doors(settings=load_settings({}).override(provider="scripted"), environ={})


def test_the_synchronous_sandbox_does_what_the_asynchronous_one_does(unsandboxed_plane: ScriptedPlane) -> None:
    """D4: one loop in a thread of its own carries every call."""
    pieces: list[str] = []
    with Sandbox.create(doors=_doors()) as sandbox:
        assert sandbox.commands.run("echo hi; exit 3", on_stdout=pieces.append).exit_code == 3
        assert sandbox.run_code("6 * 7").text == "42"
        home = sandbox.commands.run("pwd").stdout.strip()
        assert sandbox.files.write(f"{home}/a.txt", "text").size == 4
        assert sandbox.files.read(f"{home}/a.txt") == "text"
        assert [entry.name for entry in sandbox.files.list(home).entries] == ["a.txt"]
        with pytest.raises(FileNotFound):
            sandbox.files.read(f"{home}/b.txt")
        with pytest.raises(CommandTimeout) as caught:
            sandbox.commands.run("echo so far; sleep 100", timeout=1)
        assert caught.value.result.stdout == "so far\n"
        assert sandbox.is_running()
        assert Sandbox.get_info_by_id(sandbox.sandbox_id, doors=_doors()).status == "running"
        with Sandbox.connect(sandbox.sandbox_id, doors=_doors()) as other:
            assert other.commands.run("cat a.txt").stdout == "text"
        assert sandbox.is_running()
    assert pieces == ["hi\n"]
    assert unsandboxed_plane.alive == []


async def test_a_background_command_is_listed_waited_for_and_killed(unsandboxed_plane: ScriptedPlane) -> None:
    """Systems facts 2.2: start, list, kill."""
    async with await AsyncSandbox.create(doors=_doors()) as sandbox:
        quick = await sandbox.commands.start("echo one; echo two >&2")
        result = await quick.wait()
        assert (result.stdout, result.stderr) == ("one\n", "two\n")
        assert not await quick.kill()
        slow = await sandbox.commands.start("sleep 100")
        assert [process.pid for process in await sandbox.commands.list()] == [slow.pid]
        assert await slow.kill()
        assert (await slow.wait()).exit_code == 137
        assert await sandbox.commands.list() == ()


async def test_files_have_the_usual_operations(unsandboxed_plane: ScriptedPlane) -> None:
    """Systems facts 2.2."""
    async with await AsyncSandbox.create(doors=_doors()) as sandbox:
        home = (await sandbox.commands.run("pwd")).stdout.strip()
        assert await sandbox.files.make_dir(f"{home}/a/b")
        assert not await sandbox.files.make_dir(f"{home}/a/b")
        await sandbox.files.write(f"{home}/a/b/c", b"\x00\xff", mode="600")
        info = await sandbox.files.get_info(f"{home}/a/b/c")
        assert (info.type, info.size, (info.mode or 0) & 0o777) == ("file", 2, 0o600)
        moved = await sandbox.files.rename(f"{home}/a/b/c", f"{home}/d")
        assert moved.path == f"{home}/d"
        assert await sandbox.files.read_bytes(f"{home}/d") == b"\x00\xff"
        assert not await sandbox.files.exists(f"{home}/a/b/c")
        await sandbox.files.remove(f"{home}/a")
        assert [entry.name for entry in (await sandbox.files.list(home)).entries] == ["d"]


async def test_large_files_go_both_ways(unsandboxed_plane: ScriptedPlane) -> None:
    """F1, F10: 24 MB, more than any buffer on the way holds."""
    data = random.Random(1).randbytes(24_000_000)
    async with await AsyncSandbox.create(doors=_doors()) as sandbox:
        home = (await sandbox.commands.run("pwd")).stdout.strip()
        assert (await sandbox.files.write(f"{home}/large", data)).size == len(data)
        assert await sandbox.files.read_bytes(f"{home}/large") == data


async def test_callbacks_see_everything_while_the_result_is_capped(unsandboxed_plane: ScriptedPlane) -> None:
    """O10: streaming is uncapped; only the stored copy is."""
    seen = 0

    def count(text: str) -> None:
        nonlocal seen
        seen += len(text)

    async with await AsyncSandbox.create(doors=_doors()) as sandbox:
        result = await sandbox.commands.run("head -c 5000000 /dev/zero | tr '\\0' x", on_stdout=count)
    assert seen == 5_000_000
    assert result.truncated
    assert len(result.stdout) < 1_100_000
