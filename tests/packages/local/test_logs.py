"""The log of a sandbox: what happened, without what was said; readable while it lives and after."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import SandboxNotFound
from cloche_contract.provider import KillRequest, ListRequest, LogEvent, LogsRequest
from cloche_local import journal
from cloche_local import state as state_module
from cloche_local.provider import LocalProvider
from cloche_local.state import StateFolder
from tests.packages.local.sandboxes import Sandbox, is_running, made, until_gone, zygote_pid

_SECRET = "S3CRET"


async def _events(provider: LocalProvider, sandbox: Sandbox, **fields: int) -> Sequence[LogEvent]:
    return (await provider.logs(LogsRequest(sandbox_id=sandbox.id, **fields))).events


async def test_calls_and_how_they_ended_are_told_and_nothing_that_they_carried(
    provider: LocalProvider, sandbox: Sandbox, folder: Path
) -> None:
    """Issue 3, part 5: method, status, duration; stop reasons; no payload, no path, no value."""
    await sandbox.run(f"echo {_SECRET}; exit 3")
    await sandbox.run(f"sleep 60 # {_SECRET}", timeout_s=0.3)
    await sandbox.execute(f"import os; {_SECRET} = 1; os._exit(4)")
    await sandbox.client.get("/files", params={"path": f"/tmp/{_SECRET}"})
    await sandbox.client.get(f"/{_SECRET}/{_SECRET}")
    await sandbox.client.get("/health")
    events = await _events(provider, sandbox)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert (events[0].event, events[0].facts["template"]) == ("started", "base")
    ends = [event.facts for event in events if event.event == "command_ended"]
    assert [(end["exit_code"], end["stop_reason"]) for end in ends] == [("3", "exit"), ("137", "timeout")]
    code = next(event.facts for event in events if event.event == "code_ended")
    assert (code["stop_reason"], code["state_kept"]) == ("interpreter_died", "false")
    calls = [event.facts for event in events if event.event == "call"]
    told = [(call["method"], call["status"]) for call in calls]
    start = ("POST /process.Process/Start", "200")
    assert told == [start, start, ("POST /execute", "200"), ("GET /files", "404"), ("unknown", "404")]
    assert all(float(call["ms"]) >= 0 for call in calls)
    assert float(calls[1]["ms"]) >= 290
    raw = Path(journal.path_of(f"{folder}/state", sandbox.id))
    assert _SECRET not in raw.read_text()
    assert raw.stat().st_mode & 0o777 == 0o600


async def test_a_client_that_leaves_is_told(provider: LocalProvider, sandbox: Sandbox) -> None:
    """O16 of the wire: no status is made up for an answer that nobody got."""
    with anyio.move_on_after(0.5):
        await sandbox.run("sleep 60")
    events = await _events(provider, sandbox, wait=10)
    while not (calls := [event.facts for event in events if event.event == "call"]):
        events = await _events(provider, sandbox, after=events[-1].number, wait=10)
    assert calls[0]["client_gone"] == "true"


async def test_the_end_is_told_with_its_reason_and_stays_readable(provider: LocalProvider, folder: Path) -> None:
    """Killed, expired, killed with its keeper: each leaves its reason; the folder of state is gone, the log is not."""
    async with made(provider) as killed, made(provider, timeout=1) as expired, made(provider) as lost:
        await provider.kill(KillRequest(sandbox_id=killed.id))
        keeper = StateFolder(f"{folder}/state").read(lost.id)
        assert keeper is not None
        os.kill(keeper.keeper_pid, signal.SIGKILL)
        await until_gone(keeper.init_pid)
        reasons: list[str] = []
        for sandbox in (killed, expired, lost):
            with anyio.fail_after(20):
                while (result := await provider.logs(LogsRequest(sandbox_id=sandbox.id, wait=5))).alive:
                    pass
                while result.events[-1].event != "ended":
                    await provider.list(ListRequest())
                    result = await provider.logs(LogsRequest(sandbox_id=sandbox.id, wait=5))
            reasons.append(result.events[-1].facts["reason"])
        assert reasons == ["killed", "expired", "keeper_killed"]


async def test_a_keeper_that_died_with_everybody_who_could_tell_is_found_dead(
    provider: LocalProvider, folder: Path
) -> None:
    """A power cut: nothing wrote the end, and the next start says so instead of making a reason up."""
    async with made(provider) as sandbox:
        record = StateFolder(f"{folder}/state").read(sandbox.id)
        assert record is not None
        os.kill(zygote_pid(), signal.SIGKILL)
        os.kill(record.keeper_pid, signal.SIGKILL)
        await until_gone(record.init_pid)
        await until_gone(record.keeper_pid)
        assert not is_running(record.keeper_pid)
        await provider.list(ListRequest())
        events = await _events(provider, sandbox)
        assert (events[-1].event, events[-1].facts) == ("ended", {"reason": "found_dead"})


async def test_waiting_ends_with_the_next_event(provider: LocalProvider, sandbox: Sandbox) -> None:
    """No polling where an event can be waited for."""
    last = (await _events(provider, sandbox))[-1].number
    found: list[LogEvent] = []

    async def follow() -> None:
        found.extend(await _events(provider, sandbox, after=last, wait=60))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await sandbox.run("true")
    assert {event.event for event in found} <= {"command_ended", "call"}
    assert found[0].number == last + 1


@pytest.mark.parametrize("sandbox_id", ["nobody", "../v1", "A"])
async def test_there_is_no_log_of_what_never_was(provider: LocalProvider, sandbox_id: str) -> None:
    with pytest.raises(SandboxNotFound):
        await provider.logs(LogsRequest(sandbox_id=sandbox_id))


def test_a_log_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    """A sandbox that is busy for days does not fill the disk; the numbers show the gap."""
    path = tmp_path / "a.jsonl"
    log = journal.Journal(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), most_bytes=4096)
    for _ in range(1000):
        log.write("call", {"method": "POST /execute", "status": 200})
        assert path.stat().st_size <= 4096
    numbers = [event["seq"] for event in journal.read(str(path)) or []]
    assert numbers == list(range(numbers[0], 1001))
    assert len(numbers) > 15


def test_a_full_disk_loses_lines_and_counts_them(tmp_path: Path) -> None:
    """A call never fails because its line cannot be written."""
    fd = os.open("/dev/full", os.O_RDWR)
    log = journal.Journal(fd)
    log.write("call", {})
    log.write("call", {})
    # There is room again.
    os.dup2(os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT | os.O_APPEND), fd)
    log.write("call", {})
    assert json.loads((tmp_path / "a").read_text())["lost"] == 2


@pytest.mark.parametrize("text", ["", "{", '{"seq":1}\n[]\n7\n\xff\n', '{"seq":1,"time":1,"ev'])
def test_a_damaged_log_gives_what_can_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_bytes(text.encode("latin-1") + b'\n{"seq":2,"time":1,"event":"call"}\n')
    assert [event["seq"] for event in journal.read(str(tmp_path / "a")) or []] == [2]


def test_an_end_is_written_once(tmp_path: Path) -> None:
    path = journal.path_of(str(tmp_path), "abc")
    journal.add_end(path, "found_dead")
    assert not os.path.exists(path)
    os.mkdir(tmp_path / journal.FOLDER)
    journal.create("abc", os.open(tmp_path, os.O_PATH)).write("started", {})
    journal.add_end(path, "keeper_killed", {"signal": 9})
    journal.add_end(path, "found_dead")
    assert [event.get("reason") for event in journal.read(path) or []] == [None, "keeper_killed"]


def test_logs_of_ended_sandboxes_do_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may ever prune: the newest are kept."""
    monkeypatch.setattr(state_module, "MOST_LOGS", 5)
    monkeypatch.setattr(state_module, "KEPT_LOGS", 3)
    state = StateFolder(str(tmp_path))
    state.ensure()
    for number in range(6):
        path = Path(journal.path_of(str(tmp_path), f"ab{number}"))
        path.touch()
        os.utime(path, (number, number))
    state.trim_logs()
    assert sorted(os.listdir(tmp_path / ".logs")) == ["ab3.jsonl", "ab4.jsonl", "ab5.jsonl"]
