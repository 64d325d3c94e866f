"""The unmodified Python SDK of E2B against a local sandbox: commands and terminals.

Source: issue 3, "Shown by"; decision D24; agent-protocol, part 2.
"""

# e2b annotates a bare IO.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import os
import time
from collections.abc import Generator

import e2b_code_interpreter as e2b
import pytest
from e2b import AuthenticationException, CommandExitException, NotFoundException, PtySize, TimeoutException

from cloche_sdk import Endpoint, Sandbox
from tests.e2e.e2b_clients import async_client, client, listening_sandbox

pytestmark = pytest.mark.anyio

WITHIN_S = 30
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def sandbox() -> Generator[Sandbox]:
    with listening_sandbox("base") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def place(sandbox: Sandbox) -> Endpoint:
    return sandbox.endpoint()


@pytest.fixture(scope="module")
def theirs(place: Endpoint) -> e2b.Sandbox:
    return client(place)


def test_a_command_gives_its_output_and_its_failure(theirs: e2b.Sandbox) -> None:
    said: list[str] = []
    result = theirs.commands.run("echo out; echo err >&2", on_stdout=said.append)
    assert (result.stdout, result.stderr, result.exit_code, said) == ("out\n", "err\n", 0, ["out\n"])
    with pytest.raises(CommandExitException) as failure:
        theirs.commands.run("echo before; exit 3")
    assert (failure.value.exit_code, failure.value.stdout) == (3, "before\n")


def test_envs_and_cwd_reach_the_command(theirs: e2b.Sandbox) -> None:
    result = theirs.commands.run("echo $NAME; pwd", envs={"NAME": "two words"}, cwd="/tmp")
    assert result.stdout == "two words\n/tmp\n"


def test_a_command_runs_in_the_background_and_is_killed(theirs: e2b.Sandbox) -> None:
    handle = theirs.commands.run("echo started; sleep 60", background=True)
    assert next(iter(handle))[0] == "started\n"
    assert handle.pid in [process.pid for process in theirs.commands.list()]
    assert handle.kill()
    with pytest.raises(CommandExitException):
        handle.wait()
    assert handle.pid not in [process.pid for process in theirs.commands.list()]
    assert not theirs.commands.kill(handle.pid)


def test_a_client_connects_to_a_running_command(theirs: e2b.Sandbox) -> None:
    handle = theirs.commands.run("read line; echo got $line", background=True, stdin=True)
    again = theirs.commands.connect(handle.pid)
    handle.disconnect()
    theirs.commands.send_stdin(again.pid, "this\n")
    assert again.wait().stdout == "got this\n"


def test_stdin_is_written_and_closed(theirs: e2b.Sandbox) -> None:
    handle = theirs.commands.run("cat; echo end", background=True, stdin=True)
    handle.send_stdin("one\n")
    handle.send_stdin(b"two\n")
    handle.close_stdin()
    assert handle.wait().stdout == "one\ntwo\nend\n"


def test_stdin_is_streamed(theirs: e2b.Sandbox) -> None:
    handle = theirs.commands.run("wc -c", background=True, stdin=True)
    theirs.commands.stream_input(handle.pid, (b"x" * 1000 for _ in range(20)))
    handle.close_stdin()
    assert handle.wait().stdout.split() == ["20000"]


def test_a_command_past_its_timeout_is_stopped(theirs: e2b.Sandbox) -> None:
    with pytest.raises(TimeoutException):
        theirs.commands.run("sleep 61", timeout=1)
    # Client and agent have a clock each: the client may be the first to give up.
    give_up = time.monotonic() + WITHIN_S
    while "sleep 61" in str(theirs.commands.list()):
        assert time.monotonic() < give_up


def test_root_is_there_where_the_machine_can_map_more_users(theirs: e2b.Sandbox) -> None:
    """local-runtime, "Users": an ordinary user of the host has one id to give."""
    assert theirs.commands.run("id -un").stdout == "user\n"
    if ROOT:
        assert theirs.commands.run("id -u", user="root").stdout == "0\n"
    else:
        with pytest.raises(AuthenticationException):
            theirs.commands.run("id -u", user="root")


def test_a_wrong_token_is_refused(place: Endpoint) -> None:
    intruder = client(place, token="wrong")
    with pytest.raises(AuthenticationException):
        intruder.commands.run("true")
    with pytest.raises(AuthenticationException):
        intruder.files.read("/etc/hostname")
    with pytest.raises(Exception, match="401"):
        intruder.run_code("1")
    with pytest.raises(Exception, match="401"):
        intruder.create_code_context()


def test_a_terminal_is_typed_into_resized_and_left(theirs: e2b.Sandbox) -> None:
    shown = bytearray()
    terminal = theirs.pty.create(PtySize(rows=24, cols=80), timeout=WITHIN_S)
    theirs.pty.send_stdin(terminal.pid, b"stty size; tty\n")
    theirs.pty.resize(terminal.pid, PtySize(rows=40, cols=132))
    theirs.pty.send_stdin(terminal.pid, b"stty size; exit 0\n")
    assert terminal.wait(on_pty=shown.extend).exit_code == 0
    assert b"/dev/pts/" in shown
    assert b"40 132" in shown


def test_a_terminal_is_killed(theirs: e2b.Sandbox) -> None:
    terminal = theirs.pty.create(PtySize(rows=24, cols=80), timeout=WITHIN_S)
    assert theirs.pty.kill(terminal.pid)
    with pytest.raises(CommandExitException):
        terminal.wait()
    with pytest.raises(NotFoundException):
        theirs.pty.resize(terminal.pid, PtySize(rows=10, cols=10))


def test_git_works_through_their_helpers(theirs: e2b.Sandbox) -> None:
    """Their helpers are shell lines for `bash -l -c`."""
    theirs.git.init("/home/user/project", initial_branch="trunk")
    theirs.files.write("/home/user/project/a.txt", "a")
    theirs.git.add("/home/user/project")
    theirs.git.configure_user("Somebody", "somebody@example.org")
    theirs.git.commit("/home/user/project", "First")
    assert theirs.git.branches("/home/user/project").current_branch == "trunk"


# -- the asynchronous client ------------------------------------------------------------------------------------


async def test_async_commands_run_fail_and_time_out(place: Endpoint) -> None:
    theirs = async_client(place)
    said: list[str] = []
    result = await theirs.commands.run("echo $NAME; pwd", envs={"NAME": "a"}, cwd="/tmp", on_stdout=said.append)
    assert (result.stdout, "".join(said)) == ("a\n/tmp\n", "a\n/tmp\n")
    with pytest.raises(CommandExitException) as failure:
        await theirs.commands.run("exit 7")
    assert failure.value.exit_code == 7
    with pytest.raises(TimeoutException):
        await theirs.commands.run("sleep 61", timeout=1)


async def test_async_input_reaches_a_background_command(place: Endpoint) -> None:
    theirs = async_client(place)
    handle = await theirs.commands.run("cat; echo end", background=True, stdin=True)
    await handle.send_stdin("one\n")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "one\nend\n"
    endless = await theirs.commands.run("sleep 60", background=True)
    assert await endless.kill()
    with pytest.raises(CommandExitException):
        await endless.wait()


async def test_async_a_wrong_token_is_refused(place: Endpoint) -> None:
    with pytest.raises(AuthenticationException):
        await async_client(place, token="wrong").commands.run("true")


async def test_async_a_terminal_is_typed_into_and_resized(place: Endpoint) -> None:
    theirs = async_client(place)
    shown = bytearray()
    terminal = await theirs.pty.create(PtySize(rows=24, cols=80), on_data=shown.extend, timeout=WITHIN_S)
    await theirs.pty.resize(terminal.pid, PtySize(rows=41, cols=133))
    await theirs.pty.send_stdin(terminal.pid, b"stty size; exit 0\n")
    assert (await terminal.wait()).exit_code == 0
    assert b"41 133" in shown
