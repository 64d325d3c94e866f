"""Sandboxes of a platform that runs an agent of its own, which answers what E2B's does and nothing more.

Source: issue 8; decision D24; agent-protocol, parts 2 and 3.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import (
    ClocheError,
    CwdNotFound,
    FileIsDirectory,
    FileNotDirectory,
    FileNotFound,
    FileSpecial,
    FileTooLarge,
    TaskLimit,
    TaskNotFound,
    TransferConflict,
    TransferNotFound,
    UnsupportedLanguage,
)
from cloche_sdk import AsyncSandbox, CommandTimeout, emulated_tasks, task_scripts
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.packages.sdk.platforms import doors_to

pytestmark = pytest.mark.anyio


@pytest.fixture
async def platform(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[ReferencePlatform]:
    """WITHOUT ISOLATION."""
    async with ReferencePlatform(ScriptedProvider(unsandboxed_plane), additions=False).serve() as platform:
        yield platform


@pytest.fixture
async def sandbox(platform: ReferencePlatform) -> AsyncGenerator[AsyncSandbox]:
    async with AsyncExitStack() as stack:
        made = await AsyncSandbox.create(doors=doors_to(platform, ABX_HTTP_TIMEOUT="20"))
        yield await stack.enter_async_context(made)


async def _home(sandbox: AsyncSandbox) -> str:
    return (await sandbox.commands.run("pwd")).stdout.strip()


async def test_what_every_agent_can_do_works(sandbox: AsyncSandbox) -> None:
    home = await _home(sandbox)
    await sandbox.files.write(f"{home}/note", "kept")
    assert await sandbox.files.read(f"{home}/note") == "kept"
    assert (await sandbox.run_code("print(6 * 7)")).stdout == "42\n"
    assert (await sandbox.transfers.download_whole(f"{home}/note")).data == b"kept"
    assert (await sandbox.transfers.download(f"{home}/note", offset=9)).data == b""


async def test_l26_a_result_has_the_same_shape_from_a_platform(sandbox: AsyncSandbox) -> None:
    """Source: faults L26 (Daytona#4681)."""
    code = (
        "class Rich:\n    def _repr_html_(self): return '<b>1</b>'\n    def _repr_json_(self): return {'a': 1}\nRich()"
    )
    (result,) = (await sandbox.run_code(code)).results
    assert (result.formats["html"], result.formats["json"]) == ("<b>1</b>", '{"a": 1}')


REFUSALS: list[tuple[Callable[[AsyncSandbox, str], object], type[ClocheError]]] = [
    (lambda sandbox, home: sandbox.files.read(f"{home}/none"), FileNotFound),
    (lambda sandbox, home: sandbox.files.read(home), FileIsDirectory),
    (lambda sandbox, home: sandbox.files.list(f"{home}/none"), FileNotFound),
    (lambda sandbox, home: sandbox.files.list(f"{home}/file"), FileNotDirectory),
    (lambda sandbox, home: sandbox.files.get_info(f"{home}/none"), FileNotFound),
    (lambda sandbox, home: sandbox.commands.run("true", cwd=f"{home}/none"), CwdNotFound),
    (lambda sandbox, home: sandbox.tasks.start("true", cwd=f"{home}/none"), CwdNotFound),
    (lambda sandbox, home: sandbox.run_code("1", "fortran"), UnsupportedLanguage),
    (lambda sandbox, home: sandbox.transfers.upload(home, b"x"), FileIsDirectory),
    (lambda sandbox, home: sandbox.transfers.upload("/dev/null", b"x"), FileSpecial),
    (lambda sandbox, home: sandbox.transfers.upload(f"{home}/file/below", b"x"), FileNotDirectory),
    (lambda sandbox, home: sandbox.transfers.upload("/proc/none/x", b"x"), ClocheError),
    (lambda sandbox, home: sandbox.transfers.download(f"{home}/none"), FileNotFound),
    (lambda sandbox, home: sandbox.transfers.download_whole(f"{home}/file", max_bytes=2), FileTooLarge),
    (lambda sandbox, home: sandbox.tasks.get("0" * 32), TaskNotFound),
    (lambda sandbox, home: sandbox.tasks.cancel("0" * 32), TaskNotFound),
]


async def test_its_errors_are_those_of_the_catalogue(sandbox: AsyncSandbox) -> None:
    """It knows no codes of ours; what it answers is told apart by what it has. Source: agent-protocol 2.1 to 2.4."""
    home = await _home(sandbox)
    await sandbox.files.write(f"{home}/file", "data")
    for call, error in REFUSALS:
        with pytest.raises(error) as caught:
            await call(sandbox, home)  # pyright: ignore[reportGeneralTypeIssues] - each one is awaitable
        assert home not in f"{caught.value} {caught.value.details}"
    assert not await sandbox.commands.kill(4_000_000)


async def test_t21_a_task_is_read_on_another_connection_from_where_the_last_one_was(
    sandbox: AsyncSandbox, platform: ReferencePlatform
) -> None:
    """Such an agent drops what it prints while nobody listens; the log of the task is kept. Source: faults T21."""
    begun = await sandbox.tasks.start("mkfifo go; echo one; cat go; echo two; exit 3")
    first = await sandbox.tasks.get(begun.task_id, wait=10)
    assert (first.info.state, first.stdout.text) == ("running", "one\n")
    doors = doors_to(platform, ABX_HTTP_TIMEOUT="20")
    async with await AsyncSandbox.connect(sandbox.sandbox_id, doors=doors) as again:
        await again.commands.run("echo > go")
        rest, offset = "", first.stdout.next_offset
        with anyio.fail_after(20):
            while (
                found := await again.tasks.get(begun.task_id, stdout_offset=offset, wait=10)
            ).info.state == "running":
                rest, offset = rest + found.stdout.text, found.stdout.next_offset
        assert rest + found.stdout.text == "\ntwo\n"
        assert (found.info.state, found.info.exit_code) == ("failed", 3)


async def test_a_cancel_ends_with_sigterm_and_then_sigkill(sandbox: AsyncSandbox) -> None:
    """Source: systems facts 1.3."""
    polite = await sandbox.tasks.start("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    deaf = await sandbox.tasks.start("trap '' TERM; echo up; while :; do sleep 0.1; done")
    for task in (polite, deaf):
        await sandbox.tasks.get(task.task_id, wait=10)
    ended = await sandbox.tasks.cancel(polite.task_id)
    assert (ended.info.state, ended.stdout.text) == ("cancelled", "up\nbye\n")
    killed = await sandbox.tasks.cancel(deaf.task_id)
    assert (killed.info.state, killed.info.exit_code) == ("cancelled", 137)
    assert [entry.state for entry in await sandbox.tasks.list()] == ["cancelled", "cancelled"]


async def test_a_supervisor_that_was_killed_leaves_its_task_unknown(sandbox: AsyncSandbox) -> None:
    """Nothing is made up; a cancel still ends what is left. Source: systems facts 1.3."""
    begun = await sandbox.tasks.start("echo up; exec sleep 2718")
    await sandbox.tasks.get(begun.task_id, wait=10)
    (process,) = [entry for entry in await sandbox.commands.list() if entry.tag == f"cloche-task-{begun.task_id}"]
    # By a signal of its own: where the agent kills the tree, nothing would be left to end.
    await sandbox.commands.run(f"kill -9 {process.pid}")
    with anyio.fail_after(20):
        while (found := await sandbox.tasks.get(begun.task_id)).info.state == "running":
            pass
    assert (found.info.state, found.info.exit_code, found.stdout.text) == ("unknown", None, "up\n")
    assert (await sandbox.tasks.cancel(begun.task_id)).info.state == "unknown"
    assert (await sandbox.commands.run("pgrep -f '[s]leep 2718' | wc -l")).stdout.strip() == "0"


async def test_only_so_many_tasks_run_and_are_kept(sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_tasks, "TASKS_RUNNING", 1)
    monkeypatch.setattr(emulated_tasks, "TASKS_KEPT", 1)
    first = await sandbox.tasks.start("sleep 300")
    with pytest.raises(TaskLimit):
        await sandbox.tasks.start("true")
    await sandbox.tasks.cancel(first.task_id)
    second = await sandbox.tasks.start("true")
    with anyio.fail_after(20):
        while (await sandbox.tasks.get(second.task_id, wait=10)).info.state == "running":
            pass
    await sandbox.tasks.start("true")
    assert len(await sandbox.tasks.list()) <= 2


async def test_f10_an_upload_in_parts_replaces_the_file_as_a_whole(sandbox: AsyncSandbox) -> None:
    """Source: faults F10, F24; systems facts 1.4."""
    path = f"{await _home(sandbox)}/dir/file"
    await sandbox.files.write(path, "old", mode="750")
    await sandbox.commands.run(f"chmod 750 {path}; ln -s {path} link")
    part = await sandbox.transfers.upload(path, b"one,", last=False)
    assert await sandbox.files.read(path) == "old"
    with pytest.raises(TransferConflict) as conflict:
        await sandbox.transfers.upload(path, b"two", transfer_id=part.transfer_id, offset=3)
    assert conflict.value.details == {"offset": 4}
    whole = await sandbox.transfers.upload(path, b"two", transfer_id=part.transfer_id, offset=4)
    assert (whole.size, whole.complete) == (7, True)
    assert await sandbox.files.read(path) == "one,two"
    await sandbox.transfers.upload("link", b"through the link")
    told = await sandbox.commands.run("cat link; stat -c %a dir/file; find . -name '.cloche-upload*' -type f | wc -l")
    assert told.stdout == "through the link750\n0\n"
    with pytest.raises(TransferNotFound):
        await sandbox.transfers.upload(path, b"three", transfer_id=part.transfer_id, offset=7)


async def test_what_it_lacks_is_asked_for_once(sandbox: AsyncSandbox, platform: ReferencePlatform) -> None:
    begun = await sandbox.tasks.start("true")
    for _ in range(2):
        await sandbox.tasks.get(begun.task_id)
        await sandbox.transfers.upload("file", b"x")
    asked = [seen.path for seen in platform.data_plane if seen.path.startswith("/cloche")]
    assert asked == ["/cloche.Tasks/Start", "/cloche/upload"]


async def test_l29_code_is_interrupted_when_its_timeout_is_over(sandbox: AsyncSandbox) -> None:
    """Its interpreter knows no timeout: the client keeps the time. Source: faults L29; agent-protocol 3."""
    with anyio.fail_after(20), pytest.raises(CommandTimeout) as caught:
        await sandbox.run_code("print('so far', flush=True)\nimport time\ntime.sleep(600)", timeout=1)
    assert caught.value.result.stdout == "so far\n"


async def test_a_cancelled_command_is_killed(sandbox: AsyncSandbox) -> None:
    """Such an agent lets a command run on when its connection ends. Source: faults T25."""
    up = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await sandbox.commands.run("echo up; exec sleep 31415", on_stdout=lambda _: up.set())

        tasks.start_soon(run)
        with anyio.fail_after(20):
            await up.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(20):
        while (await sandbox.commands.run("pgrep -f '[s]leep 31415' | wc -l")).stdout.strip() != "0":
            pass


@pytest.mark.parametrize("shell", [("dash",), ("bash",), ("busybox", "sh")], ids=["dash", "bash", "busybox"])
def test_any_shell_runs_the_supervisor(shell: tuple[str, ...], tmp_path: Path) -> None:
    """With nothing that ends trees behind it: what ignores SIGTERM or left the session is found by its environment."""
    mark = f"27{uuid.uuid4().int % 10**6:06}.5"
    left = f"(trap '' TERM; exec sleep {mark}) & setsid sleep {mark} < /dev/null > /dev/null 2>&1 & echo up; "

    def run(script: str, *arguments: str) -> str:
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        ran = subprocess.run([*shell, "-c", script, "cloche", *arguments], capture_output=True, env=environ, timeout=60)
        return ran.stdout.decode()

    try:
        ends = [("a" * 32, "exit 7", "60", "exit 7"), ("b" * 32, "wait", "1", "timeout 143")]
        for task_id, last, seconds, how in ends:
            assert run(task_scripts.START, task_id, left + last, seconds, "0", "d", "9", "9").startswith("started ")
            assert f" ended {how} " in run(task_scripts.READ, task_id, "3", "0", "99", "20")
        run(task_scripts.START, "c" * 32, "yes", "60", "1000", "d", "9", "9")
        head = run(task_scripts.READ, "c" * 32, "1000", "0", "99", "20").split()
        assert (head[3], head[8]) == ("output_limit", "1000")
    except FileNotFoundError:
        pytest.skip(f"there is no {shell[0]} here")
    assert subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).stdout == b""
