"""Limits: each one holds, or the option is refused. By fault id where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from pydantic import ValidationError

from cloche_contract.errors import UnsupportedLimit
from cloche_contract.provider import CreateRequest, InspectRequest, KillRequest, ListRequest
from cloche_local import limits, paths
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits, Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

_SMALL = Limits(pids=40, disk_mb=16)
_CGROUPS = limits.find_hierarchy("/sys/fs/cgroup") if HOST_ROOT else None
_needs_memory = pytest.mark.skipif(
    _CGROUPS is None or not _CGROUPS.holds("memory"), reason="no memory controller that this user may use"
)
_needs_cpu = pytest.mark.skipif(_CGROUPS is None or not _CGROUPS.holds("cpu"), reason="no cpu controller here")

_FILL = """
import errno, os
written = 0
try:
    with open("{path}/fill", "wb", 0) as file:
        while written < 64 << 20:
            written += file.write(b"x" * (1 << 20))
except OSError as error:
    print(errno.errorcode[error.errno], end=" ")
print(written >> 20)
"""

_THREADS = """
import os, signal, threading
full, tell = os.pipe()
if os.fork() == 0:
    stop = threading.Event()
    try:
        while True:
            threading.Thread(target=stop.wait).start()
    except RuntimeError:
        os.write(tell, b"x")
        signal.pause()
os.read(full, 1)
os._exit(3)
"""

_FORK = """
import errno, os, signal, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            {in_child}
            signal.pause()
        made += 1
except OSError as error:
    print(errno.errorcode[error.errno], end=" ")
print(made, flush=True)
os.killpg(0, signal.SIGKILL)
"""


async def test_e18_a_full_disk_is_enospc_inside_and_bounded_outside(folder: Path, usable: None) -> None:
    """Faults E18: `dd if=/dev/zero`: the cap is enforced, whatever file system the host has."""
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        ran = await sandbox.run("dd if=/dev/zero of=/home/user/big bs=1M count=64")
        assert "No space left on device" in ran.stderr
        assert ran.exit_code == 1
        size = int((await sandbox.run("stat -c %s /home/user/big")).stdout)
        assert size <= 16 << 20
        # The sandbox still works, and says so by typed error where the agent writes.
        assert (
            await sandbox.run("rm /home/user/big; echo ok > /home/user/small; cat /home/user/small")
        ).stdout == "ok\n"


@pytest.mark.parametrize("path", ["/home/user", "/app", "/tmp", "/var/tmp", "/dev/shm"])
async def test_e19_every_writable_folder_is_under_the_one_limit(folder: Path, usable: None, path: str) -> None:
    """Faults E19: no second place to write to."""
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        name, written = (await sandbox.python(_FILL.replace("{path}", path))).stdout.split()
        assert name == "ENOSPC"
        assert int(written) <= 16
        # What is full is full everywhere: the size is shared.
        other = "/tmp" if path != "/tmp" else "/home/user"
        name, written = (await sandbox.python(_FILL.replace("{path}", other))).stdout.split()
        assert (name, written) == ("ENOSPC", "0")


async def test_e19_no_other_place_can_be_written(folder: Path, usable: None) -> None:
    """Faults E19: walk the tree and try every folder; root of the sandbox too, where there is one."""
    code = """
import os
def writable(folder):
    try:
        with open(folder + "/.try", "wb") as file:
            file.write(b"x")
        device = os.stat(folder + "/.try").st_dev
        os.unlink(folder + "/.try")
        return device
    except OSError:
        return None
devices = {}
for folder, names, _files in os.walk("/"):
    names[:] = [name for name in names if not folder.startswith("/proc/") or folder.count("/") < 2]
    device = writable(folder)
    if device is not None:
        devices.setdefault(device, folder)
print(sorted(devices.values()))
"""
    for user in ("user", "root") if HOST_ROOT else ("user",):
        async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
            ran = await sandbox.python(code, user=user, timeout_s=60)
            # Two views of one tmpfs: through the overlay, and shared memory.
            places = ran.stdout.strip()
            assert "/dev/shm" in places
            assert places.count("/") - places.count("/dev/shm") * 2 <= 2, places


async def test_without_the_disk_limit_more_is_written(folder: Path, usable: None) -> None:
    """The protection bites: without it 64 MiB fit into a 16 MiB disk."""
    without = make_provider(folder, limits=_SMALL, protections=Protections(disk_limit=False))
    async with opened(without) as provider, made(provider) as sandbox:
        assert (await sandbox.python(_FILL.replace("{path}", "/home/user"))).stdout.split() == ["64"]


async def test_many_empty_files_are_bounded_too(folder: Path, usable: None) -> None:
    """Faults E19: an inode takes kernel memory that a tmpfs does not count as size."""
    code = """
import errno, os
made = 0
try:
    while made < 50_000:
        os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    print(errno.errorcode[error.errno], made)
"""
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        name, made_files = (await sandbox.python(code)).stdout.split()
        assert name == "ENOSPC"
        assert int(made_files) <= 4096


@pytest.mark.parametrize("user", ["user", "root"])
async def test_t36_a_fork_bomb_stops_at_the_process_limit(folder: Path, usable: None, user: str) -> None:
    """Faults T36: by default, for every user of the sandbox; root of it may even change its id for each child."""
    if user == "root" and not HOST_ROOT:
        pytest.skip("an ordinary user maps one id: the sandbox has no root")
    code = _FORK.replace("{in_child}", "os.setuid(3000 + made)" if user == "root" else "pass")
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        ran = await sandbox.python(code, user=user)
        name, made_processes = ran.stdout.split()
        assert name == "EAGAIN"
        assert 20 <= int(made_processes) <= 48
        assert (await sandbox.run("echo alive")).stdout == "alive\n"


async def test_without_the_process_limit_a_fork_bomb_goes_on(folder: Path, usable: None) -> None:
    """The protection bites."""
    without = make_provider(folder, limits=_SMALL, protections=Protections(process_limit=False))
    async with opened(without) as provider, made(provider) as sandbox:
        assert (await sandbox.python(_FORK.replace("{in_child}", "pass"))).stdout.split() == ["200"]


async def test_two_sandboxes_do_not_share_a_process_limit(folder: Path, usable: None) -> None:
    """local-runtime, Users: counted per user namespace [ran]."""
    async with (
        opened(make_provider(folder, limits=_SMALL)) as provider,
        made(provider) as first,
        made(provider) as second,
    ):
        await first.run("for i in $(seq 30); do sleep 60 & done >/dev/null 2>&1")
        assert (await second.python(_FORK.replace("{in_child}", "pass"))).stdout.split()[0] == "EAGAIN"
        assert (await second.run("echo room")).stdout == "room\n"


async def test_t36_a_command_that_fails_at_the_process_limit_says_so(folder: Path, usable: None) -> None:
    """Faults T36: the result says `pids_limit`, for a command and for code; threads count like processes."""
    forks = "import os, signal\nwhile True:\n    if os.fork() == 0:\n        signal.pause()"
    async with opened(make_provider(folder, limits=_SMALL)) as provider:
        async with made(provider) as sandbox:
            ran = await sandbox.python(_THREADS)
            assert (ran.exit_code, ran.end["stopReason"]) == (3, "pids_limit"), ran
            ran = await sandbox.python(forks)
            assert (ran.exit_code, ran.end["stopReason"]) == (1, "pids_limit"), ran
        async with made(provider) as sandbox:
            end = (await sandbox.execute(forks))[-1]
            assert (end["exit_code"], end["stop_reason"]) == (1, "pids_limit"), end
            assert "3\n" in [line.get("text") for line in await sandbox.execute("print(1 + 2)")]


async def test_a_command_that_fails_on_a_full_disk_says_so(folder: Path, usable: None) -> None:
    """Issue 3, part 3: stop reasons say which limit was hit; a failure beside it has its own."""
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        assert (await sandbox.run("exit 3")).end["stopReason"] == "exit"
        ran = await sandbox.run("dd if=/dev/zero of=/home/user/big bs=1M count=64")
        assert ran.end["stopReason"] == "disk_full"
        end = (await sandbox.execute("open('/home/user/more', 'wb').write(bytes(1 << 20))"))[-1]
        assert (end["exit_code"], end["stop_reason"]) == (1, "disk_full")
        # What succeeds is not blamed.
        assert (await sandbox.run("true")).end["stopReason"] == "exit"


async def test_t11_each_limit_of_create_holds_or_is_refused(provider: LocalProvider) -> None:
    """Faults T11: lifetime, memory and processor time; an option that nobody holds is no option."""
    lifetime = CreateRequest(template="base", timeout=1)
    sandbox = await provider.create(lifetime)
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))).facts
    await until_gone(int(facts["keeper_pid"]), within_s=30)
    capabilities = (await provider.probe()).capabilities
    for option, value in (("memory", 96), ("cpu", 1)):
        request = CreateRequest.model_validate({"template": "base", "timeout": 60, option: value})
        if f"limits_{option}" not in capabilities:
            with pytest.raises(UnsupportedLimit):
                await provider.create(request)
            continue
        sandbox = await provider.create(request)
        shown = (await provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))).limits
        assert [(limit.enforced, limit.value) for limit in shown if limit.resource == option] == [(True, value)]
    for unknown in ("rlimit", "max_duration", "pids", "disk"):
        with pytest.raises(ValidationError):
            CreateRequest.model_validate({"template": "base", "timeout": 60, unknown: 1})


async def test_the_open_files_of_a_process_are_bounded(folder: Path, usable: None) -> None:
    """Issue 3, part 3: descriptors; the host has a number of them for everybody."""
    code = """
import errno, os, resource
opened = 0
try:
    while opened < 2000:
        os.open("/dev/null", os.O_RDONLY)
        opened += 1
except OSError as error:
    print(errno.errorcode[error.errno], opened < 300)
else:
    print("all")
"""
    small = Limits(pids=40, disk_mb=16, open_files=300)
    for on, outcome in ((True, "EMFILE True"), (False, "all")):
        protections = Protections(open_files_limit=on)
        async with (
            opened(make_provider(folder, limits=small, protections=protections)) as provider,
            made(provider) as sandbox,
        ):
            raised = "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)"
            ran = await sandbox.python(code.replace("opened = 0", raised + "\nopened = 0"))
            assert ran.stdout.strip() == outcome, ran


async def test_one_process_does_not_take_all_the_memory_of_the_host(folder: Path, usable: None) -> None:
    """Faults L23, without a control group: too much for one process is an error in it at once."""
    small = Limits(pids=40, disk_mb=16, process_mb=256)
    code = "print(len(bytearray(512 << 20)))"
    for on, outcome in ((True, "MemoryError"), (False, "536870912")):
        protections = Protections(process_memory_limit=on)
        async with (
            opened(make_provider(folder, limits=small, protections=protections)) as provider,
            made(provider) as sandbox,
        ):
            ran = await sandbox.python(code)
            assert outcome in ran.stdout + ran.stderr
            end = (await sandbox.execute(code))[-1]
            assert end["stop_reason"] == ("memory_limit" if on else "exit")


async def test_code_in_a_sandbox_is_killed_before_the_programs_of_the_host(folder: Path, usable: None) -> None:
    """Where the host runs out of memory, the kernel takes a sandbox's process; root of it has no say in that."""
    own = int(Path("/proc/self/oom_score_adj").read_text())
    for on in (True, False):
        protections = Protections(killed_first=on)
        async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
            for user in ("user", "root") if HOST_ROOT else ("user",):
                ran = await sandbox.run("cat /proc/self/oom_score_adj", user=user)
                assert int(ran.stdout) == (min(own + 500, 1000) if on else own), user


async def test_half_of_what_the_kernel_counts_for_a_user_stays_his(folder: Path, usable: None) -> None:
    """A sandbox of an ordinary user counts for him on the host too: it may not take every watch that he has."""
    code = """
import ctypes
libc = ctypes.CDLL(None)
count = 0
while count < 100_000 and libc.inotify_init1(0) >= 0:
    count += 1
print(count)
"""
    own = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    if own > 900:
        pytest.skip("the open files of one process end before its watches do")
    for on in (True, False):
        protections = Protections(kernel_counts_bounded=on)
        async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
            count = int((await sandbox.python(code)).stdout)
            assert (count <= own // 2) is on, count


async def test_inspect_shows_what_holds_each_limit(provider: LocalProvider) -> None:
    """Issue 3, part 3: the defaults too."""
    async with made(provider) as sandbox:
        shown = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).limits
        found = {limit.resource: (limit.enforced, limit.value) for limit in shown}
        expected = limits.default_limits()
        assert found == {
            "pids": (True, expected.pids),
            "disk": (True, expected.disk_mb),
            "inodes": (True, max(expected.disk_mb * 128, 4096)),
            "memory": (False, None),
            "cpu": (False, None),
            "process_memory": (True, expected.process_mb),
            "open_files": (True, expected.open_files),
        }


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


async def test_root_of_a_sandbox_gains_nothing_by_a_set_id_program(folder: Path, usable: None) -> None:
    """S13: nosuid and no_new_privs; each alone is enough, and without both the program has root's id."""
    if not HOST_ROOT:
        pytest.skip("an ordinary user maps one id: the sandbox has no root")
    outcomes: dict[tuple[bool, bool], str] = {}
    for nosuid in (True, False):
        for privileges in (True, False):
            protections = Protections(set_id_ignored=nosuid, no_new_privileges=privileges, seccomp=False)
            async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
                await _plant(sandbox)
                outcomes[(nosuid, privileges)] = (await sandbox.run("/tmp/planted -u")).stdout.strip()
    assert outcomes == {(True, True): "1000", (True, False): "1000", (False, True): "1000", (False, False): "0"}


async def _plant(sandbox: Sandbox) -> None:
    ran = await sandbox.run("cp /usr/bin/id /tmp/planted && chmod 4755 /tmp/planted", user="root")
    assert ran.exit_code == 0, ran.stderr
