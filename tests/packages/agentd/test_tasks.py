"""Background tasks: what they print, how they end, and what is left of them."""

from __future__ import annotations

import asyncio
import base64
import os
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cloche_agentd import limits
from cloche_agentd.config import AgentConfig, KeeperHooks, User
from cloche_agentd.failures import AgentError
from cloche_agentd.link import InitLink
from cloche_agentd.spawner import Child, Launch, Spawner
from cloche_agentd.task_log import TaskLog
from cloche_agentd.tasks import TaskService
from tests.packages.agentd.plain_agent import Client, PlainAgent, alive, peak_kb, running_agent

Json = dict[str, Any]
ENDED_WITHIN_MS = 20_000


def start(client: Client, command: str, *, task_id: str = "", timeout: int = 60, **more: Any) -> str:
    task_id = task_id or uuid.uuid4().hex
    message = {"task_id": task_id, "command": command, "timeout": timeout, **more}
    answer = client.rpc("/cloche.Tasks/Start", message)
    assert answer.status == 200, answer.body
    return task_id


def get(client: Client, task_id: str, *, verb: str = "Get", **more: Any) -> Json:
    answer = client.rpc(f"/cloche.Tasks/{verb}", {"task_id": task_id, **more})
    assert answer.status == 200, answer.body
    return answer.value


def output(report: Json, stream: str = "stdout") -> bytes:
    return base64.b64decode(report[stream]["data"])


def ended(client: Client, task_id: str, **more: Any) -> Json:
    """The task when it has ended; the agent is asked again while it prints."""
    while True:
        report = get(client, task_id)
        if report["task"]["state"] != "running":
            return get(client, task_id, **more)
        size = {f"{name}_offset": report[name]["size"] for name in ("stdout", "stderr")}
        get(client, task_id, wait_ms=ENDED_WITHIN_MS, **size)


def refusal(client: Client, verb: str, message: Json) -> tuple[int, str]:
    answer = client.rpc(f"/cloche.Tasks/{verb}", message)
    return answer.status, answer.value["cloche"]["code"]


@pytest.mark.parametrize(
    ("command", "state", "exit_code"),
    [("echo out; echo err >&2", "succeeded", 0), ("echo out; echo err >&2; exit 7", "failed", 7)],
)
def test_a_task_that_ended_is_read_with_its_state_and_both_streams(
    client: Client, command: str, state: str, exit_code: int
) -> None:
    """Checklist 303, 304: the exit code is data; the streams are apart."""
    report = ended(client, start(client, command))
    task = report["task"]
    assert (task["state"], task["exit_code"], task["stop_reason"]) == (state, exit_code, "exit")
    assert task["started_at"] <= task["finished_at"]
    assert (output(report), output(report, "stderr")) == (b"out\n", b"err\n")


def test_t34_a_task_outlives_the_connection_that_started_it(agent: PlainAgent) -> None:
    """claude-code#35986: it belongs to the sandbox, not to the call."""
    os.mkfifo(agent.home / "t34")
    with agent.client() as first:
        task_id = start(first, "cat t34; echo done")
    (agent.home / "t34").write_text("and ")
    with agent.client() as second:
        assert output(ended(second, task_id)) == b"and done\n"


def test_o19_a_task_that_has_ended_stays_readable(client: Client) -> None:
    """DesktopCommander#166: also when its processes are long gone, and more than once."""
    task_id = start(client, "echo kept")
    for _ in range(3):
        assert output(ended(client, task_id)) == b"kept\n"


def test_progress_is_visible_before_the_end(fresh_agent: PlainAgent) -> None:
    """Checklist 308; `wait_ms` returns as soon as there is more."""
    os.mkfifo(fresh_agent.home / "gate")
    with fresh_agent.client() as client:
        task_id = start(client, "printf half; cat gate; printf whole")
        report = get(client, task_id, wait_ms=ENDED_WITHIN_MS)
        assert (report["task"]["state"], output(report)) == ("running", b"half")
        (fresh_agent.home / "gate").write_text("-")
        assert output(ended(client, task_id, stdout_offset=4)) == b"-whole"


def test_pages_by_byte_offset_put_together_are_the_stream(client: Client) -> None:
    """Checklist 304: every stream has its own offset, and pages meet without gap or overlap."""
    task_id = start(client, "seq 1 5000")
    size = ended(client, task_id)["stdout"]["size"]
    found = b""
    while len(found) < size:
        report = get(client, task_id, stdout_offset=len(found), limit=1000)
        assert report["stdout"]["offset"] == len(found)
        found += output(report)
    assert found == b"".join(b"%d\n" % number for number in range(1, 5001))
    assert output(get(client, task_id, stdout_offset=size + 5)) == b""


def test_a_long_log_keeps_its_beginning_and_its_end_and_is_drained(tmp_path: Path) -> None:
    """Checklist 307: the writer never blocks, it succeeds, and the agent's memory stays flat."""
    with running_agent(tmp_path) as agent, agent.client() as client:
        task_id = start(client, "echo first; head -c 40000000 /dev/zero; echo last; echo loud >&2")
        report = ended(client, task_id)
        assert report["task"]["state"] == "succeeded"
        assert (report["stdout"]["size"], report["stdout"]["truncated"]) == (40_000_011, True)
        assert output(report).startswith(b"first\n\0")
        assert len(output(report)) == limits.TASK_HEAD_BYTES
        after = get(client, task_id, stdout_offset=limits.TASK_HEAD_BYTES)
        assert after["stdout"]["offset"] == 40_000_011 - limits.TASK_TAIL_BYTES
        assert output(after).endswith(b"\0last\n")
        assert (report["stderr"]["truncated"], output(report, "stderr")) == (False, b"loud\n")
        assert peak_kb(agent.process.pid) < 60_000


def test_secrets_of_the_environment_are_replaced_even_when_split(tmp_path: Path) -> None:
    """Checklist 309: writes of one byte each, on both streams, from the sandbox's and the task's own variables."""
    with running_agent(tmp_path, "--env", "API_KEY=hunter2hunter2") as agent, agent.client() as client:
        script = "for c in h u n t e r 2 h u n t e r 2; do printf $c; done; echo; echo $MY_TOKEN >&2; echo $MODE"
        report = ended(client, start(client, script, envs={"MY_TOKEN": "s3cr3t-value", "MODE": "plain"}))
        assert output(report) == b"[REDACTED]\nplain\n"
        assert output(report, "stderr") == b"[REDACTED]\n"


def descendants(agent: PlainAgent, count: int) -> list[int]:
    return [int((agent.home / f"pid{number}").read_text()) for number in range(count)]


# One child that ignores TERM, one that has left the session and closed its streams.
LEAVES = (
    "(trap '' TERM; sh -c 'echo $PPID' > pid0; exec sleep 600) & "
    "setsid sh -c 'echo $$ > pid1; exec sleep 600 < /dev/null > /dev/null 2>&1' & "
    "while [ ! -s pid0 ] || [ ! -s pid1 ]; do sleep 0.01; done; echo ready; "
)


def test_cancel_ends_everything_that_the_task_started(fresh_agent: PlainAgent) -> None:
    """Checklist 305: also what ignores SIGTERM and what left session and pipes; again is harmless."""
    with fresh_agent.client() as client:
        task_id = start(client, LEAVES + "trap 'echo bye; exit 3' TERM; sleep 600 & wait")
        while b"ready" not in output(get(client, task_id, wait_ms=ENDED_WITHIN_MS)):
            pass
        report = get(client, task_id, verb="Cancel")
        assert (report["task"]["state"], report["task"]["stop_reason"]) == ("cancelled", "cancelled")
        assert output(report) == b"ready\nbye\n"
        assert [pid for pid in descendants(fresh_agent, 2) if alive(pid)] == []
        assert get(client, task_id, verb="Cancel") == report


@pytest.mark.parametrize(
    ("rest", "timeout", "state"), [("true", 60, "succeeded"), ("exit 4", 60, "failed"), ("sleep 600", 1, "timed_out")]
)
def test_every_end_takes_the_descendants_along(fresh_agent: PlainAgent, rest: str, timeout: int, state: str) -> None:
    """Checklist 306: success, a non-zero exit and a timeout."""
    with fresh_agent.client() as client:
        report = ended(client, start(client, LEAVES + rest, timeout=timeout))
        assert report["task"]["state"] == state
        assert [pid for pid in descendants(fresh_agent, 2) if alive(pid)] == []


def test_a_cancel_at_its_end_leaves_the_end_as_it_was(client: Client) -> None:
    task_id = start(client, "exit 0")
    ended(client, task_id)
    assert get(client, task_id, verb="Cancel")["task"]["state"] == "succeeded"


def test_the_same_submission_again_is_the_same_task(client: Client, agent: PlainAgent) -> None:
    """E2B#1658: a client that lost the answer may ask again; another command under the same id is refused."""
    task_id = start(client, "echo once >> count; cat count")
    start(client, "echo once >> count; cat count", task_id=task_id)
    assert output(ended(client, task_id)) == b"once\n"
    message = {"task_id": task_id, "command": "other", "timeout": 60}
    assert refusal(client, "Start", message) == (400, "idempotency_conflict")


def test_submissions_at_the_same_time_start_one_process(agent: PlainAgent) -> None:
    task_id = uuid.uuid4().hex

    def submit() -> None:
        with agent.client() as client:
            start(client, "echo ran >> parallel; cat parallel", task_id=task_id)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with agent.client() as client:
        assert output(ended(client, task_id)) == b"ran\n"


@pytest.mark.parametrize("task_id", ["", "1", "A" * 32, "0" * 31, "0" * 33, "../" + "0" * 29, 7])
def test_what_is_no_task_id_is_refused(client: Client, task_id: object) -> None:
    """Systems facts 1.3: no path and no pid is ever taken for one."""
    for verb in ("Start", "Get", "Cancel"):
        message = {"task_id": task_id, "command": "true", "timeout": 1}
        assert refusal(client, verb, message) == (400, "invalid_argument")


def test_an_unknown_task_is_told_as_one(client: Client) -> None:
    assert refusal(client, "Get", {"task_id": "0" * 32}) == (404, "task_not_found")
    assert refusal(client, "Cancel", {"task_id": "0" * 32}) == (404, "task_not_found")


def test_a_task_that_cannot_start_leaves_nothing(client: Client) -> None:
    """Its id is free again, and no list shows it."""
    message = {"task_id": "1" * 32, "command": "true", "timeout": 1, "cwd": "/nowhere"}
    assert refusal(client, "Start", message)[1] == "cwd_not_found"
    assert refusal(client, "Get", {"task_id": "1" * 32})[1] == "task_not_found"
    start(client, "true", task_id="1" * 32)


def test_too_many_at_once_are_refused(tmp_path: Path) -> None:
    """Running ones are bounded; the refusal says so."""
    with running_agent(tmp_path) as agent, agent.client() as client:
        os.mkfifo(agent.home / "gate")
        for _ in range(limits.TASKS_RUNNING):
            start(client, "cat gate")
        assert refusal(client, "Start", {"task_id": "2" * 32, "command": "true", "timeout": 9})[1] == "task_limit"


class EndedAtOnce(Spawner):
    """Starts nothing: every child has ended well."""

    def __init__(self) -> None: ...

    async def spawn(self, launch: Launch, fds: Sequence[int]) -> Child:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(0)
        return Child(1, "", done, cast("InitLink", None), 1)  # nothing is asked of the link

    def pipe(self, user: User, *, keeper_reads: bool) -> tuple[int, int]:
        return os.pipe()

    async def kill_tree(self, child: Child, *, since_ticks: int = 0, spare_leader: bool = False) -> None: ...


async def test_old_tasks_make_room_instead_of_a_hard_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many that have ended, those that ended first are forgotten."""
    monkeypatch.setattr(limits, "TASKS_KEPT", 2)
    user = User("user", 0, 0, "/")
    config = AgentConfig(sandbox_id="x", access_token="x", users=(user,))
    async with asyncio.TaskGroup() as background:
        service = TaskService(config, KeeperHooks(), EndedAtOnce(), background)
        for number in range(5):
            wanted = {"task_id": f"{number:032x}", "command": "true", "timeout": 9}
            await service.unary["Start"](wanted, user)
            told = await service.unary["Get"]({"task_id": wanted["task_id"], "wait_ms": 60_000}, user)
            assert cast("Json", told["task"])["state"] == "succeeded"
        listed = cast("list[Json]", (await service.unary["List"]({}, user))["tasks"])
        assert [int(task["task_id"], 16) for task in listed] == [2, 3, 4]
        with pytest.raises(AgentError, match="task not found"):
            await service.unary["Get"]({"task_id": f"{0:032x}"}, user)


def test_a_task_leaves_no_file_in_the_sandbox(fresh_agent: PlainAgent) -> None:
    """Checklist 310: its state and its logs are the agent's; there is nothing that a link could point elsewhere."""
    with fresh_agent.client() as client:
        ended(client, start(client, "echo x"))
    assert list(fresh_agent.home.iterdir()) == []


def test_memory_for_logs_is_taken_from_the_tasks_that_ended_first() -> None:
    """A forgotten log says that it is cut; its size is still told."""
    grown: list[int] = []
    log = TaskLog((), grown.append)
    log.feed(b"x" * 100)
    log.drop()
    page = log.page(0, 100)
    assert (page.data, page.offset, page.size, page.truncated) == (b"", 100, 100, True)
    assert sum(grown) == 0


def test_a_page_goes_from_the_kept_beginning_into_the_kept_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as nothing lies between them, a reader sees one stream."""
    monkeypatch.setattr(limits, "TASK_HEAD_BYTES", 4)
    monkeypatch.setattr(limits, "TASK_TAIL_BYTES", 4)
    log = TaskLog((), lambda _: None)
    log.feed(b"abcdefg")
    assert log.page(2, 4).data == b"cdef"
    log.feed(b"hi")
    assert (log.page(2, 9).data, log.page(4, 9).data, log.page(4, 9).offset) == (b"cd", b"fghi", 5)


def test_a_wait_that_is_out_of_range_is_refused(client: Client) -> None:
    task_id = start(client, "true")
    assert refusal(client, "Get", {"task_id": task_id, "wait_ms": 60_001}) == (400, "invalid_argument")
    assert refusal(client, "Get", {"task_id": task_id, "limit": -1}) == (400, "invalid_argument")
    assert refusal(client, "Get", {"task_id": task_id, "stdout_offset": -1}) == (400, "invalid_argument")
