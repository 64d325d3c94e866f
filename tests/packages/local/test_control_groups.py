"""Limits by control groups, version 1, version 2 and none: each one holds, or the option is refused.

Version 2 is tested on a recorded tree: no test machine has its controllers. Source: issue 3, part 3; local-runtime.
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import ConfigurationInvalid, UnsupportedLimit
from cloche_contract.provider import CreateRequest, InspectRequest, KillRequest, ListRequest
from cloche_local import limits, paths
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import HOST_ROOT, made, make_provider, opened

_CGROUPS = limits.find_hierarchy("/sys/fs/cgroup") if HOST_ROOT else None
_needs_memory = pytest.mark.skipif(
    _CGROUPS is None or not _CGROUPS.holds("memory"), reason="no memory controller that this user may use"
)
_needs_cpu = pytest.mark.skipif(_CGROUPS is None or not _CGROUPS.holds("cpu"), reason="no cpu controller here")


@_needs_memory
async def test_e20_memory_over_the_limit_has_its_own_reason(provider: LocalProvider) -> None:
    """Faults E20: `memory_limit`, not a generic failure; the sandbox lives on."""
    async with made(provider, memory=96) as sandbox:
        ran = await sandbox.python("x = bytearray(400 << 20); print(len(x))")
        assert ran.end.get("stopReason") == "memory_limit", ran
        assert ran.exit_code == 137
        assert (await sandbox.run("echo alive")).stdout == "alive\n"
        shown = {
            limit.resource: limit for limit in (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).limits
        }
        assert (shown["memory"].enforced, shown["memory"].value) == (True, 96)


@_needs_memory
async def test_e20_an_interpreter_over_the_limit_says_so_too(provider: LocalProvider) -> None:
    """Faults E20 and L23: the reason, and whether state survived."""
    async with made(provider, memory=96) as sandbox:
        lines = await sandbox.execute("x = bytearray(400 << 20)")
        end = lines[-1]
        assert (end["type"], end["stop_reason"], end["state_kept"]) == ("end_of_execution", "memory_limit", False)
        assert "3\n" in [line.get("text") for line in await sandbox.execute("print(1 + 2)")]


@_needs_memory
async def test_e20_a_sandbox_that_is_asked_for_without_a_limit_has_that_of_the_operator(folder: Path) -> None:
    """Who runs a server for others does not see the call that makes a sandbox. A request that names one has its own."""
    async with opened(make_provider(folder, local_memory="96", local_cpu="1")) as provider:
        async with made(provider) as sandbox:
            ran = await sandbox.python("x = bytearray(400 << 20); print(len(x))")
            assert ran.end.get("stopReason") == "memory_limit", ran
            shown = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).limits
            assert {limit.resource: limit.value for limit in shown if limit.resource in ("memory", "cpu")} == {
                "memory": 96,
                "cpu": 1,
            }
        async with made(provider, memory=900) as sandbox:
            ran = await sandbox.python("x = bytearray(400 << 20); print(len(x))")
            assert (ran.end.get("stopReason"), ran.stdout) == ("exit", f"{400 << 20}\n"), ran


@pytest.mark.parametrize("value", ["0", "-1", "much", "1048577", "1.5"])
async def test_a_setting_that_is_no_limit_is_refused_by_its_name(folder: Path, usable: None, value: str) -> None:
    """Fail closed: a slip in it must not mean that there is no limit."""
    async with opened(make_provider(folder, local_memory=value)) as provider:
        with pytest.raises(ConfigurationInvalid) as refusal:
            await provider.create(CreateRequest(template="base", timeout=60))
        assert refusal.value.details["setting"] == "ABX_LOCAL_MEMORY"


async def test_a_limit_of_the_operator_that_the_host_cannot_hold_makes_no_sandbox(
    folder: Path, usable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23, for settings too."""
    monkeypatch.setattr(paths, "CGROUP_ROOT", str(folder / "no-cgroups"))
    async with opened(make_provider(folder, local_memory="96")) as provider:
        with pytest.raises(UnsupportedLimit) as refusal:
            await provider.create(CreateRequest(template="base", timeout=60))
        assert refusal.value.details["limit"] == "memory"
        assert (await provider.list(ListRequest())).sandboxes == []


@_needs_cpu
async def test_a_cpu_limit_is_in_the_group_and_goes_with_the_sandbox(provider: LocalProvider) -> None:
    """local-runtime, Limits: cfs quota; no group is left."""
    assert _CGROUPS is not None
    async with made(provider, cpu=1) as sandbox:
        group = limits.Group(_CGROUPS, sandbox.id)
        assert group.folders()
        assert (await sandbox.run("echo ok")).stdout == "ok\n"
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        with anyio.fail_after(10):
            while group.folders():
                await anyio.sleep(0.01)


@_needs_cpu
async def test_a_sweep_removes_the_group_of_a_sandbox_whose_server_died(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """local-runtime, Lifetime: the next list sweeps records and control groups with our prefix."""
    assert _CGROUPS is not None
    group = limits.Group(_CGROUPS, f"left{os.getpid()}")
    group.make(pids=10, memory_mb=None, cpus=1)
    assert group.folders()
    await provider.list(ListRequest())
    # Another server may be about to put a process into it.
    assert group.folders()
    monkeypatch.setattr(limits, "FRESH_S", 0.0)
    await provider.list(ListRequest())
    assert group.folders() == []


@pytest.mark.skipif(HOST_ROOT, reason="root has control groups on this machine")
async def test_an_ordinary_user_gets_unsupported_limit_and_no_sandbox(provider: LocalProvider) -> None:
    """D23: an option that cannot be enforced is refused, not ignored."""
    for fields, resource in (({"memory": 64}, "memory"), ({"cpu": 1}, "cpu")):
        with pytest.raises(UnsupportedLimit) as refused:
            await provider.create(CreateRequest.model_validate({"template": "base", "timeout": 60, **fields}))
        assert refused.value.details["limit"] == resource
    assert (await provider.list(ListRequest())).sandboxes == []


async def test_where_there_is_no_controller_the_limit_is_refused(
    folder: Path, usable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23, for root too: an empty control group tree."""
    monkeypatch.setattr(paths, "CGROUP_ROOT", str(folder / "no-cgroups"))
    async with opened(make_provider(folder)) as provider:
        with pytest.raises(UnsupportedLimit):
            await provider.create(CreateRequest(template="base", timeout=60, memory=64))
        assert (await provider.list(ListRequest())).sandboxes == []


def _recorded_v2(root: Path, controllers: str) -> None:
    """The files of a cgroup v2 root, as systemd leaves them."""
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma\n")
    (root / "cgroup.subtree_control").write_text(controllers + "\n")
    (root / "cgroup.procs").write_text("")


def test_version_2_limits_are_written_as_the_kernel_wants_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """local-runtime, Limits: pids.max, memory.max, cpu.max; on a recorded tree, as no test machine has it."""
    root = tmp_path / "cgroup"
    _recorded_v2(root, "cpu io memory pids")
    hierarchy = limits.find_hierarchy(str(root))
    assert hierarchy.version == 2
    assert sorted(hierarchy.folders) == ["cpu", "memory", "pids"]
    folder = root / "cloche-abc"
    folder.mkdir()
    for name in ("pids.max", "memory.max", "memory.swap.max", "cpu.max", "cgroup.procs"):
        (folder / name).write_text("")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n")
    group = limits.Group(hierarchy, "abc")
    group.make(pids=100, memory_mb=256, cpus=2)
    group.attach(4242)
    assert (folder / "pids.max").read_text() == str(100 + 8)
    assert (folder / "memory.max").read_text() == str(256 << 20)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "cpu.max").read_text() == "200000 100000"
    assert (folder / "cgroup.procs").read_text() == "4242"
    events = group.open_memory_events()
    try:
        assert limits.count_memory_kills(events) == 2
    finally:
        os.close(events)
    assert limits.left_groups(hierarchy) == set()
    monkeypatch.setattr(limits, "FRESH_S", 0.0)
    assert limits.left_groups(hierarchy) == {"abc"}


def _delegated(root: Path) -> Path:
    """A recorded tree in which a user's own part is writable and the rest is not."""
    _recorded_v2(root, "cpu io memory pids")
    own = root / "user.slice" / "app.slice"
    (own / "terminal.scope").mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("memory pids\n")
    (own / "cgroup.procs").write_text("")
    (root / "membership").write_text("0::/user.slice/app.slice/terminal.scope\n")
    return own


def test_an_ordinary_users_delegated_group_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """local-runtime, Limits: systemd delegates a part of the tree; groups go beside our own, where that is ours."""
    root = tmp_path / "cgroup"
    own = _delegated(root)
    real = os.access
    closed: set[str] = {str(root)}

    def access(path: str, mode: int) -> bool:
        return path not in closed and real(path, mode)

    monkeypatch.setattr(os, "access", access)
    found = limits.find_hierarchy(str(root), str(root / "membership"))
    # What the user's part does not have turned on is not had.
    assert found == limits.Hierarchy(2, {"pids": str(own), "memory": str(own)})
    # A terminal of a login over the network: its scope is in a part that root owns.
    for name in (str(own), f"{own}/cgroup.procs"):
        closed.add(name)
        assert limits.find_hierarchy(str(root), str(root / "membership")).folders == {}
        closed.discard(name)
    assert limits.find_hierarchy(str(root), str(root / "no-such-file")).folders == {}


def test_a_group_is_entered_by_what_was_opened_before_the_namespace_changed(tmp_path: Path) -> None:
    """cgroups(7), nsdelegate: from a namespace of its own the keeper could not open the groups any more."""
    root = tmp_path / "cgroup"
    _recorded_v2(root, "memory pids")
    folder = root / "cloche-abc"
    folder.mkdir()
    for name in ("pids.max", "memory.max", "memory.swap.max", "cgroup.procs"):
        (folder / name).write_text("")
    group = limits.Group(limits.find_hierarchy(str(root)), "abc")
    group.make(pids=100, memory_mb=256, cpus=None)
    root.rename(tmp_path / "out-of-reach")
    group.attach(4242)
    assert (tmp_path / "out-of-reach/cloche-abc/cgroup.procs").read_text() == "4242"


async def test_a_limit_that_the_kernel_refuses_at_last_is_refused(
    folder: Path, usable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23: the controller is there, its group cannot be set up; no sandbox, no group, and the typed error."""
    root = folder / "cgroup"
    _recorded_v2(root, "cpu memory pids")
    monkeypatch.setattr(paths, "CGROUP_ROOT", str(root))
    async with opened(make_provider(folder)) as provider:
        for option in ("memory", "cpu"):
            request = CreateRequest.model_validate({"template": "base", "timeout": 60, option: 64})
            with pytest.raises(UnsupportedLimit) as refused:
                await provider.create(request)
            assert refused.value.details["limit"] == option
        assert (await provider.list(ListRequest())).sandboxes == []
        with anyio.fail_after(10):
            while list(root.glob("cloche-*")):
                await anyio.sleep(0.01)


@_needs_cpu
async def test_a_cpu_limit_holds(provider: LocalProvider) -> None:
    """Issue 3, part 3: two busy processes together get one processor's time. More only makes the machine slower."""
    code = """
import os, time
began = time.monotonic()
for _ in range(2):
    if os.fork() == 0:
        while time.monotonic() < began + 1:
            pass
        os._exit(0)
for _ in range(2):
    os.wait()
used = os.times()
print((used.children_user + used.children_system) / (time.monotonic() - began))
"""
    async with made(provider, cpu=1) as sandbox:
        assert float((await sandbox.python(code)).stdout) < 1.3


def test_version_2_without_controllers_holds_nothing(tmp_path: Path) -> None:
    """The unified hierarchy of a version 1 machine is there and empty."""
    root = tmp_path / "cgroup"
    _recorded_v2(root, "")
    assert not limits.find_hierarchy(str(root)).holds("memory")


def test_version_1_limits_are_written_per_controller(tmp_path: Path) -> None:
    """local-runtime, Limits, first row."""
    for name in ("pids", "memory", "cpu"):
        (tmp_path / name / "cloche-abc").mkdir(parents=True)
        (tmp_path / name / "cgroup.procs").write_text("")
    for name in ("pids/cloche-abc/pids.max", "memory/cloche-abc/memory.limit_in_bytes"):
        (tmp_path / name).write_text("")
    for name in ("cpu.cfs_period_us", "cpu.cfs_quota_us"):
        (tmp_path / "cpu/cloche-abc" / name).write_text("")
    for name in ("pids", "memory", "cpu"):
        (tmp_path / name / "cloche-abc/cgroup.procs").write_text("")
    hierarchy = limits.find_hierarchy(str(tmp_path))
    assert hierarchy.version == 1
    group = limits.Group(hierarchy, "abc")
    group.make(pids=None, memory_mb=64, cpus=3)
    assert (tmp_path / "memory/cloche-abc/memory.limit_in_bytes").read_text() == str(64 << 20)
    assert (tmp_path / "cpu/cloche-abc/cpu.cfs_quota_us").read_text() == "300000"
    group.attach(7)
    assert (tmp_path / "cpu/cloche-abc/cgroup.procs").read_text() == "7"
