"""Streams of the SDK on real sandboxes: input, reconnects, terminals.

Source: issue 3, item 4; faults T16, T21, T29, O15.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import InvalidArgument, ProcessNotFound, ProviderUnavailable
from cloche_sdk import AsyncSandbox, CommandInterrupted, CommandTimeout, Doors, Sandbox, following
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.cutter import Cutter, cut_line
from tests.packages.sdk.stub_agent import Peer, Request, begin_stream, send_event, stub

WITHIN_S = 60
# Both streams, so that their order and their positions count.
LINES = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 4"
OUT = "".join(f"out {number}\n" for number in range(3000))
ERR = OUT.replace("out", "err")


@pytest.fixture
async def line(sandbox: AsyncSandbox, tmp_path: Path) -> AsyncGenerator[Cutter]:
    async with cut_line(sandbox, tmp_path) as cutter:
        yield cutter


# -- input ------------------------------------------------------------------------------------------------------


async def test_f15_input_arrives_whole_however_long(sandbox: AsyncSandbox) -> None:
    """inspect_k8s_sandbox#244: 40 MiB on standard input, and nothing arrived."""
    sent = bytes(range(256)) * 40_000
    result = await sandbox.commands.run("sha256sum", stdin=sent)
    assert result.stdout.split()[0] == hashlib.sha256(sent).hexdigest()


async def test_a_command_may_write_while_it_reads(sandbox: AsyncSandbox) -> None:
    """Neither side waits for the other: the output is read while the input is written."""
    sent = "line of text\n" * 200_000
    heard: list[int] = []
    result = await sandbox.commands.run("cat", stdin=sent, on_stdout=lambda text: heard.append(len(text)))
    assert (sum(heard), result.exit_code) == (len(sent), 0)


async def test_a_command_that_wants_no_more_input_ends_as_it_would(sandbox: AsyncSandbox) -> None:
    assert (await sandbox.commands.run("head -n 1", stdin="first\n" * 500_000)).stdout == "first\n"
    assert (await sandbox.commands.run("exit 3", stdin="unread")).exit_code == 3


async def test_input_without_text_is_the_end_of_input(sandbox: AsyncSandbox) -> None:
    assert (await sandbox.commands.run("cat; echo done", stdin="")).stdout == "done\n"


async def test_a_handle_takes_input_until_it_is_closed(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.start("cat; echo done", stdin=True)
    await handle.send_stdin("one\n")
    await handle.send_stdin(b"two\n")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "one\ntwo\ndone\n"
    with pytest.raises(ProcessNotFound):
        await handle.send_stdin("late")


async def test_a_command_without_input_says_so(sandbox: AsyncSandbox) -> None:
    async with await sandbox.commands.start("sleep 60") as handle:
        with pytest.raises(InvalidArgument):
            await handle.send_stdin("x")
        assert await handle.kill()


# -- connections that are lost ----------------------------------------------------------------------------------


async def test_a_lost_connection_loses_and_doubles_nothing(sandbox: AsyncSandbox, line: Cutter) -> None:
    """Issue 3, item 4: reconnect with replay from an offset; cut in the middle of messages too."""
    heard: list[str] = []
    handle = await sandbox.commands.start(LINES, on_stdout=heard.append)
    line.cut_after(700, 5_000, 5_001, 20_000)
    result = await handle.wait()
    assert (result.stdout, result.stderr, result.exit_code) == (OUT, ERR, 4)
    assert ("".join(heard), result.skipped_bytes, handle.offset) == (OUT, 0, len(OUT) + len(ERR))
    assert line.cuts == 4


async def test_t21_a_client_that_comes_back_takes_up_where_it_was(sandbox: AsyncSandbox) -> None:
    """E2B#1074: gone after its stream; here its output is kept, and its end."""
    handle = await sandbox.commands.start("echo first; read line; echo $line; exit 6", stdin=True)
    pid, offset = handle.pid, handle.offset
    await handle.disconnect()
    async with await sandbox.commands.connect(pid, offset=offset) as again:
        await again.send_stdin("second\n")
        result = await again.wait()
    assert (result.stdout, result.exit_code) == ("first\nsecond\n", 6)
    whole = await (await sandbox.commands.connect(pid, offset=0)).wait()
    assert whole.stdout == "first\nsecond\n"
    only_the_end = await (await sandbox.commands.connect(pid)).wait()
    assert (only_the_end.stdout, only_the_end.exit_code) == ("", 6)


async def test_output_that_is_no_longer_kept_is_counted(sandbox: AsyncSandbox) -> None:
    """Fault O9: what is missing is said."""
    handle = await sandbox.commands.start("head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    assert (await handle.wait()).stdout_captured.total_bytes == 3_000_004
    again = await (await sandbox.commands.connect(handle.pid, offset=0)).wait()
    assert again.truncated
    assert again.skipped_bytes > 1_000_000
    assert again.skipped_bytes + again.stdout_captured.total_bytes == 3_000_004
    assert again.stdout.endswith("end\n")


async def test_t16_a_sandbox_that_ends_while_the_line_is_cut_invents_no_exit_code(
    sandbox: AsyncSandbox, line: Cutter, unsandboxed_plane: ScriptedPlane
) -> None:
    """sandbox-sdk#101: a made-up "complete, exit 0"."""
    handle = await sandbox.commands.start("echo before; sleep 60")
    line.cut()
    await unsandboxed_plane.expire(sandbox.sandbox_id)
    with pytest.raises(CommandInterrupted) as lost:
        await handle.wait()
    assert (lost.value.result.exit_code, lost.value.result.stop_reason) == (-1, "sandbox_lost")


async def test_a_line_that_stays_cut_is_given_up(
    sandbox: AsyncSandbox, line: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAUSES_S", (0.01,))
    handle = await sandbox.commands.start("sleep 60")
    line.refuse()
    with anyio.fail_after(WITHIN_S), pytest.raises(ProviderUnavailable):
        await handle.wait()


async def test_a_timeout_is_told_after_a_lost_connection_too(sandbox: AsyncSandbox, line: Cutter) -> None:
    handle = await sandbox.commands.start("echo before; sleep 60", timeout=1)
    line.cut()
    with pytest.raises(CommandTimeout) as late:
        await handle.wait()
    assert late.value.result.stdout == "before\n"


async def test_t29_a_stream_that_stays_open_after_the_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """agentuity/sdk PR#1261: the command exits, the end of its stream is lost, the client hangs."""
    monkeypatch.setattr(following, "END_GRACE_S", 0.01)

    async def answer(peer: Peer, request: Request) -> None:
        if "/process" not in request.target:
            await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            return
        await begin_stream(peer)
        await send_event(peer, {"start": {"pid": 7}})
        await send_event(peer, {"end": {"exited": True, "status": "exit status 0"}})
        await peer.receive()

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with anyio.fail_after(WITHIN_S / 4):
            assert (await sandbox.commands.run("x")).exit_code == 0
            assert (await (await sandbox.commands.start("x")).wait()).exit_code == 0


async def test_t35_a_handle_never_signals_who_got_its_number(sandbox: AsyncSandbox) -> None:
    """sandbox-server#21: a handle names its command by a tag of its own, not by a number that others get later."""
    first = await sandbox.commands.start("true")
    await first.wait()
    async with await sandbox.commands.start("sleep 60") as second:
        # As if the number had been given out again.
        second._following.reader.pid = first.pid  # pyright: ignore[reportPrivateUsage]  # no process number is worth waiting for
        assert not await first.kill()
        assert await second.kill()


# -- signals ----------------------------------------------------------------------------------------------------


async def test_an_interrupt_reaches_the_command_as_ctrl_c_would(sandbox: AsyncSandbox) -> None:
    ready = anyio.Event()
    command = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    handle = await sandbox.commands.start(command, on_stdout=lambda text: ready.set() if "ready" in text else None)
    async with anyio.create_task_group() as tasks:

        async def interrupt() -> None:
            await ready.wait()
            assert await handle.interrupt()

        tasks.start_soon(interrupt)
        result = await handle.wait()
        assert (result.stdout, result.exit_code) == ("ready\ninterrupted\n", 5)
    assert not await handle.interrupt()


# -- terminals --------------------------------------------------------------------------------------------------


async def test_a_terminal_is_typed_into_resized_and_ended(sandbox: AsyncSandbox) -> None:
    shown = bytearray()
    terminal = await sandbox.pty.create("stty size; read x; stty size; echo got $x; exit 3", on_data=shown.extend)
    while b"24 80" not in shown:
        assert await terminal.read()
    await terminal.resize(132, 43)
    await terminal.send("typed\n")
    result = await terminal.wait()
    assert (result.exit_code, result.stop_reason) == (3, "exit")
    assert b"43 132" in shown
    assert result.stdout.encode() == bytes(shown)
    assert "got typed" in result.stdout
    with pytest.raises(ProcessNotFound):
        await terminal.send("late")


async def test_a_shell_is_there_without_a_command(sandbox: AsyncSandbox) -> None:
    async with await sandbox.pty.create(cols=100, rows=30, envs={"GREETING": "hello"}) as terminal:
        await terminal.send("echo $GREETING $TERM; exit 0\n")
        assert "hello xterm-256color" in (await terminal.wait()).stdout
    assert await terminal.read() == b""
    assert not await terminal.kill()


async def test_o15_what_a_terminal_shows_survives_lost_connections(sandbox: AsyncSandbox, line: Cutter) -> None:
    """libmodal#245: large output of a terminal, here over a line that is cut."""
    terminal = await sandbox.pty.create("stty -opost; read x; seq 30000", cols=200)
    line.cut_after(900, 40_000, 60_000)
    await terminal.send("go\n")
    shown = (await terminal.wait()).stdout
    assert shown.endswith("".join(f"{number}\n" for number in range(1, 30001)))
    assert shown.count("\n15000\n") == 1
    assert line.cuts == 3


async def test_another_client_follows_a_terminal(sandbox: AsyncSandbox) -> None:
    async with await sandbox.pty.create("echo shown; read x; echo $x") as first:
        async with await sandbox.pty.connect(first.pid, offset=0) as second:
            await first.send("both\n")
            assert "shown" in (await second.wait()).stdout
        assert "both" in (await first.wait()).stdout


@pytest.mark.parametrize(("cols", "rows", "field"), [(0, 24, "cols"), (80, 0, "rows"), (70_000, 24, "cols")])
async def test_a_size_that_no_terminal_has_is_refused(sandbox: AsyncSandbox, cols: int, rows: int, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await sandbox.pty.create(cols=cols, rows=rows)
    assert refused.value.details["field"] == field


def test_the_synchronous_half_types_and_reads_too(agent_doors: Doors) -> None:
    with Sandbox.create(doors=agent_doors) as sandbox:
        with sandbox.pty.create("read x; echo got $x") as terminal:
            terminal.send("it\n")
            shown = b""
            while b"got it" not in shown:
                shown += terminal.read()
        handle = sandbox.commands.start("cat", stdin=True)
        handle.send_stdin("sent")
        handle.close_stdin()
        assert handle.wait().stdout == "sent"
