"""The handshake era over HTTP: one session per Mcp-Session-Id, from hello to the end of its sandboxes."""

from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cloche_contract.errors import ProviderUnavailable
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import HELLO, message_of, raw, result_of, served

pytestmark = pytest.mark.anyio

# Long enough for the next request of a client on a busy machine, and short enough to be waited for.
SHORT_S = 2.0


async def test_a_session_has_its_own_default_sandbox(unsandboxed_plane: ScriptedPlane, tmp_path: Path) -> None:
    """Checklist 154, 155; seed 001, part 3."""
    async with served() as server, raw(server) as one, raw(server) as other:
        assert one.session_id != other.session_id
        await one.value("write_file", {"path": str(tmp_path / "one"), "content": "one"})
        await other.value("run_command", {"command": "true"})
        mine, theirs = await one.value("get_sandbox"), await other.value("get_sandbox")
        assert mine["sandbox_id"] != theirs["sandbox_id"]
        assert len(unsandboxed_plane.alive) == 2
        assert (await one.value("get_sandbox"))["sandbox_id"] == mine["sandbox_id"]


async def test_the_default_template_of_the_factory_is_base(scripted_plane: ScriptedPlane) -> None:
    """Checklist 140."""
    async with served() as server, raw(server) as client:
        await client.value("create_sandbox")
        assert (await client.value("get_sandbox"))["template"] == "base"


async def test_delete_destroys_the_sandboxes_of_the_session_and_of_no_other(scripted_plane: ScriptedPlane) -> None:
    """Checklist 146."""
    async with served() as server, raw(server) as one, raw(server) as other:
        await one.value("create_sandbox")
        await one.value("create_sandbox")
        kept = await other.value("create_sandbox")
        answer = await one.bye()
        assert (answer.status_code, answer.json()) == (200, {"status": "session_terminated"})
        assert scripted_plane.alive == [kept["sandbox_id"]]
        assert (await one.post(one.calling("list_sandboxes"))).status_code == 404
        assert (await one.bye()).status_code == 404
        assert (await other.value("get_sandbox"))["sandbox_id"] == kept["sandbox_id"]


async def test_an_ended_session_goes_on_destroying_while_its_server_lives(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 320: the few seconds are for the end of the process; a busy machine must not leave an orphan."""
    monkeypatch.setattr("cloche_sdk.session.END_BOUND_S", 0.01)
    async with served() as server, raw(server) as client:
        await client.value("create_sandbox")
        scripted_plane.script.fail_next("kill", ProviderUnavailable(), times=2)
        assert (await client.bye()).status_code == 200
        assert scripted_plane.alive == []
    async with served() as server, raw(server) as client:
        await client.value("create_sandbox")
        scripted_plane.script.fail_next("kill", ProviderUnavailable(), times=100_000)
    assert len(scripted_plane.alive) == 1, "the end of a server waits for nobody"


async def test_the_end_of_the_server_destroys_the_sandboxes_of_every_session(scripted_plane: ScriptedPlane) -> None:
    """Checklist 145: a lifespan that ends takes every session with it."""
    async with served() as server, raw(server) as one, raw(server) as other:
        await one.value("create_sandbox")
        await other.value("create_sandbox")
        assert len(scripted_plane.alive) == 2
    assert scripted_plane.alive == []


async def test_an_idle_session_ends_without_any_traffic(scripted_plane: ScriptedPlane) -> None:
    """Checklist 147, 321; W2: nobody has to ask for the expiry."""
    async with served(session_ttl_seconds=SHORT_S) as server, raw(server) as client:
        kill = scripted_plane.script.hold_next("kill")
        await client.value("create_sandbox")
        await kill.reached.wait()
        kill.release()
        assert (await client.post(client.calling("get_sandbox"))).status_code == 404
    assert scripted_plane.alive == []


@pytest.mark.parametrize("ending", ["DELETE", "expiry", "server"])
async def test_a_session_that_ends_while_it_creates_leaves_no_orphan(
    ending: str, scripted_plane: ScriptedPlane
) -> None:
    """Checklist 320; W1, W3: the sandbox is owned before the platform answers, and killed when it does."""
    async with served(session_ttl_seconds=SHORT_S) as server, raw(server) as client:
        create = scripted_plane.script.hold_next("create", answer_only=True)
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.post, client.calling("create_sandbox"))
            await create.reached.wait()
            assert len(scripted_plane.alive) == 1
            if ending == "DELETE":
                calls.start_soon(client.bye)
            elif ending == "server":
                assert server.server is not None
                server.server.end()
            else:
                # The client cancels its call, so that nothing keeps the session from expiring.
                notice = {"method": "notifications/cancelled", "params": {"requestId": 1}}
                await client.post({"jsonrpc": "2.0", **notice})
            await create.left.wait()
            create.release()
    assert scripted_plane.alive == []


async def test_a_call_in_flight_keeps_its_session_alive(scripted_plane: ScriptedPlane) -> None:
    """Checklist 321, W3: a call that takes longer than the idle time is no idle time."""
    async with served(session_ttl_seconds=SHORT_S) as server, raw(server) as busy, raw(server) as idle:
        create = scripted_plane.script.hold_next("create")
        async with anyio.create_task_group() as calls:
            calls.start_soon(busy.value, "create_sandbox")
            await create.reached.wait()
            # The other session was made, and used, after the call began: when it has expired, the call is older still.
            kill = scripted_plane.script.hold_next("kill")
            await idle.value("create_sandbox")
            await kill.reached.wait()
            kill.release()
            create.release()
        assert (await busy.value("get_sandbox"))["status"] == "running"


async def test_m5_an_unknown_session_is_not_found_so_that_clients_start_anew(scripted_plane: ScriptedPlane) -> None:
    """neotoma#1923, claude-code#62008: after a restart, 400 or 500 left clients stuck."""
    async with served() as server, raw(server) as client:
        client.session_id = "0123456789abcdef0123456789abcdef"
        for message in (client.calling("list_sandboxes"), HELLO, client.request("ping")):
            answer = await client.post(message)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == -32600
        assert client.session_id not in answer.text


async def test_m16_a_request_without_a_session_says_what_to_send(scripted_plane: ScriptedPlane) -> None:
    """opencode remote, searxng#173."""
    async with served() as server, raw(server, greet=False) as client:
        answer = await client.post(client.calling("list_sandboxes"))
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == -32600
        assert "Mcp-Session-Id" in answer.json()["error"]["message"]


async def test_sessions_are_limited_and_an_ended_one_makes_room(scripted_plane: ScriptedPlane) -> None:
    """Checklist 300, 302."""
    async with served(max_sessions=1) as server, raw(server) as one, raw(server, greet=False) as other:
        refused = await other.post(HELLO)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, -32000)
        assert int(refused.headers["retry-after"]) > 0
        await one.bye()
        await other.hello()


async def test_a_hello_that_is_refused_leaves_no_session(scripted_plane: ScriptedPlane) -> None:
    async with served(max_sessions=1) as server, raw(server, greet=False) as client:
        refused = await client.post(HELLO, Accept="text/html")
        assert refused.status_code == 406
        wrong = message_of(await client.post({**HELLO, "params": {}}))
        assert wrong["error"]["code"] == -32602


async def test_concurrent_first_calls_of_a_session_share_one_sandbox(unsandboxed_plane: ScriptedPlane) -> None:
    """Checklist 138, 327."""
    async with served() as server, raw(server) as client:
        async with anyio.create_task_group() as calls:
            for _ in range(6):
                calls.start_soon(client.value, "run_command", {"command": "true"})
        assert len(unsandboxed_plane.alive) == 1


async def test_concurrent_calls_with_one_foreign_id_connect_to_it_once(unsandboxed_plane: ScriptedPlane) -> None:
    """Checklist 327."""
    async with served() as server, raw(server) as maker, raw(server) as client:
        made = await maker.value("create_sandbox")
        connect = unsandboxed_plane.script.hold_next("connect")
        async with anyio.create_task_group() as calls:
            for number in range(4):
                arguments = {"command": f"echo {number}", "sandbox_id": made["sandbox_id"]}
                calls.start_soon(client.value, "run_command", arguments)
            await connect.reached.wait()
            connect.release()
        assert len(unsandboxed_plane.script.of("connect")) == 1


async def test_a_second_request_with_an_id_in_use_is_refused(scripted_plane: ScriptedPlane) -> None:
    """It would take the answer of the first one, which then would wait for ever."""
    async with served() as server, raw(server) as client:
        create = scripted_plane.script.hold_next("create")
        message = client.calling("create_sandbox")
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.post, message)
            await create.reached.wait()
            refused = await client.post({**message, "id": str(message["id"])})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
            create.release()


async def test_a_version_is_negotiated_and_never_an_error(scripted_plane: ScriptedPlane) -> None:
    """Checklist 295."""
    async with served() as server:
        for asked, answered in {"2025-06-18": "2025-06-18", "1999-01-01": "2025-11-25"}.items():
            async with raw(server, greet=False) as client:
                hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": asked}}
                assert result_of(await client.post(hello))["protocolVersion"] == answered


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_client_lists_and_calls(mode: str, unsandboxed_plane: ScriptedPlane) -> None:
    async with served() as server, Client(streamable_http_client(server.url), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[0] == "create_sandbox"
        ran = await client.call_tool("run_command", {"command": "echo hello"})
        assert ran.structured_content is not None
        assert ran.structured_content["stdout"] == "hello\n"
