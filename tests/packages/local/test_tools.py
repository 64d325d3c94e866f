"""Background tasks and transfers in real sandboxes, where everything runs as the user of the sandbox."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_contract.errors import NotFound
from cloche_sdk import AsyncSandbox, Doors, load_settings
from tests.packages.local.ordinary import missing, run_as_user, system_python
from tests.packages.local.sandboxes import HOST_ROOT, processes_with
from tests.packages.sdk.tools import Tools, open_tools

# One that ignores SIGTERM, one that has left the session and its streams.
LEAVES = "(trap '' TERM; exec sleep {0}) & setsid sleep {0} < /dev/null > /dev/null 2>&1 & "


@pytest.fixture
async def tools(doors: Doors) -> AsyncGenerator[Tools]:
    async with open_tools(doors) as tools:
        yield tools


async def ended(tools: Tools, ids: dict[str, Any]) -> dict[str, Any]:
    with anyio.fail_after(60):
        while True:
            found = await tools.call("get_task", **ids)
            if found["state"] != "running":
                return found
            at = {f"{name}_offset": found[f"{name}_size"] for name in ("stdout", "stderr")}
            await tools.call("get_task", **ids, **at, wait=30)


async def started(tools: Tools, command: str, **more: Any) -> dict[str, Any]:
    made = await tools.call("start_task", command=command, **more)
    return {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}


async def until_gone(sandbox_id: str, doors: Doors) -> None:
    while True:
        await AsyncSandbox.get_info_by_id(sandbox_id, doors=doors)
        await anyio.lowlevel.checkpoint()


async def test_t34_o19_a_task_outlives_the_session_until_the_lease_of_its_sandbox(doors: Doors) -> None:
    """Checklist 311; the sandbox that took it ends with its timeout, and nothing else keeps it."""
    async with open_tools(doors) as tools:
        other = (await tools.call("create_sandbox", timeout=600))["sandbox_id"]
        await tools.call("create_sandbox", timeout=600)
        ids = await started(tools, "id -un; echo done")
    assert [record.sandbox_id for record in await AsyncSandbox.list(doors=doors)] == [ids["sandbox_id"]]
    assert other != ids["sandbox_id"]
    async with open_tools(doors) as tools:
        found = await ended(tools, ids)
        assert (found["state"], found["stdout"].splitlines()) == ("succeeded", ["user", "done"])
    await AsyncSandbox.set_timeout_by_id(ids["sandbox_id"], 1, doors=doors)
    with anyio.fail_after(30), pytest.raises(NotFound):
        await until_gone(ids["sandbox_id"], doors)


async def test_a_task_that_ends_with_the_server_is_not_said_to_stay(doors: Doors) -> None:
    """Where ABX_LOCAL_END_WITH=server ties every sandbox to its process."""
    environ = {**doors.environ, "ABX_LOCAL_END_WITH": "server"}
    tied = Doors(
        settings=load_settings(environ, home=Path("/nonexistent"), workdir=Path("/nonexistent")), environ=environ
    )
    async with open_tools(tied) as tools:
        await tools.call("create_sandbox")
        assert (await tools.call("start_task", command="true"))["retained_until_sandbox_ttl"] is False


@pytest.mark.parametrize(("rest", "timeout", "state"), [("true", 60, "succeeded"), ("sleep 99", 1, "timed_out")])
async def test_nothing_of_a_task_is_left_in_the_sandbox(tools: Tools, rest: str, timeout: int, state: str) -> None:
    """Checklist 306: seen from the host, by the arguments of the processes."""
    mark = f"7{os.getpid()}.5"
    await tools.call("create_sandbox")
    ids = await started(tools, LEAVES.format(mark) + rest, timeout=timeout)
    assert (await ended(tools, ids))["state"] == state
    assert processes_with(f"sleep\0{mark}") == []


async def test_cancel_leaves_nothing_in_the_sandbox(tools: Tools) -> None:
    """Checklist 305."""
    mark = f"8{os.getpid()}.5"
    await tools.call("create_sandbox")
    ids = await started(tools, LEAVES.format(mark) + "echo up; sleep 99")
    await tools.call("get_task", **ids, wait=30)
    assert (await tools.call("cancel_task", **ids))["state"] == "cancelled"
    assert processes_with(f"sleep\0{mark}") == []


async def test_variables_of_the_sandbox_that_are_named_like_secrets_are_replaced(tools: Tools) -> None:
    """Checklist 309, with a real sandbox's own variables."""
    await tools.call("create_sandbox", envs={"DEPLOY_KEY": "s3cr3t-s3cr3t", "MODE": "visible"})
    found = await ended(tools, await started(tools, "echo $DEPLOY_KEY $MODE"))
    assert found["stdout"] == "[REDACTED] visible\n"


async def test_files_go_in_and_out_as_the_user_of_the_sandbox(tools: Tools) -> None:
    """Checklist 314; what was uploaded is the user's to read, to run and to remove."""
    data = bytes(range(256)) * 4096
    content = base64.b64encode(data).decode()
    written = await tools.call("upload_file", path="/home/user/a/b.bin", content_base64=content, mode="755")
    assert written["sha256"] == hashlib.sha256(data).hexdigest()
    shown = await tools.call("run_command", command="stat -c '%U %a' a/b.bin; sha256sum < a/b.bin; rm a/b.bin")
    assert shown["stdout"].split()[:3] == ["user", "755", written["sha256"]]
    assert (await tools.refused("download_file", path="/home/user/a/b.bin"))["code"] == "file_not_found"


async def test_f32_a_denied_path_has_a_typed_error(tools: Tools) -> None:
    """E2B#807: for every tool that writes, and the file is not there."""
    failure = await tools.refused("upload_file", path="/usr/x", content_base64="")
    assert (failure["code"], failure["category"]) == ("file_permission_denied", "permission")
    assert (await tools.refused("write_file", path="/usr/x", content=""))["code"] == "file_permission_denied"
    assert (await tools.call("run_command", command="ls /usr/x"))["exit_code"] != 0


@pytest.mark.skipif(not HOST_ROOT, reason="the tests run as an ordinary user already")
def test_all_of_it_holds_for_an_ordinary_user_of_the_host() -> None:
    """Issue 4, with the second way of making sandboxes."""
    if lacking := missing():
        pytest.skip(lacking)
    tests = str(Path(__file__))
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        done = run_as_user([system_python() or "", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], home)
    if "Permission denied" in done.stderr and done.returncode == 4:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "this machine cannot" not in done.stdout
