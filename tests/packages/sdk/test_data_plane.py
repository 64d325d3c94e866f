"""The data plane against an agent that misbehaves: typed errors, bounds, deadlines, renewal."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_contract.errors import (
    AuthenticationFailed,
    FileNotFound,
    FileTooLarge,
    InvalidArgument,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxLost,
)
from cloche_contract.wire import connect
from cloche_sdk import AsyncSandbox, CommandInterrupted, CommandTimeout, SandboxSession
from tests.packages.sdk.stub_agent import (
    TOKEN,
    Peer,
    Request,
    begin_stream,
    end_stream,
    send_chunk,
    send_event,
    send_json,
    stub,
)


def _data(text: bytes, name: str = "stdout") -> Mapping[str, Any]:
    return {"data": {name: base64.b64encode(text).decode()}}


async def _echo(stream: Peer, request: Request) -> None:
    """A command that prints `hi` and ends well; everything else is healthy."""
    if "/process" not in request.target:
        await stream.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        return
    await begin_stream(stream)
    await send_event(stream, {"start": {"pid": 7}})
    await send_event(stream, _data(b"hi\n"))
    await send_event(stream, {"end": {"exited": True, "status": "exit status 0"}})
    await end_stream(stream)


async def test_one_connection_carries_call_after_call(tmp_path: Path) -> None:
    """L21, F22: one shared client, kept alive, closed."""
    async with stub(tmp_path, _echo) as found:
        async with await AsyncSandbox.create(doors=found.doors) as sandbox:
            for _ in range(5):
                assert (await sandbox.commands.run("x")).stdout == "hi\n"
        assert found.agent.connections == 1
        with anyio.fail_after(5):
            while found.agent.gone == 0:
                await anyio.lowlevel.checkpoint()


async def test_every_request_carries_the_token_and_the_default_timeout(tmp_path: Path) -> None:
    """T7: a default timeout always applies."""
    async with stub(tmp_path, _echo) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        await sandbox.commands.run("x")
        headers = found.agent.requests[0].headers
        assert headers["x-access-token"] == TOKEN
        assert headers["connect-timeout-ms"] == "60000"
        assert headers["cloche-kill-on-disconnect"] == "1"
        assert "cloche-renew" not in headers


async def test_an_agent_behind_an_address_is_the_same_to_the_client(tmp_path: Path) -> None:
    """D24: one data plane; a prefix of the address and the headers that route to the sandbox are kept."""
    async with stub(tmp_path, _echo, over_tcp=True) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        assert (await sandbox.commands.run("x")).stdout == "hi\n"
        request = found.agent.requests[0]
        assert request.target == "/prefix/process.Process/Start"
        assert request.headers["e2b-sandbox-id"] == "sb1"
        assert request.headers["host"].startswith("127.0.0.1:")


async def test_a_renewal_rides_on_the_request(tmp_path: Path) -> None:
    """Local runtime, lifetime: never a second round trip where the agent takes the header."""
    async with stub(tmp_path, _echo) as found, SandboxSession(found.doors) as session:
        for _ in range(2):
            async with session.use(None) as sandbox:
                await sandbox.commands.run("x")
        assert [request.headers.get("cloche-renew") for request in found.agent.requests] == ["300", "300"]
        assert found.provider.asked == ["create"]
        await session.set_timeout(None, 900)
        async with session.use(None) as sandbox:
            await sandbox.commands.run("x")
        assert found.agent.requests[-1].headers["cloche-renew"] == "900"


async def test_without_the_ability_the_provider_is_asked_before_each_use(tmp_path: Path) -> None:
    """Seed 001, rule 149."""
    async with stub(tmp_path, _echo, renew_on_request=False) as found, SandboxSession(found.doors) as session:
        async with session.use(None) as sandbox:
            await sandbox.commands.run("x")
        assert found.provider.asked == ["create", "set_timeout"]
        assert "cloche-renew" not in found.agent.requests[0].headers


async def test_a_command_that_outlasts_the_lifetime_renews_while_it_runs(tmp_path: Path) -> None:
    """Seed 001, rule 149: a use lasts as long as its command."""
    renewed = anyio.Event()

    async def answer(stream: Peer, request: Request) -> None:
        if request.target == "/health":
            await stream.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            renewed.set()
            return
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        await renewed.wait()
        await send_event(stream, {"end": {"exited": True}})
        await end_stream(stream)

    async with stub(tmp_path, answer) as found, SandboxSession(found.doors) as session:
        await session.create()
        await session.set_timeout(None, 1)
        with anyio.fail_after(5):
            async with session.use(None, busy_s=60) as sandbox:
                await sandbox.commands.run("x")
        assert found.agent.requests[1].headers["cloche-renew"] == "1"


@pytest.mark.parametrize("renew_on_request", [True, False])
async def test_a_long_command_of_the_same_principal_renews_in_another_session_too(
    renew_on_request: bool, tmp_path: Path
) -> None:
    """Decision D16: a session that did not make the sandbox, on whose principal's name it was made."""
    renewed = anyio.Event()

    async def answer(stream: Peer, request: Request) -> None:
        if request.target == "/health":
            await stream.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            renewed.set()
            return
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        await renewed.wait()
        await send_event(stream, {"end": {"exited": True}})
        await end_stream(stream)

    async with stub(tmp_path, answer, renew_on_request=renew_on_request) as found:
        found.provider.label({"cloche.principal": "alice", "cloche.lifetime": "1"})
        with anyio.fail_after(10):
            async with (
                SandboxSession(found.doors, principal="alice") as session,
                session.use("sb1", busy_s=60) as sandbox,
            ):
                found.provider.asked.clear()
                found.provider.on_renewed = renewed.set
                await sandbox.commands.run("x")
        if renew_on_request:
            assert [request.headers["cloche-renew"] for request in found.agent.requests] == ["1", "1"]
        else:
            assert "set_timeout" in found.provider.asked


@pytest.mark.parametrize("alive", [True, False])
async def test_a_stream_that_is_cut_invents_no_exit_code(tmp_path: Path, alive: bool) -> None:
    """T16: partial output, a typed end, exit code unknown."""

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        await send_event(stream, _data(b"so far"))
        stream.cut()

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        found.provider.alive = alive
        if alive:
            with pytest.raises(ProviderUnavailable):
                await sandbox.commands.run("x")
            return
        with pytest.raises(CommandInterrupted) as caught:
            await sandbox.commands.run("x")
        assert caught.value.result.stdout == "so far"
        assert caught.value.result.exit_code == -1


async def test_a_stream_without_its_last_frame_is_no_success(tmp_path: Path) -> None:
    """T16: never a made-up "complete, exit 0"."""

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        await stream.send(b"0\r\n\r\n")

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with pytest.raises(ProviderUnavailable):
            await sandbox.commands.run("x")


async def test_t22_a_dead_socket_is_a_lost_sandbox(tmp_path: Path) -> None:
    """T22: typed, at once."""
    async with stub(tmp_path, _echo) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        Path(found.agent.socket_path).unlink()
        found.provider.alive = False
        with pytest.raises(SandboxLost):
            await sandbox.commands.run("x")
        assert sandbox.link.ended


async def test_a_sandbox_that_its_provider_calls_gone_a_moment_later_is_lost(tmp_path: Path) -> None:
    """D5: being destroyed cuts the connections first."""
    async with stub(tmp_path, _echo) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        Path(found.agent.socket_path).unlink()
        found.provider.gone_after = 2
        with pytest.raises(SandboxLost):
            await sandbox.commands.run("x")
        assert found.provider.asked.count("get") == 3


async def test_t22_an_agent_that_stays_silent_is_given_up(tmp_path: Path) -> None:
    """T22: a read deadline, and never below what the command may take."""

    async def answer(stream: Peer, request: Request) -> None:
        await anyio.sleep_forever()

    async with stub(tmp_path, answer, http_timeout="1") as found, SandboxSession(found.doors) as session:
        sandbox = await session.create()
        with anyio.fail_after(10), pytest.raises(ProviderTimeout):
            await sandbox.files.read("/x")
        started = anyio.current_time()
        with anyio.fail_after(10), pytest.raises(ProviderTimeout):
            await sandbox.commands.run("x", timeout=1)
        assert anyio.current_time() - started >= 2


async def test_t22_an_agent_that_lets_a_command_run_on_is_given_up_however_busy_it_is(tmp_path: Path) -> None:
    """T22: keepalives are no reason to wait for ever."""

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        while True:
            await send_event(stream, {"keepalive": {}})
            await anyio.sleep(0.1)

    async with stub(tmp_path, answer, http_timeout="1") as found, SandboxSession(found.doors) as session:
        sandbox = await session.create()
        with anyio.fail_after(10), pytest.raises(ProviderTimeout):
            await sandbox.commands.run("x", timeout=1)


async def test_t8_the_timeout_of_the_agent_keeps_the_output_so_far(tmp_path: Path) -> None:
    """T8, T10: typed, with the partial output."""

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        await send_event(stream, _data(b"line\n"))
        error = {"error": {"code": "deadline_exceeded", "message": "the time is over"}}
        await send_chunk(stream, connect.encode_message(error, end=True))
        await stream.send(b"0\r\n\r\n")

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with pytest.raises(CommandTimeout) as caught:
            await sandbox.commands.run("x")
        result = caught.value.result
        assert (result.stdout, result.exit_code, result.timed_out) == ("line\n", 137, True)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, {"code": "not_found", "message": "secret text", "details": []}, FileNotFound),
        (404, {"code": 404, "message": "x", "cloche": {"code": "file_not_found"}}, FileNotFound),
        (401, {"code": 401, "message": "x"}, AuthenticationFailed),
        (413, {"code": 413, "message": "x"}, FileTooLarge),
        (502, {"code": 502, "message": "x"}, ProviderUnavailable),
        (500, ["no object"], ProviderFailed),
        (400, {"cloche": {"code": "a_code_of_the_future"}}, ProviderFailed),
    ],
)
async def test_an_error_of_the_agent_becomes_a_catalogue_error(
    tmp_path: Path, status: int, body: object, error: type[Exception]
) -> None:
    """D12: by its code; its text goes nowhere."""

    async def answer(stream: Peer, request: Request) -> None:
        await send_json(stream, status, body)

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with pytest.raises(error) as caught:
            await sandbox.files.read("/x")
        assert "secret text" not in str(caught.value)


@pytest.mark.parametrize(
    "frame",
    [b"\x01\x00\x00\x00\x02{}", b"\x00\xff\xff\xff\xff", b"\x00\x00\x00\x00\x02[]", b"\x00\x00\x00\x00\x02{x"],
    ids=["compressed", "too large", "no object", "no JSON"],
)
async def test_nonsense_on_the_stream_is_a_failure_of_the_provider(tmp_path: Path, frame: bytes) -> None:
    """The agent runs beside untrusted code."""

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_chunk(stream, frame)
        await anyio.sleep_forever()

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with anyio.fail_after(5), pytest.raises(ProviderFailed):
            await sandbox.commands.run("x")


async def test_f14_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """F14: by its announced size; and while reading, where none is announced."""

    async def announced(stream: Peer, request: Request) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 3000000000\r\n\r\n")

    async with stub(tmp_path, announced) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with anyio.fail_after(5), pytest.raises(FileTooLarge) as caught:
            await sandbox.files.read_bytes("/x", max_bytes=4_194_304)
        assert caught.value.details == {"size": 3_000_000_000, "limit": 4_194_304}


async def test_f14_a_file_without_a_size_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    """F14: memory stays bounded whatever the agent sends."""

    async def endless(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        while True:
            await send_chunk(stream, b"x" * 65_536)

    async with stub(tmp_path, endless) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with anyio.fail_after(5), pytest.raises(FileTooLarge):
            await sandbox.files.read_bytes("/x", max_bytes=1_000_000)


async def test_a_cancelled_command_cuts_its_stream(tmp_path: Path) -> None:
    """M6: the agent sees the connection go, and kills the tree."""
    running = anyio.Event()

    async def answer(stream: Peer, request: Request) -> None:
        await begin_stream(stream)
        await send_event(stream, {"start": {"pid": 7}})
        running.set()
        await stream.receive()

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sandbox.commands.run, "x")
                await running.wait()
                tasks.cancel_scope.cancel()
            while found.agent.gone == 0:
                await anyio.lowlevel.checkpoint()


async def test_a_path_that_is_no_unicode_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """F16, D12."""
    async with stub(tmp_path, _echo) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with pytest.raises(InvalidArgument):
            await sandbox.files.read("/\ud800")
        with pytest.raises(InvalidArgument):
            await sandbox.files.write("/x", "\ud800")
        assert found.agent.requests == []
