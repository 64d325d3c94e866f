"""The era without sessions: every call stands for itself, and a sandbox is known by its id to its principal alone.

Source: decisions D14, D15; MCP 2026-07-28; mcp.md 1.4.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_mcp_http import Limits
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import HELLO, message_of, modern, raw, result_of, served

pytestmark = pytest.mark.anyio
TOKENS = {"alice": "a" * 20, "bob": "b" * 20}


async def test_each_call_without_an_id_makes_a_sandbox_of_its_own_and_names_it(
    unsandboxed_plane: ScriptedPlane, tmp_path: Path
) -> None:
    """Decision D14: there is no default; the result says which id to pass on."""
    async with served() as server, modern(server) as client:
        made = await client.value("write_file", {"path": str(tmp_path / "kept"), "content": "kept"})
        assert "sandbox_id" in made["note"]
        other = await client.value("run_command", {"command": "true"})
        assert len(unsandboxed_plane.alive) == 2
        assert {made["sandbox_id"], other["sandbox_id"]} == set(unsandboxed_plane.alive)
        read = await client.value("read_file", {"path": str(tmp_path / "kept"), "sandbox_id": made["sandbox_id"]})
        assert (read["content"], read["sandbox_id"]) == ("kept", made["sandbox_id"])
        assert "note" not in read


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_code", {"code": "1"}),
        ("run_command", {"command": "true"}),
        ("write_file", {"path": "TMP/x", "content": ""}),
        ("list_files", {"path": "/tmp"}),
    ],
)
async def test_every_result_of_work_names_its_sandbox(
    tool: str, arguments: Mapping[str, Any], unsandboxed_plane: ScriptedPlane, tmp_path: Path
) -> None:
    """Decision D14."""
    arguments = {name: str(value).replace("TMP", str(tmp_path)) for name, value in arguments.items()}
    async with served() as server, modern(server) as client:
        first = await client.value(tool, arguments)
        assert unsandboxed_plane.alive == [first["sandbox_id"]]
        again = await client.value(tool, {**arguments, "sandbox_id": first["sandbox_id"]})
        assert again["sandbox_id"] == first["sandbox_id"]
        assert len(unsandboxed_plane.alive) == 1


async def test_a_call_that_fails_leaves_no_sandbox_that_nobody_knows(unsandboxed_plane: ScriptedPlane) -> None:
    async with served() as server, modern(server) as client:
        kill = unsandboxed_plane.script.hold_next("kill")
        assert await client.error("read_file", {"path": "/no/such/file"}) == "file_not_found"
        await kill.reached.wait()
        kill.release()
        await kill.left.wait()
    assert unsandboxed_plane.alive == []


async def test_a_client_that_vanishes_takes_its_call_and_the_sandbox_of_the_call_with_it(
    unsandboxed_plane: ScriptedPlane,
) -> None:
    """The issue: in this era the end of the connection is the cancellation."""
    async with served() as server:
        kill = unsandboxed_plane.script.hold_next("kill")
        create = unsandboxed_plane.script.hold_next("create", answer_only=True)
        async with modern(server) as client, anyio.create_task_group() as calls:
            calls.start_soon(client.post, client.calling("run_command", {"command": "sleep 60"}))
            await create.reached.wait()
            create.release()
            await create.left.wait()
            calls.cancel_scope.cancel()
        await kill.reached.wait()
        kill.release()
        await kill.left.wait()
    assert unsandboxed_plane.alive == []


async def test_tools_that_need_a_default_say_that_there_is_none(scripted_plane: ScriptedPlane) -> None:
    async with served() as server, modern(server) as client:
        await client.value("create_sandbox")
        for tool in ("get_sandbox", "kill_sandbox"):
            assert await client.error(tool) == "no_default_sandbox"
        assert await client.error("set_sandbox_timeout", {"timeout": 60}) == "no_default_sandbox"
        assert len(scripted_plane.alive) == 1


async def test_a_principal_has_so_many_sandboxes_and_no_more(scripted_plane: ScriptedPlane) -> None:
    """Decision D14: a cap per principal; a sandbox whose lease is over no longer counts."""
    limits = Limits(sandboxes_per_principal=2)
    async with (
        served(limits=limits, tokens=TOKENS) as server,
        modern(server, TOKENS["alice"]) as alice,
        modern(server, TOKENS["bob"]) as bob,
    ):
        first = await alice.value("create_sandbox")
        await alice.value("create_sandbox")
        assert await alice.error("create_sandbox") == "quota_exceeded"
        await bob.value("create_sandbox")
        await alice.value("kill_sandbox", {"sandbox_id": first["sandbox_id"]})
        await alice.value("create_sandbox")


async def test_a_lease_that_is_over_no_longer_counts(scripted_plane: ScriptedPlane) -> None:
    async with served(limits=Limits(sandboxes_per_principal=1)) as server, modern(server) as client:
        made = await client.value("create_sandbox", {"timeout": 1})
        await scripted_plane.expire(made["sandbox_id"])
        # Until a second has passed on the server's clock; `served` bounds it.
        while (await client.call("create_sandbox"))["isError"]:
            await anyio.sleep(0.05)


async def test_the_lease_is_renewed_by_each_use_of_its_maker(unsandboxed_plane: ScriptedPlane) -> None:
    """Decision D15."""
    async with served() as server, modern(server) as client:
        made = await client.value("create_sandbox", {"timeout": 300})
        before = len(unsandboxed_plane.script.of("set_timeout"))
        await client.value("set_sandbox_timeout", {"timeout": 5, "sandbox_id": made["sandbox_id"]})
        await client.value("set_sandbox_timeout", {"timeout": 600, "sandbox_id": made["sandbox_id"]})
        await client.value("run_command", {"command": "true", "sandbox_id": made["sandbox_id"]})
        assert len(unsandboxed_plane.script.of("set_timeout")) >= before + 2
        assert unsandboxed_plane.lifetime_left_s(made["sandbox_id"]) > 500


async def test_l15_l17_a_lease_that_is_over_is_told_as_such(unsandboxed_plane: ScriptedPlane) -> None:
    """OpenSandbox#759, E2B#736: a generic 502 or 404; here the error says that the lifetime is over."""
    async with served() as server, modern(server) as client:
        made = await client.value("run_command", {"command": "true"})
        await unsandboxed_plane.expire(made["sandbox_id"])
        again = await client.error("run_command", {"command": "true", "sandbox_id": made["sandbox_id"]})
        assert again in ("sandbox_expired", "sandbox_lost")
        assert await client.error("get_sandbox", {"sandbox_id": made["sandbox_id"]}) == "sandbox_not_found"


async def test_discovery_needs_no_hello_and_lists_are_cacheable(scripted_plane: ScriptedPlane) -> None:
    """MCP 2026-07-28: server/discover, ttlMs and cacheScope; no Mcp-Session-Id."""
    async with served() as server, modern(server) as client:
        answer = await client.post(client.request("server/discover"))
        found = result_of(answer)
        assert "mcp-session-id" not in answer.headers
        assert "2026-07-28" in found["supportedVersions"]
        assert set(found["capabilities"]) == {"tools"}
        listed = result_of(await client.post(client.request("tools/list")))
        assert (listed["ttlMs"] > 0, listed["cacheScope"]) == (True, "public")


async def test_both_eras_list_the_same_tools(scripted_plane: ScriptedPlane) -> None:
    """Checklist 107."""
    async with served() as server, modern(server) as one, raw(server) as other:
        new = result_of(await one.post(one.request("tools/list")))["tools"]
        old = result_of(await other.post(other.request("tools/list")))["tools"]
        assert new == old


async def test_an_unknown_version_is_answered_with_those_that_are_served(scripted_plane: ScriptedPlane) -> None:
    """mcp.md 1.3: 400 and -32022."""
    async with served() as server, modern(server) as client:
        message = client.request("tools/list")
        meta = {**message["params"]["_meta"], "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        answer = await client.post({**message, "params": {"_meta": meta}}, MCP_Protocol_Version="2031-01-01")
        assert (answer.status_code, message_of(answer)["error"]["code"]) == (400, -32022)
        assert "2026-07-28" in message_of(answer)["error"]["data"]["supported"]


async def test_m16_a_client_without_a_session_header_is_served_in_this_era(scripted_plane: ScriptedPlane) -> None:
    """opencode remote, searxng#173."""
    async with served() as server, modern(server) as client:
        assert (await client.value("list_sandboxes"))["sandboxes"] == []


async def test_the_end_of_the_server_ends_what_was_leased(scripted_plane: ScriptedPlane) -> None:
    """Checklist 145."""
    async with served() as server, modern(server) as client:
        await client.value("create_sandbox")
    assert scripted_plane.alive == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_m15_what_one_principal_made_is_not_found_by_another(era: str, unsandboxed_plane: ScriptedPlane) -> None:
    """hive#2762, mcp-context-forge PR#4283; the issue: ids, lists, tasks and files of one are not found."""
    connect = raw if era == "legacy" else modern
    async with (
        served(tokens=TOKENS) as server,
        connect(server, TOKENS["alice"]) as alice,
        connect(server, TOKENS["bob"]) as bob,
    ):
        made = await alice.value("create_sandbox")
        mine = {"sandbox_id": made["sandbox_id"]}
        task = await alice.value("start_task", {**mine, "command": "sleep 60"})
        calls: list[tuple[str, dict[str, Any]]] = [
            ("get_sandbox", mine),
            ("set_sandbox_timeout", {**mine, "timeout": 60}),
            ("run_code", {**mine, "code": "1"}),
            ("run_command", {**mine, "command": "true"}),
            ("read_file", {**mine, "path": "/etc/hostname"}),
            ("write_file", {**mine, "path": "/no/such/folder/x", "content": ""}),
            ("list_files", mine),
            ("start_task", {**mine, "command": "true"}),
            ("get_task", {**mine, "task_id": task["task_id"]}),
            ("cancel_task", {**mine, "task_id": task["task_id"]}),
            ("kill_sandbox", mine),
        ]
        for tool, arguments in calls:
            assert await bob.error(tool, arguments) == "sandbox_not_found", tool
            qualified = {**arguments, "sandbox_id": f"scripted:{made['sandbox_id']}"}
            assert await bob.error(tool, qualified) == "sandbox_not_found", tool
        foreign = await bob.call("get_sandbox", mine)
        unknown = await bob.call("get_sandbox", {"sandbox_id": "sb-that-never-was"})
        assert json.loads(foreign["content"][0]["text"]) == json.loads(unknown["content"][0]["text"])
        assert (await bob.value("list_sandboxes"))["sandboxes"] == []
        assert [each["sandbox_id"] for each in (await alice.value("list_sandboxes"))["sandboxes"]] == [
            made["sandbox_id"]
        ]
        assert unsandboxed_plane.alive == [made["sandbox_id"]]


async def test_a_principal_reaches_its_sandbox_from_another_session_and_era(
    unsandboxed_plane: ScriptedPlane, tmp_path: Path
) -> None:
    """Decisions D15, D16: used, never adopted; it ends with the session that made it."""
    async with (
        served(tokens=TOKENS) as server,
        raw(server, TOKENS["alice"]) as maker,
        raw(server, TOKENS["alice"]) as session,
        modern(server, TOKENS["alice"]) as without,
    ):
        made = await maker.value("create_sandbox")
        mine = {"sandbox_id": made["sandbox_id"]}
        await session.value("write_file", {**mine, "path": str(tmp_path / "both"), "content": "both"})
        assert (await without.value("read_file", {**mine, "path": str(tmp_path / "both")}))["content"] == "both"
        assert len((await without.value("list_sandboxes"))["sandboxes"]) == 1
        await session.bye()
        assert unsandboxed_plane.alive == [made["sandbox_id"]]
        await maker.bye()
        assert unsandboxed_plane.alive == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_l15_a_principal_renews_what_it_made_from_another_server_and_others_do_not(
    era: str, unsandboxed_plane: ScriptedPlane
) -> None:
    """OpenSandbox#759; decisions D15, D16: the maker is the principal, whichever server it asks."""
    connect = raw if era == "legacy" else modern
    async with served(tokens=TOKENS) as one, served(tokens=TOKENS) as other, modern(one, TOKENS["alice"]) as maker:
        made = await maker.value("create_sandbox", {"timeout": 300})
        mine = {"sandbox_id": made["sandbox_id"]}
        async with connect(other, TOKENS["alice"]) as alice, connect(other, TOKENS["bob"]) as bob:
            await alice.value("set_sandbox_timeout", {**mine, "timeout": 60})
            assert await bob.error("run_command", {**mine, "command": "true"}) == "sandbox_not_found"
            await alice.value("get_sandbox", mine)
            assert unsandboxed_plane.lifetime_left_s(made["sandbox_id"]) <= 60
            await alice.value("run_command", {**mine, "command": "true"})
            assert 200 < unsandboxed_plane.lifetime_left_s(made["sandbox_id"]) <= 300
            await alice.value("set_sandbox_timeout", {**mine, "timeout": 3600})
            await alice.value("run_command", {**mine, "command": "true"})
            assert unsandboxed_plane.lifetime_left_s(made["sandbox_id"]) > 3000, "a use never shortens a life"
            await unsandboxed_plane.expire(made["sandbox_id"])
            gone = await alice.error("run_command", {**mine, "command": "true"})
            assert gone in ("sandbox_expired", "sandbox_lost")
            again = await alice.error("run_command", {**mine, "command": "true"})
            assert again in ("sandbox_expired", "sandbox_not_found")


async def test_without_principals_only_the_maker_renews(unsandboxed_plane: ScriptedPlane) -> None:
    """Decision D16."""
    async with served() as one, served() as other, modern(one) as maker, modern(other) as user:
        made = await maker.value("create_sandbox", {"timeout": 300})
        mine = {"sandbox_id": made["sandbox_id"]}
        await user.value("set_sandbox_timeout", {**mine, "timeout": 60})
        await user.value("run_command", {**mine, "command": "true"})
        assert unsandboxed_plane.lifetime_left_s(made["sandbox_id"]) <= 60


async def test_pages_of_a_list_count_in_what_the_principal_made(scripted_plane: ScriptedPlane) -> None:
    async with (
        served(tokens=TOKENS) as server,
        raw(server, TOKENS["alice"]) as alice,
        raw(server, TOKENS["bob"]) as bob,
    ):
        mine: list[str] = []
        for _ in range(3):
            mine.append((await alice.value("create_sandbox"))["sandbox_id"])
            await bob.value("create_sandbox")
        pages = [await alice.value("list_sandboxes", {"limit": 2, "offset": offset}) for offset in (0, 2, 4)]
        assert [[each["sandbox_id"] for each in page["sandboxes"]] for page in pages] == [mine[:0:-1], mine[:1], []]


async def test_without_principals_any_session_may_use_an_id(unsandboxed_plane: ScriptedPlane) -> None:
    """Decision D15."""
    async with served() as server, raw(server) as maker, modern(server) as other:
        made = await maker.value("create_sandbox")
        await other.value("run_command", {"command": "true", "sandbox_id": made["sandbox_id"]})


async def test_a_hello_of_the_other_era_gets_an_answer(scripted_plane: ScriptedPlane) -> None:
    async with served() as server, modern(server) as client:
        answer = await client.post({**HELLO, "params": {**HELLO["params"]}})
        assert answer.status_code in (400, 404)
        assert "error" in message_of(answer)
