"""Background tasks through the tools, on the real agent, and what they mean for the end of a session.

The agent runs here without isolation; tests/packages/local shows them in a sandbox.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from cloche_contract.client import AgentClient
from cloche_contract.errors import ProviderUnavailable
from cloche_sdk import AsyncSandbox, Doors, SandboxSession, load_settings
from cloche_sdk._http import AgentHttp
from cloche_sdk.hidden import hidden_values
from cloche_sdk.toolset import SandboxToolSet
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.tools import Tools, open_tools

UNKNOWN = "0" * 32


async def ended(tools: Tools, started: dict[str, Any], **more: Any) -> dict[str, Any]:
    ids = {"sandbox_id": started["sandbox_id"], "task_id": started["task_id"]}
    with anyio.fail_after(60):
        while True:
            found = await tools.call("get_task", **ids, **more)
            if found["state"] != "running":
                return found
            at = {f"{name}_offset": found[f"{name}_size"] for name in ("stdout", "stderr")}
            await tools.call("get_task", **ids, **at, wait=30)


async def started(tools: Tools, command: str, **more: Any) -> dict[str, Any]:
    """A task in a default sandbox, which is made here."""
    if "sandbox_id" not in more:
        await tools.call("run_command", command="true")
    return await tools.call("start_task", command=command, **more)


async def test_a_task_starts_at_once_and_is_read_later(tools: Tools) -> None:
    """Checklist 303, 304, 318."""
    made = await started(tools, "echo out; echo err >&2; exit 3")
    assert made == {
        "task_id": made["task_id"],
        "state": "running",
        "sandbox_id": made["sandbox_id"],
        "retained_until_sandbox_ttl": True,
    }
    found = await ended(tools, made)
    assert {key: found[key] for key in ("state", "exit_code", "stop_reason", "stdout", "stderr")} == {
        "state": "failed",
        "exit_code": 3,
        "stop_reason": "exit",
        "stdout": "out\n",
        "stderr": "err\n",
    }
    assert (found["stdout_offset"], found["stdout_size"], found["stdout_truncated"]) == (4, 4, False)
    again = await tools.call("get_task", sandbox_id=made["sandbox_id"], task_id=made["task_id"], stdout_offset=4)
    assert (again["stdout"], again["stdout_offset"]) == ("", 4)


async def test_t27_long_work_is_started_at_once_and_fetched_later(tools: Tools, tmp_path: Path) -> None:
    """xpipe#870: the call is over while the work goes on; a second start is a second task and never a retry."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    made = await started(tools, f"cat {gate}", timeout=3600)
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    assert (await tools.call("get_task", **ids))["state"] == "running"
    await anyio.to_thread.run_sync(gate.write_text, "the result")
    assert (await ended(tools, made))["stdout"] == "the result"


async def test_no_sandbox_is_made_for_a_task(tools: Tools, unsandboxed_plane: ScriptedPlane) -> None:
    """Checklist 303."""
    failure = await tools.refused("start_task", command="true")
    assert failure["code"] == "no_default_sandbox"
    assert unsandboxed_plane.script.of("create") == []


async def test_an_unknown_task_and_an_unknown_sandbox_are_told_apart(tools: Tools) -> None:
    made = await started(tools, "true")
    failure = await tools.refused("get_task", sandbox_id=made["sandbox_id"], task_id=UNKNOWN)
    assert failure["code"] == "task_not_found"
    failure = await tools.refused("cancel_task", sandbox_id="nobody", task_id=made["task_id"])
    assert failure["code"] == "sandbox_not_found"


async def test_cancel_answers_with_what_there_is(tools: Tools) -> None:
    """Checklist 305: again is harmless."""
    made = await started(tools, "echo begun; sleep 600")
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    await tools.call("get_task", **ids, wait=30)
    first = await tools.call("cancel_task", **ids)
    assert (first["state"], first["stop_reason"], first["stdout"]) == ("cancelled", "cancelled", "begun\n")
    assert await tools.call("cancel_task", **ids) == first


async def test_a_task_that_cannot_start_does_not_keep_the_sandbox(
    unsandboxed_plane: ScriptedPlane, scripted_doors: Doors
) -> None:
    async with open_tools(scripted_doors) as tools:
        await tools.call("run_command", command="true")
        assert (await tools.refused("start_task", command="true", cwd="/nowhere"))["code"] == "cwd_not_found"
    assert unsandboxed_plane.alive == []


async def test_tasks_survive_the_session_and_are_read_from_another(
    unsandboxed_plane: ScriptedPlane, scripted_doors: Doors
) -> None:
    """Checklist 311: the sandbox that took a task is let go, the other ones are destroyed."""
    async with open_tools(scripted_doors) as tools:
        other = (await tools.call("create_sandbox"))["sandbox_id"]
        made = await started(tools, "echo kept", sandbox_id=(await tools.call("create_sandbox"))["sandbox_id"])
    assert unsandboxed_plane.alive == [made["sandbox_id"]]
    assert other not in unsandboxed_plane.alive
    async with open_tools(scripted_doors) as tools:
        found = await ended(tools, {**made, "sandbox_id": f"scripted:{made['sandbox_id']}"})
        assert (found["state"], found["stdout"]) == ("succeeded", "kept\n")
    assert unsandboxed_plane.alive == [made["sandbox_id"]]


async def test_killing_a_sandbox_takes_its_tasks_along(tools: Tools, unsandboxed_plane: ScriptedPlane) -> None:
    """Checklist 313."""
    made = await started(tools, "sleep 600")
    await tools.call("kill_sandbox", sandbox_id=made["sandbox_id"])
    assert unsandboxed_plane.alive == []
    failure = await tools.refused("get_task", sandbox_id=made["sandbox_id"], task_id=made["task_id"])
    assert failure["code"] == "sandbox_not_found"


async def test_a_foreign_sandbox_keeps_its_task_and_is_not_adopted(
    unsandboxed_plane: ScriptedPlane, scripted_doors: Doors
) -> None:
    """D16: used, not adopted, and not renewed."""
    foreign = await AsyncSandbox.create(doors=scripted_doors)
    try:
        async with open_tools(scripted_doors) as tools:
            made = await started(tools, "true", sandbox_id=foreign.sandbox_id)
            assert made["retained_until_sandbox_ttl"] is True
        assert unsandboxed_plane.alive == [foreign.sandbox_id]
        assert unsandboxed_plane.script.of("set_timeout") == []
    finally:
        await foreign.kill()
        await foreign.close()


async def test_a_session_that_ends_during_the_submission_restores_nothing(
    unsandboxed_plane: ScriptedPlane, scripted_doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 312: the sandbox is destroyed with the session, and nothing says that it is kept."""
    submit = AgentClient.tasks_start
    submitted, ended_meanwhile = anyio.Event(), anyio.Event()
    made: list[dict[str, Any]] = []

    async def slow_answer(self: AgentClient, request: Any, **more: Any) -> Any:
        answer = await submit(self, request, **more)
        submitted.set()
        await ended_meanwhile.wait()
        return answer

    async def start(tools: Tools) -> None:
        made.append(await tools.call("start_task", command="sleep 600"))

    monkeypatch.setattr(AgentClient, "tasks_start", slow_answer)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            async with open_tools(scripted_doors) as tools:
                await tools.call("create_sandbox")
                tasks.start_soon(start, tools)
                await submitted.wait()
            assert unsandboxed_plane.alive == []
            ended_meanwhile.set()
    assert made[0]["retained_until_sandbox_ttl"] is False


async def test_a_lost_answer_gives_the_handle_with_an_unknown_state(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 303: it is never submitted twice; the id that was chosen before finds it."""
    await tools.call("run_command", command="true")
    submit = AgentClient.tasks_start
    submitted: list[str] = []

    async def answer_lost(self: AgentClient, request: Any, **more: Any) -> Any:
        submitted.append(request.task_id)
        await submit(self, request, **more)
        raise ProviderUnavailable

    monkeypatch.setattr(AgentClient, "tasks_start", answer_lost)
    made = await tools.call("start_task", command="echo there")
    assert (made["state"], made["retained_until_sandbox_ttl"], submitted) == ("unknown", True, [made["task_id"]])
    assert "not known" in made["note"]
    assert (await ended(tools, made))["stdout"] == "there\n"


async def test_m6_a_cancelled_start_leaves_no_task(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """codex#20925: nobody will ever know its id."""
    sandbox_id = (await tools.call("create_sandbox"))["sandbox_id"]
    submit = AgentClient.tasks_start
    submitted: list[str] = []

    with anyio.CancelScope() as scope:

        async def cancelled_after(self: AgentClient, request: Any, **more: Any) -> Any:
            answer = await submit(self, request, **more)
            submitted.append(request.task_id)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            return answer

        monkeypatch.setattr(AgentClient, "tasks_start", cancelled_after)
        await tools.call("start_task", command="sleep 600")
    found = await tools.call("get_task", sandbox_id=sandbox_id, task_id=submitted[0])
    assert found["state"] == "cancelled"


async def test_a_sandbox_that_may_end_first_is_pointed_out(tools: Tools) -> None:
    """L29: the timeout is taken as it is, and the lifetime is not silently changed."""
    sandbox_id = (await tools.call("create_sandbox", timeout=300))["sandbox_id"]
    made = await tools.call("start_task", command="true", timeout=3600, sandbox_id=sandbox_id)
    assert "lifetime" in made["note"]


async def test_o18_a_result_stays_below_what_clients_take(tools: Tools) -> None:
    """rollbar-mcp#28: 200 KB of output in pages; the default page is far below 25,000 tokens."""
    made = await started(tools, "head -c 200000 /dev/zero | tr '\\0' x")
    found = await ended(tools, made)
    assert (len(found["stdout"]), found["stdout_size"]) == (16_384, 200_000)
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    size = 0
    while size < found["stdout_size"]:
        page = await tools.call("get_task", **ids, stdout_offset=size, limit=30_000)
        assert 0 < len(page["stdout"]) <= 30_000
        size = page["stdout_offset"]
    assert size == 200_000


async def test_a_gap_in_a_long_log_is_told(tools: Tools) -> None:
    """Checklist 307, O12: what is kept is documented, and what is missing is counted."""
    made = await started(tools, "head -c 3000000 /dev/zero | tr '\\0' x; echo last")
    found = await ended(tools, made, stdout_offset=1_000_000)
    assert (found["stdout_truncated"], found["stdout_size"]) == (True, 3_000_005)
    skipped = 3_000_005 - 262_144 - 1_000_000
    assert found["note"] == f"{skipped} bytes of stdout before this part are no longer kept."
    assert found["stdout_offset"] == 3_000_005 - 262_144 + 16_384
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    border = await tools.call("get_task", **ids, stdout_offset=786_432)
    assert border["stdout_offset"] == 3_000_005 - 262_144 + 16_384


async def test_secrets_of_the_server_do_not_come_back(unsandboxed_plane: ScriptedPlane) -> None:
    """Checklist 309: a program may have learned them some other way; pages may cut them anywhere."""
    environ = {"ABX_SANDBOX_API_KEY": "key-of-the-account", "GITHUB_TOKEN": "token-of-the-host", "HOME": "/nonexistent"}
    settings = load_settings(environ).override(provider="scripted")
    async with SandboxSession(Doors(settings=settings, environ=environ)) as session:
        tools = Tools(SandboxToolSet(session, hidden_values(settings, environ)))
        made = await started(tools, "echo a key-of-the-account b token-of-the-host c")
        ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
        found = await ended(tools, made)
        assert found["stdout"] == "a [REDACTED] b [REDACTED] c\n"
        text, offset = "", 0
        while offset < found["stdout_size"]:
            page = await tools.call("get_task", **ids, stdout_offset=offset, limit=7)
            text, offset = text + page["stdout"], page["stdout_offset"]
        assert text == found["stdout"]


async def test_a_task_is_a_use_that_renews_the_lifetime(tools: Tools, unsandboxed_plane: ScriptedPlane) -> None:
    """D15, L15: only the maker renews; the agent takes no renewal here, so the provider is asked once a use."""
    made = await started(tools, "true")
    before = len(unsandboxed_plane.script.of("set_timeout"))
    await tools.call("get_task", sandbox_id=made["sandbox_id"], task_id=made["task_id"])
    assert len(unsandboxed_plane.script.of("set_timeout")) == before + 1


async def test_sandbox_tasks_are_listed_oldest_first(scripted_doors: Doors, unsandboxed_plane: ScriptedPlane) -> None:
    async with await AsyncSandbox.create(doors=scripted_doors) as sandbox:
        first = await sandbox.tasks.start("true", envs={"A": "b"})
        second = await sandbox.tasks.start("true")
        assert [task.task_id for task in await sandbox.tasks.list()] == [first.task_id, second.task_id]


async def test_t24_no_connection_gives_up_before_its_work(
    scripted_doors: Doors, unsandboxed_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vercel/sandbox PR#172: how long the agent may stay silent, for each kind of work; http_timeout comes on top."""
    waited: list[float] = []
    request = AgentHttp.request

    def noting(self: AgentHttp, *words: Any, **options: Any) -> Any:
        waited.append(options["read_timeout_s"])
        return request(self, *words, **options)

    monkeypatch.setattr(AgentHttp, "request", noting)
    async with await AsyncSandbox.create(doors=scripted_doors) as sandbox:
        patience_s = sandbox.link.patience_s
        task = await sandbox.tasks.start("true", timeout=3600)
        await sandbox.run_code("1", timeout=360)
        await sandbox.tasks.get(task.task_id, wait=45)
    assert waited[1] >= 360
    assert max(waited[2:]) == 45 + patience_s
