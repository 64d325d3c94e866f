"""Making, finding and killing sandboxes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import (
    IdempotencyConflict,
    SandboxExpired,
    SandboxNotFound,
    TemplateNotFound,
    UnsupportedOperation,
)
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    InspectRequest,
    KillRequest,
    ListRequest,
    SandboxProvider,
    SetTimeoutRequest,
)
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import (
    HOST_ROOT,
    Sandbox,
    descendants,
    is_running,
    made,
    make_provider,
    opened,
    until_gone,
    zygote_pid,
)

_ANOTHER_PROCESS = """
import anyio, json, sys
from pathlib import Path
from cloche_contract.provider import GetRequest, KillRequest, ListRequest, ProviderOptions
from cloche_local.provider import LocalProvider

async def main(folder, verb, sandbox_id):
    settings = {"local_state_dir": folder + "/state", "local_runtime_dir": folder + "/run"}
    provider = LocalProvider(ProviderOptions(settings=settings, environ={}))
    if verb == "list":
        print(json.dumps([record.sandbox_id for record in (await provider.list(ListRequest())).sandboxes]))
    elif verb == "get":
        print((await provider.get(GetRequest(sandbox_id=sandbox_id))).status)
    else:
        await provider.kill(KillRequest(sandbox_id=sandbox_id))
    await provider.close()

anyio.run(main, *sys.argv[1:])
"""


async def _another_process(folder: Path, verb: str, sandbox_id: str = "") -> str:
    command = [sys.executable, "-c", _ANOTHER_PROCESS, str(folder), verb, sandbox_id]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = await anyio.run_process(command, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def test_the_provider_is_one_by_the_generated_protocol(tmp_path: Path) -> None:
    """The type checker compares it with the Protocol, method by method."""
    provider: SandboxProvider = make_provider(tmp_path)
    assert provider.id == "local"


async def test_a_sandbox_runs_code_as_its_own_user(sandbox: Sandbox) -> None:
    """local-runtime, Users: commands run as uid 1000 `user`, home /home/user, no capabilities."""
    ran = await sandbox.run(
        "id -u; id -g; pwd; grep CapEff /proc/self/status; touch /home/user/a /app/b /tmp/c && echo ok"
    )
    assert ran.stdout.split() == ["1000", "1000", "/home/user", "CapEff:", "0000000000000000", "ok"]


async def test_code_keeps_its_state_between_calls(sandbox: Sandbox) -> None:
    """Faults L22, at the provider's level: one interpreter per sandbox."""
    await sandbox.execute("value = 41")
    lines = await sandbox.execute("print(value + 1)")
    assert "42\n" in [line.get("text") for line in lines]


async def test_create_answers_with_an_endpoint_and_metadata(provider: LocalProvider) -> None:
    """D3: the url carries no token and no host path. The record is wide, the endpoint is in it."""
    async with made(provider, metadata={"team": "a"}, timeout=77) as sandbox:
        record = sandbox.record
        assert (record.status, record.template, record.url) == ("running", "base", f"local:{record.sandbox_id}")
        assert record.agent is not None
        assert record.agent.renew_on_request
        assert record.user_metadata == {"team": "a"}
        assert record.disk_size_mb == 1024


async def test_kill_leaves_no_process_no_socket_and_no_folder(provider: LocalProvider, folder: Path) -> None:
    """local-runtime, Lifetime and kill."""
    async with made(provider) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        await until_gone(int(facts["init_pid"]))
        await until_gone(int(facts["keeper_pid"]))
        assert not (folder / "state" / sandbox.id).exists()
        assert not (folder / "run" / sandbox.id).exists()
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=sandbox.id))
        with pytest.raises(SandboxNotFound):
            await provider.kill(KillRequest(sandbox_id=sandbox.id))


@pytest.mark.parametrize("user", ["user", "root"])
async def test_when_a_kill_has_returned_nothing_of_the_sandbox_runs(provider: LocalProvider, user: str) -> None:
    """LocalProvider.kill. What left its session, and what root started, is gone too, and is not waited for by us."""
    if user == "root" and not HOST_ROOT:
        pytest.skip("one id has no root")
    async with made(provider) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        started = await sandbox.run("setsid sleep 300 </dev/null >/dev/null 2>&1 & echo", user=user)
        assert started.exit_code == 0
        # A spawner of root is a child of the keeper, beside init.
        below = [pid for pid in descendants(int(facts["keeper_pid"])) if is_running(pid)]
        assert len(below) >= (4 if user == "root" else 3)
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        assert [pid for pid in below if is_running(pid)] == []


@pytest.mark.parametrize("sandbox_id", ["nosuchsandbox", "../../etc", ".mnt", "a/b", "A", "x" * 1024, "\x00"])
async def test_an_unknown_or_malformed_id_is_not_found(provider: LocalProvider, sandbox_id: str) -> None:
    """S12: an id that is not one of ours never becomes a path."""
    with pytest.raises(SandboxNotFound):
        await provider.get(GetRequest(sandbox_id=sandbox_id))
    with pytest.raises(SandboxNotFound):
        await provider.kill(KillRequest(sandbox_id=sandbox_id))


async def test_list_is_newest_first_and_pages(provider: LocalProvider) -> None:
    """The provider interface: newest first, limit and offset."""
    made_ids = [(await provider.create(CreateRequest(template="base", timeout=60))).sandbox_id for _ in range(3)]
    listed = [record.sandbox_id for record in (await provider.list(ListRequest())).sandboxes]
    assert listed == list(reversed(made_ids))
    page = (await provider.list(ListRequest(limit=1, offset=1))).sandboxes
    assert [record.sandbox_id for record in page] == [made_ids[1]]
    assert (await provider.list(ListRequest(status="paused"))).sandboxes == []


async def test_a_second_process_lists_gets_and_kills(sandbox: Sandbox, folder: Path, provider: LocalProvider) -> None:
    """Issue 2: sandboxes are visible to the user's other processes."""
    assert json.loads(await _another_process(folder, "list")) == [sandbox.id]
    assert await _another_process(folder, "get", sandbox.id) == "running"
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
    await _another_process(folder, "kill", sandbox.id)
    await until_gone(int(facts["init_pid"]))
    assert (await provider.list(ListRequest())).sandboxes == []


async def test_closing_the_provider_lets_sandboxes_live(provider: LocalProvider, folder: Path) -> None:
    """Provider interface, close: sandboxes live on."""
    async with made(provider) as sandbox:
        await provider.close()
        assert (await sandbox.run("echo alive")).stdout == "alive\n"


async def test_a_zygote_that_died_is_replaced(provider: LocalProvider) -> None:
    """local-runtime, Processes: the zygote holds nothing that the next one lacks."""
    await provider.warm()
    pid = zygote_pid()
    os.kill(pid, signal.SIGKILL)
    await until_gone(pid)
    async with made(provider) as sandbox:
        assert (await sandbox.run("echo again")).stdout == "again\n"


async def test_a_second_create_with_the_same_key_gives_the_same_sandbox(provider: LocalProvider, folder: Path) -> None:
    """D20 and faults L4: same key and arguments, same sandbox; other arguments, conflict."""
    request = CreateRequest(template="base", timeout=60, idempotency_key="order-66", envs={"A": "secret-value-1"})
    first = await provider.create(request)
    again = await provider.create(request)
    assert again.sandbox_id == first.sandbox_id
    with pytest.raises(IdempotencyConflict):
        await provider.create(CreateRequest(template="base", timeout=61, idempotency_key="order-66"))
    async with opened(make_provider(folder)) as other:
        assert (await other.create(request)).sandbox_id == first.sandbox_id


async def test_the_state_folder_holds_no_environment_value(provider: LocalProvider, folder: Path) -> None:
    """local-runtime, State: no environment values, no keys in the record."""
    async with made(provider, envs={"KEY": "marker-7f3a9"}, idempotency_key="marker-key-1") as sandbox:
        assert (await sandbox.run("echo $KEY")).stdout == "marker-7f3a9\n"
        files = [path for path in (folder / "state" / sandbox.id).iterdir() if path.is_file()]
        assert files
        for path in files:
            assert "marker" not in path.read_text()
        token = sandbox.record.agent.access_token.get_secret_value() if sandbox.record.agent else ""
        assert token not in (folder / "state" / sandbox.id / "record.json").read_text()
        for path in (folder / "state", folder / "run", folder / "state" / sandbox.id):
            assert path.stat().st_mode & 0o077 == 0


async def test_unknown_template_and_region_are_refused_before_anything_is_made(
    provider: LocalProvider, folder: Path
) -> None:
    """Issue 2, Bad input."""
    with pytest.raises(TemplateNotFound):
        await provider.create(CreateRequest(template="no-such", timeout=60))
    with pytest.raises(UnsupportedOperation):
        await provider.create(CreateRequest(template="base", timeout=60, region="moon"))
    assert (await provider.list(ListRequest())).sandboxes == []


async def test_a_request_without_the_token_is_refused(sandbox: Sandbox) -> None:
    """security.md: daemons in a sandbox authenticate too."""
    answer = await sandbox.client.get("/cloche/info", headers={"X-Access-Token": "wrong"})
    assert answer.status_code == 401


async def test_a_cancelled_create_leaves_no_sandbox(provider: LocalProvider, folder: Path) -> None:
    """S6 and D17: cancelled at any moment, nothing of it runs on."""
    await provider.warm()
    async with made(provider):
        for step in range(12):
            with anyio.move_on_after(step * 0.002):
                await provider.create(CreateRequest(template="base", timeout=60))
                continue
        listed = {record.sandbox_id for record in (await provider.list(ListRequest())).sandboxes}
        # Those that were answered in time are listed; whatever was cancelled has gone, its folder and all.
        left = {path.name for path in (folder / "state").iterdir() if not path.name.startswith(".")}
        assert left == listed
        for sandbox_id in listed:
            facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox_id))).facts
            assert is_running(int(facts["keeper_pid"]))


async def test_many_sandboxes_at_once_are_all_apart(provider: LocalProvider) -> None:
    """local-runtime, Users: an own id range per sandbox of root; requests wait in the zygote's socket."""
    records: list[SandboxRecord] = []

    async def make() -> None:
        records.append(await provider.create(CreateRequest(template="base", timeout=60)))

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(make)
    assert len({record.sandbox_id for record in records}) == 12
    if HOST_ROOT:
        uids: set[str] = set()
        for record in records:
            facts = (await provider.inspect(InspectRequest(sandbox_id=record.sandbox_id))).facts
            status = Path(f"/proc/{facts['init_pid']}/status").read_text()
            uids.add(next(line for line in status.splitlines() if line.startswith("Uid:")))
        assert len(uids) == 12


async def test_inspect_shows_mounts_limits_and_users(sandbox: Sandbox, provider: LocalProvider) -> None:
    """Issue 2: inspect shows mounts, limits enforced and by what, users."""
    shown = await provider.inspect(InspectRequest(sandbox_id=sandbox.id))
    targets = {mount.target: mount for mount in shown.mounts}
    assert targets["/usr"].read_only
    assert not targets["/"].read_only
    assert targets["/"].kind == "overlay"
    limits = {limit.resource: limit for limit in shown.limits}
    assert (limits["pids"].enforced, limits["disk"].enforced, limits["memory"].enforced) == (True, True, False)
    assert limits["disk"].enforced_by == "tmpfs size"
    assert shown.users == ("range" if HOST_ROOT else "single")
    assert {"user", "mnt", "pid", "net", "ipc"} <= set(shown.namespaces)


async def test_set_timeout_moves_the_end(sandbox: Sandbox, provider: LocalProvider) -> None:
    """Seed 000: a lifetime counted from now; the returned end is true."""
    before = (await provider.get(GetRequest(sandbox_id=sandbox.id))).end_at
    await provider.set_timeout(SetTimeoutRequest(sandbox_id=sandbox.id, timeout=3600))
    after = (await provider.get(GetRequest(sandbox_id=sandbox.id))).end_at
    assert before is not None
    assert after is not None
    assert after > before


async def test_a_stuck_keeper_is_killed_by_its_descriptor(sandbox: Sandbox, provider: LocalProvider) -> None:
    """local-runtime, Lifetime and kill: graceful, else SIGKILL after checking the start time."""
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
    os.kill(int(facts["keeper_pid"]), 19)
    started = time.monotonic()
    await provider.kill(KillRequest(sandbox_id=sandbox.id))
    assert time.monotonic() - started < 12
    await until_gone(int(facts["init_pid"]))


async def test_connect_gives_the_endpoint_and_expired_is_said(
    sandbox: Sandbox, provider: LocalProvider, folder: Path
) -> None:
    """Provider interface, connect."""
    record = await provider.connect(ConnectRequest(sandbox_id=sandbox.id))
    assert record.agent is not None
    (folder / "state" / sandbox.id / "deadline").write_text(json.dumps({"boot": 1.0, "wall": 1.0}))
    with pytest.raises(SandboxExpired):
        await provider.connect(ConnectRequest(sandbox_id=sandbox.id))


async def test_the_zygote_has_constant_arguments_and_an_empty_environment(
    provider: LocalProvider, folder: Path
) -> None:
    """local-runtime, Processes: its exec-time environment and argv are readable by user code."""
    await provider.warm()
    async with made(provider) as sandbox:
        arguments = Path(f"/proc/{zygote_pid()}/cmdline").read_bytes().split(b"\0")
        assert Path(f"/proc/{zygote_pid()}/environ").read_bytes() == b""
        assert [arguments[1], arguments[2], arguments[3]] == [b"-I", b"-S", b"-c"]
        assert not any(str(folder).encode() in argument for argument in arguments)
        # What user code sees of it, through the interpreter that was forked from it.
        lines = await sandbox.execute(
            "print(open('/proc/self/environ').read() == '', open('/proc/self/cmdline').read())"
        )
        text = "".join(str(line.get("text", "")) for line in lines)
        assert text.startswith("True")
        assert str(folder) not in text
