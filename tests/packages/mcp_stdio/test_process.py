"""The server as its client sees it: a process, two pipes, an end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from tests.packages.mcp_stdio.conftest import SERVER, Journal, OpenServer
from tests.packages.mcp_stdio.raw_client import ERAS, Era, clean_environ

pytestmark = pytest.mark.anyio

LONGEST_END_S = 5.0


@pytest.mark.parametrize("era", ERAS)
async def test_m1_prints_of_dependencies_and_children_never_reach_stdout(era: Era, open_server: OpenServer) -> None:
    """mcp-hangar#563 and others. The client fails on the first line of stdout that is no frame."""
    async with open_server(era) as client:
        await client.request("tools/list")
        await client.call("run_command", {"command": "echo"})
    assert client.process.returncode == 0
    noise = client.stderr.decode()
    for where in ("start", "import of the tool set", "handler"):
        for way in ("print", "the original stdout", "descriptor 1", "a child"):
            assert f"{where}: {way}" in noise


@pytest.mark.parametrize("era", ERAS)
async def test_m3_end_of_stdin_destroys_every_owned_sandbox(
    era: Era, open_server: OpenServer, journal: Journal
) -> None:
    """python-sdk#2231; seed 001: session end destroys every sandbox of the session."""
    async with open_server(era) as client:
        await client.call("create_sandbox", {})
        await client.call("create_sandbox", {})
        started = time.monotonic()
        await client.close_stdin()
        assert await client.process.wait() == 0
    assert time.monotonic() - started < LONGEST_END_S
    assert journal.lines[-3:] == ["destroy sb-0", "destroy sb-1", "session closed"]


async def test_m3_a_killed_parent_ends_the_server_although_stdin_stays_open(journal: Journal) -> None:
    """Proxyman#2727: servers whose stdin a sibling had inherited lived on."""
    launcher = f"import subprocess, sys; subprocess.Popen({SERVER!r}); sys.stdin.close(); import signal; signal.pause()"
    environ = clean_environ(JOURNAL=str(journal.path))
    pipe = subprocess.PIPE
    with anyio.fail_after(30):
        async with await anyio.open_process([sys.executable, "-c", launcher], stdin=pipe, env=environ) as parent:
            assert parent.stdin is not None
            assert parent.stdout is not None
            await parent.stdin.send(_handshake() + _call(1, "create_sandbox", {}))
            await journal.wait_for("create sb-0")
            parent.kill()
            with anyio.fail_after(LONGEST_END_S + 1):
                async for _ in parent.stdout:  # ends when the server, its last holder, has exited
                    pass
    assert journal.lines[-2:] == ["destroy sb-0", "session closed"]


async def test_m4_a_client_that_stops_reading_ends_the_server(journal: Journal) -> None:
    """mcp-server-cloudflare#487: EPIPE in a loop at 100 % CPU."""
    environ = clean_environ(JOURNAL=str(journal.path))
    read_end, write_end = os.pipe()
    with anyio.fail_after(30):
        async with await anyio.open_process(SERVER, stdout=write_end, env=environ) as process:
            os.close(write_end)
            assert process.stdin is not None
            await process.stdin.send(_handshake() + _call(1, "create_sandbox", {}))
            await journal.wait_for("create sb-0")
            os.close(read_end)
            await process.stdin.send(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
            assert await process.wait() == 0
    assert journal.lines[-2:] == ["destroy sb-0", "session closed"]


@pytest.mark.parametrize("era", ERAS)
async def test_m6_a_cancelled_call_stops_its_handler_and_gets_no_answer(
    era: Era, open_server: OpenServer, journal: Journal
) -> None:
    """codex#20925: the command went on, or its answer came late."""
    async with open_server(era) as client:
        sleeping = await client.post_call("run_command", {"command": "sleep"})
        await journal.wait_for("sleeping")
        await client.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sleeping, "reason": "x"}}
        )
        await journal.wait_for("cancelled")
        result = await client.call("run_command", {"command": "next"})
        assert result["structuredContent"]["stdout"] == "next"
    assert [frame for frame in client.frames if frame.get("id") == sleeping] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_server_in_order(
    number: signal.Signals, open_server: OpenServer, journal: Journal
) -> None:
    """Checklist 145, with a create in flight (checklist 320): no orphan."""
    async with open_server() as client:
        await client.call("create_sandbox", {})
        await client.post_call("create_sandbox", {"timeout": 86400})
        await journal.wait_for("create is in flight")
        started = time.monotonic()
        client.process.send_signal(number)
        assert await client.process.wait() == 0
    assert time.monotonic() - started < LONGEST_END_S
    assert journal.lines[-3:] == ["destroy sb-0", "destroy sb-1", "session closed"]


async def test_end_of_stdin_with_a_create_in_flight_leaves_no_orphan(open_server: OpenServer, journal: Journal) -> None:
    """Checklist 320."""
    async with open_server() as client:
        await client.post_call("create_sandbox", {"timeout": 86400})
        await journal.wait_for("create is in flight")
        await client.close_stdin()
        assert await client.process.wait() == 0
    assert journal.lines[-2:] == ["destroy sb-0", "session closed"]


async def test_cleaning_up_that_hangs_is_cut_off_within_5_seconds(open_server: OpenServer, journal: Journal) -> None:
    """The sandboxes then end at their own deadline; the client's machine is not kept waiting."""
    async with open_server() as client:
        await client.post_call("run_command", {"command": "stubborn"})
        await journal.wait_for("stubborn")
        started = time.monotonic()
        await client.close_stdin()
        assert await client.process.wait() == 1
    assert time.monotonic() - started < LONGEST_END_S
    assert b"cleaning up did not finish" in client.stderr


async def test_requests_that_are_piped_in_are_answered_before_the_end(journal: Journal) -> None:
    """`printf … | sandbox-mcp`: stdin is at its end before the first answer is ready."""
    script = _handshake() + _call(1, "run_command", {"command": "echo"}) + b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    environ = clean_environ(JOURNAL=str(journal.path))
    with anyio.fail_after(30):
        done = await anyio.run_process(SERVER, input=script, env=environ)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["result"]["structuredContent"]["stdout"] == "echo"
    assert answers[2]["result"] == {}


async def test_input_from_a_file_is_served_like_a_pipe(journal: Journal, tmp_path: Path) -> None:
    script = tmp_path / "requests"
    script.write_bytes(_handshake() + _call(1, "run_command", {"command": "echo"}))
    output = tmp_path / "answers"
    environ = clean_environ(JOURNAL=str(journal.path))
    with anyio.fail_after(30), script.open("rb") as source, output.open("wb") as target:
        await anyio.run_process(SERVER, stdin=source, stdout=target, env=environ)
    assert [json.loads(line)["id"] for line in output.read_bytes().splitlines()] == [0, 1]


async def test_a_server_without_stdin_ends_at_once(journal: Journal) -> None:
    environ = clean_environ(JOURNAL=str(journal.path))
    with anyio.fail_after(30):
        done = await anyio.run_process(["sh", "-c", 'exec "$@" <&-', "sh", *SERVER], env=environ)
    assert done.stdout == b""


async def test_a_server_without_stdout_says_so_and_fails(journal: Journal) -> None:
    environ = clean_environ(JOURNAL=str(journal.path))
    with anyio.fail_after(30):
        done = await anyio.run_process(["sh", "-c", 'exec "$@" >&-', "sh", *SERVER], env=environ, check=False)
    assert done.returncode == 1
    assert b"stdout is closed" in done.stderr


async def test_a_person_at_a_terminal_learns_what_it_waits_for(journal: Journal) -> None:
    controller, terminal = os.openpty()
    environ = clean_environ(JOURNAL=str(journal.path))
    with anyio.fail_after(30):
        async with await anyio.open_process(SERVER, stdin=terminal, env=environ) as process:
            os.close(terminal)
            assert process.stderr is not None
            said = b""
            while b"Ctrl-D" not in said:
                said += await process.stderr.receive()
            os.write(controller, b"\x04")
            assert await process.wait() == 0
    os.close(controller)


async def test_nothing_is_opened_before_a_call_needs_it(open_server: OpenServer, journal: Journal) -> None:
    """Clients start a server twice to learn its era: that must cost nothing (mcp.md 3.2)."""
    async with open_server() as client:
        await client.request("ping")
    assert journal.lines == []


async def test_the_session_is_opened_in_the_background_after_the_tools_were_listed(
    open_server: OpenServer, journal: Journal
) -> None:
    async with open_server() as client:
        await client.request("tools/list")
        await journal.wait_for("session opened")


async def test_ping_and_other_calls_are_answered_while_a_call_runs(open_server: OpenServer, journal: Journal) -> None:
    """Checklist 299: within 0.75 s."""
    async with open_server() as client:
        await client.post_call("run_command", {"command": "sleep"})
        await journal.wait_for("sleeping")
        with anyio.fail_after(0.75):
            assert (await client.request("ping"))["result"] == {}
        result = await client.call("run_command", {"command": "meanwhile"})
        assert result["structuredContent"]["stdout"] == "meanwhile"


@pytest.mark.parametrize("era", ERAS)
async def test_a_line_over_8_mib_is_answered_and_the_next_one_served(era: Era, open_server: OpenServer) -> None:
    """Checklist 298."""
    async with open_server(era) as client:
        request_id = await client.post_call("write_file", {"path": "/f", "content": "x" * (9 * 1024 * 1024)})
        answer = await client.answer(request_id)
        assert answer["error"]["code"] == -32600
        assert "8 MiB" in answer["error"]["message"]
        for size in (70_000, 4 * 1024 * 1024):
            result = await client.call("write_file", {"path": "/f", "content": "x" * size})
            assert result["structuredContent"] == {"success": True, "bytes_written": size}


async def test_a_large_result_arrives_whole_although_the_client_reads_late(open_server: OpenServer) -> None:
    """More than a pipe holds: the writer waits, and the frame is not torn."""
    async with open_server() as client:
        text = "é\u2028" * 10_000
        first = await client.post_call("run_command", {"command": text})
        second = await client.post_call("run_command", {"command": "short"})
        assert (await client.answer(first))["result"]["structuredContent"]["stdout"] == text
        assert (await client.answer(second))["result"]["structuredContent"]["stdout"] == "short"


async def test_broken_lines_are_answered_and_the_connection_goes_on(open_server: OpenServer) -> None:
    """Checklist 297."""
    async with open_server() as client:
        await client.send_bytes(b'{"jsonrpc":"2.0","id":\n[]\n{"jsonrpc":"2.0","id":77,"method":"ping","params":[]}\n')
        assert (await client.answer(77))["error"]["code"] == -32602
        assert [f["error"]["code"] for f in client.frames if "id" in f and f["id"] is None] == [-32700, -32600]
        assert (await client.request("no/such/method"))["error"]["code"] == -32601
        assert (await client.request("ping"))["result"] == {}


async def test_half_a_character_is_refused_with_the_name_of_the_argument(open_server: OpenServer) -> None:
    async with open_server() as client:
        result = await client.call("run_command", {"command": "echo \ud83d"})
    said = json.loads(result["content"][0]["text"])
    assert said["details"] == {"field": "command", "rule": "unicode"}


async def test_a_crash_of_a_handler_tells_the_client_nothing_about_it(open_server: OpenServer) -> None:
    """The handshake era of the library would send the text of the exception."""
    async with open_server() as client:
        result = await client.call("run_command", {"command": "crash"})
        assert result["isError"]
        assert json.loads(result["content"][0]["text"])["code"] == "internal_error"
    assert b"sk-secret" not in client.stderr
    assert "sk-secret" not in json.dumps(client.frames)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--set"],
        ["--set", ""],
        ["--set="],
        ["--set", "nope"],
        ["--set", "sandbox", "--set", "sandbox"],
        ["sandbox"],
    ],
)
async def test_a_missing_or_unknown_set_exits_2_and_names_set(words: list[str], journal: Journal) -> None:
    """Checklist 329: stdout empty, stdin not awaited."""
    command = [sys.executable, "-m", "cloche_mcp_stdio", *words]
    with anyio.fail_after(30):
        async with await anyio.open_process(command, env=clean_environ()) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            said = b"".join([chunk async for chunk in process.stderr])
            assert await process.wait() == 2
            assert [chunk async for chunk in process.stdout] == []
    assert b"--set" in said


@pytest.mark.parametrize(
    "words",
    [
        ["--tools", "nope"],
        ["--exclude-tools=nope"],
        ["--tools=run_command", "--read-only"],
        ["--tools"],
        ["--read-only", "--read-only"],
    ],
)
async def test_a_choice_of_tools_that_cannot_be_meant_exits_2(words: list[str]) -> None:
    """Before anything is served: nothing on stdout, and what was typed is not echoed."""
    command = [sys.executable, "-m", "cloche_mcp_stdio", "--set", "sandbox", *words]
    with anyio.fail_after(30):
        done = await anyio.run_process(command, env=clean_environ(), check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"nope" not in done.stderr


async def test_m18_only_the_chosen_tools_are_served() -> None:
    """OpenSandbox PR#145."""
    command = [
        sys.executable,
        "-m",
        "cloche_mcp_stdio",
        "--set=sandbox",
        "--tools=run_command",
        "--exclude-tools",
        "run_code",
    ]
    listing = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}).encode() + b"\n"
    with anyio.fail_after(30):
        done = await anyio.run_process(command, input=_handshake() + listing, env=clean_environ())
    answer = next(found for line in done.stdout.splitlines() if (found := json.loads(line)).get("id") == 7)
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["run_command"]


async def test_help_and_version_are_printed_for_people() -> None:
    for word, expected in (("--help", b"usage: sandbox-mcp --set NAME"), ("--version", b"sandbox-mcp 0.1.0")):
        done = await anyio.run_process([sys.executable, "-m", "cloche_mcp_stdio", word], env=dict(os.environ))
        assert done.stdout.startswith(expected)


def _handshake() -> bytes:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    return (
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode()
        + b'\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )


def _call(request_id: int, tool: str, arguments: dict[str, object]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}).encode() + b"\n"
