"""Deadlines, renewal, and what is left when processes die: by fault id where there is one."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from cloche_contract.errors import SandboxNotFound
from cloche_contract.provider import CreateRequest, GetRequest, InspectRequest, KillRequest, ListRequest
from cloche_local import keeper as keeper_module
from cloche_local import seccomp, templates, users
from cloche_local.nest import Ground
from cloche_local.orders import Orders
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits, Protections, SandboxSpec, Shape
from cloche_local.state import StateFolder
from tests.packages.local.sandboxes import (
    HOST_ROOT,
    Sandbox,
    client_of,
    is_running,
    made,
    make_provider,
    opened,
    processes_with,
    until_gone,
)

_SERVER = """
import anyio, json, sys
from cloche_contract.provider import CreateRequest, ProviderOptions
from cloche_local.nest import Ground
from cloche_local.orders import Orders
from cloche_local.provider import LocalProvider

async def main(folder, timeout):
    settings = {"local_state_dir": folder + "/state", "local_runtime_dir": folder + "/run"}
    provider = LocalProvider(ProviderOptions(settings=settings, environ={}))
    record = await provider.create(CreateRequest(template="base", timeout=int(timeout)))
    print(record.sandbox_id, flush=True)
    await anyio.sleep_forever()

anyio.run(main, *sys.argv[1:])
"""


async def _facts(provider: LocalProvider, sandbox_id: str) -> tuple[int, int]:
    """Pids of keeper and init."""
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox_id))).facts
    return int(facts["keeper_pid"]), int(facts["init_pid"])


async def _server(folder: Path, timeout_s: int) -> tuple[anyio.abc.Process, str]:
    """Another process that made a sandbox and holds it; returns it and the sandbox's id."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", _SERVER, str(folder), str(timeout_s)]
    process = await anyio.open_process(command, env=environment, stderr=None)
    assert process.stdout is not None
    line = b""
    with anyio.fail_after(30):
        while not line.endswith(b"\n"):
            line += await process.stdout.receive()
    return process, line.decode().strip()


async def test_a_sandbox_ends_at_its_deadline(provider: LocalProvider) -> None:
    """local-runtime, Lifetime: a timer in the keeper; then nothing is listed and nothing runs."""
    record = await provider.create(CreateRequest(template="base", timeout=1))
    keeper, init = await _facts(provider, record.sandbox_id)
    await until_gone(keeper, 4)
    await until_gone(init, 2)
    with pytest.raises(SandboxNotFound):
        await provider.get(GetRequest(sandbox_id=record.sandbox_id))


async def test_a_request_renews_the_lifetime(provider: LocalProvider) -> None:
    """local-runtime, Lifetime: renewal rides on the request and moves the end both ways."""
    async with made(provider, timeout=2) as sandbox:
        keeper, _init = await _facts(provider, sandbox.id)
        await sandbox.client.get("/health", headers={"Cloche-Renew": "600"})
        end_at = (await provider.get(GetRequest(sandbox_id=sandbox.id))).end_at
        assert end_at is not None
        assert end_at > sandbox.record.end_at if sandbox.record.end_at else False
        # Past the first deadline and alive: the timer and the kernel's backstop were both set again.
        with anyio.move_on_after(2.5):
            await until_gone(keeper, 60)
        assert is_running(keeper)
        await sandbox.client.get("/health", headers={"Cloche-Renew": "1"})
        await until_gone(keeper, 4)


async def test_l7_a_server_killed_with_sigkill_leaves_sandboxes_that_end_by_themselves(
    folder: Path, usable: None
) -> None:
    """Faults L7: the sandbox outlives its server, another process sees it, and its deadline holds."""
    server, sandbox_id = await _server(folder, 3)
    async with server, opened(make_provider(folder)) as provider:
        keeper, init = await _facts(provider, sandbox_id)
        server.send_signal(signal.SIGKILL)
        await server.wait()
        listed = (await provider.list(ListRequest())).sandboxes
        assert [record.sandbox_id for record in listed] == [sandbox_id]
        await until_gone(keeper, 6)
        await until_gone(init, 2)
        assert (await provider.list(ListRequest())).sandboxes == []
        # Nobody was there to clean up: the listing swept.
        assert not (folder / "state" / sandbox_id).exists()
        assert not (folder / "run" / sandbox_id).exists()


async def test_l7_everything_killed_leaves_nothing_running_and_the_next_list_sweeps(folder: Path, usable: None) -> None:
    """local-runtime, Lifetime: server, zygote and keeper killed; init goes with the keeper."""
    server, sandbox_id = await _server(folder, 600)
    async with server, opened(make_provider(folder)) as provider:
        keeper, init = await _facts(provider, sandbox_id)
        server.send_signal(signal.SIGKILL)
        await server.wait()
        os.kill(keeper, signal.SIGKILL)
        await until_gone(init, 5)
        assert (await provider.list(ListRequest())).sandboxes == []
        assert not (folder / "state" / sandbox_id).exists()


async def test_without_the_death_signal_init_outlives_its_keeper(folder: Path, usable: None) -> None:
    """The protection bites: without PR_SET_PDEATHSIG a stopped init stays when its keeper is killed."""
    for on, survives in ((True, False), (False, True)):
        async with opened(make_provider(folder, protections=Protections(parent_death_signal=on))) as provider:
            record = await provider.create(CreateRequest(template="base", timeout=60))
            keeper, init = await _facts(provider, record.sandbox_id)
            # Stopped: it cannot notice the closed link by itself.
            os.kill(init, signal.SIGSTOP)
            os.kill(keeper, signal.SIGKILL)
            await until_gone(keeper)
            with anyio.move_on_after(0.5):
                await until_gone(init, 30)
            assert is_running(init) is survives
            if survives:
                os.kill(init, signal.SIGKILL)


async def test_t1_sleep_past_its_timeout_leaves_no_process(sandbox: Sandbox) -> None:
    """Faults T1: kill the whole tree, then answer."""
    mark = f"71{os.getpid()}"
    ran = await sandbox.run(f"sleep {mark} & sleep {mark}", timeout_s=0.5)
    assert ran.error.get("code") == "deadline_exceeded"
    assert processes_with(mark) == []


async def test_t2_children_of_a_timed_out_command_are_gone(sandbox: Sandbox) -> None:
    """Faults T2: not only the leader dies, also what left its session."""
    mark = f"72{os.getpid()}"
    await sandbox.run(f"setsid sh -c 'sleep {mark} & sleep {mark}' & wait; sleep {mark}", timeout_s=0.7)
    assert processes_with(mark) == []
    listed = await sandbox.client.post("/process.Process/List", json={})
    assert listed.json().get("processes", []) == []


async def test_t3_a_background_child_does_not_survive_the_timeout(sandbox: Sandbox) -> None:
    """Faults T3: `sleep 300 & wait` with a short timeout; checked by pid on the host."""
    mark = f"73{os.getpid()}"
    await sandbox.run(f"sleep {mark} & wait", timeout_s=0.05)
    assert processes_with(mark) == []


async def test_t34_a_background_server_outlives_the_call_that_started_it(sandbox: Sandbox) -> None:
    """Faults T34: background tasks belong to the sandbox's init; they end with the sandbox and not before."""
    mark = f"74{os.getpid()}"
    await sandbox.run(f"sleep {mark} > /dev/null 2>&1 &")
    await sandbox.run("true")
    assert len(processes_with(mark)) == 1


async def test_kill_takes_what_ignores_signals_and_left_the_session(provider: LocalProvider) -> None:
    """local-runtime, Lifetime [ran]: setsid and TERM-ignoring processes included."""
    mark = f"75{os.getpid()}"
    async with made(provider) as sandbox:
        await sandbox.run(f"setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark} & wait' > /dev/null 2>&1 &")
        with anyio.fail_after(5):
            while not processes_with(mark):
                await sandbox.run("true")
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        assert processes_with(mark) == []


async def test_l5_parallel_commands_do_not_mix(sandbox: Sandbox) -> None:
    """Faults L5: separate processes, separate output."""
    outputs: dict[int, str] = {}

    async def run(number: int) -> None:
        outputs[number] = (await sandbox.run(f"for i in 1 2 3 4 5; do echo {number}; done")).stdout

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(run, number)
    assert outputs == {number: f"{number}\n" * 5 for number in range(8)}


async def test_a_socket_path_that_is_too_long_still_connects(tmp_path: Path, usable: None) -> None:
    """local-runtime, Reach: AF_UNIX paths end at 108 bytes; bound and reached through a descriptor."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    async with opened(make_provider(deep)) as provider, made(provider) as sandbox:
        assert (await sandbox.run("echo far")).stdout == "far\n"
        await provider.kill(KillRequest(sandbox_id=sandbox.id))


async def test_a_hundred_creates_and_kills_leak_no_descriptor(provider: LocalProvider, scale: int) -> None:
    """Faults T37 at the provider: descriptors of the server stay constant."""

    async def once() -> None:
        record = await provider.create(CreateRequest(template="base", timeout=60))
        async with client_of(record):
            pass
        await provider.kill(KillRequest(sandbox_id=record.sandbox_id))

    await once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20 * scale):
        await once()
    # One may still be on its way out: a keeper's socket closes after its kill has answered.
    assert len(os.listdir("/proc/self/fd")) <= before + 1


class _BlockedAgent:
    """An agent that never looks at a clock again."""

    protocol = "1"

    def keep(self, keeper: keeper_module.Keeper, link: socket.socket) -> int:
        asyncio.run(keeper.receive_orders())
        while True:
            signal.pause()

    def run_init(self, link: socket.socket, shape: Shape) -> NoReturn:
        while True:
            signal.pause()


def _fork_blocked_keeper(folder: Path, protections: Protections) -> int:
    """A keeper whose agent is blocked, with a lifetime of one second; returns its pid once it is ready."""
    state = StateFolder(str(folder / "state"))
    state.ensure()
    (folder / "run").mkdir(mode=0o700, exist_ok=True)
    template = templates.find_template(templates.BASE)
    assert template is not None
    sandbox_id = f"blocked{protections.backstop_timer}".lower()
    spec = SandboxSpec(
        sandbox_id=sandbox_id,
        template="base",
        folder=state.folder(sandbox_id),
        runtime_folder=str(folder / "run"),
        socket_name=sandbox_id,
        timeout_s=1,
        access_token="0",
        shape=Shape(
            templates.plan_root(template, state.path, host_root=HOST_ROOT), Limits(pids=64, disk_mb=16), protections
        ),
    )
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            keeper_module.BACKSTOP_S = 0
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            agent = _BlockedAgent()
            ground = Ground(
                spawner=agent,
                filter_program=seccomp.build_filter(os.uname().machine),
                host_uid=os.getuid(),
                host_gid=os.getgid(),
                id_range=users.open_range(str(folder / "ids"), 64) if HOST_ROOT else None,
                staging_folder=state.staging,
                runtime_folder=spec.runtime_folder,
            )
            keeper_module.run(agent, ground, spec.shape, Orders(None, theirs))
        finally:
            os._exit(70)
    with ours, theirs:
        request = spec.encode()
        ours.send(len(request).to_bytes(4, "big") + request)
        assert b"ready" in ours.recv(4096)
    return child


async def test_the_kernel_ends_a_keeper_that_is_blocked(folder: Path, usable: None) -> None:
    """local-runtime, Lifetime: setitimer with the default SIGALRM [ran]; without it the keeper stays."""
    child = _fork_blocked_keeper(folder, Protections())
    await until_gone(child, 5)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGALRM
    child = _fork_blocked_keeper(folder, Protections(backstop_timer=False))
    with anyio.move_on_after(1.5):
        await until_gone(child, 60)
    assert is_running(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
