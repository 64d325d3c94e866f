"""Limits: each one holds, or the option is refused. By fault id where there is one."""

from __future__ import annotations

import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
from pydantic import ValidationError

from cloche_contract.errors import UnsupportedLimit
from cloche_contract.provider import CreateRequest, InspectRequest
from cloche_local import limits
from cloche_local.keeper import OWN_DATA_BYTES
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits, Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

_SMALL = Limits(pids=40, disk_mb=16)
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


async def test_t36_a_task_that_fails_at_the_process_limit_says_so(folder: Path, usable: None) -> None:
    """Faults T36: although everything that the task started is gone when its end is told."""
    forks = "import os, signal\nwhile True:\n    if os.fork() == 0:\n        signal.pause()"
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        wanted = {"task_id": "0" * 32, "command": f"exec python3 -c '{forks}'", "timeout": 60}
        assert (await sandbox.client.post("/cloche.Tasks/Start", json=wanted)).status_code == 200
        task: dict[str, object] = {"state": "running"}
        while task["state"] == "running":
            asked = {"task_id": "0" * 32, "stderr_offset": 1_000_000, "stdout_offset": 1_000_000, "wait_ms": 20_000}
            task = (await sandbox.client.post("/cloche.Tasks/Get", json=asked)).json()["task"]
        printed = (await sandbox.client.post("/cloche.Tasks/Get", json={"task_id": "0" * 32})).json()["stderr"]
        assert (task["state"], task["stop_reason"]) == ("failed", "pids_limit"), (task, b64decode(printed["data"]))
        assert (await sandbox.run("ls /proc | grep -c '^[0-9]'")).exit_code == 0


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user's sandboxes have no ids that another had before")
async def test_t36_the_process_limit_is_named_while_the_sandbox_before_is_still_ending(
    folder: Path, usable: None
) -> None:
    """Faults T36: processes with the sandbox's host id, which it does not see, count for its limit."""
    async with opened(make_provider(folder, limits=_SMALL)) as provider, made(provider) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        first_id = int(Path(f"/proc/{facts['init_pid']}/uid_map").read_text().split()[1])
        others = [subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=first_id) for _ in range(6)]
        try:
            ran = await sandbox.python("import os, signal\nwhile True:\n    if os.fork() == 0:\n        signal.pause()")
        finally:
            for other in others:
                other.communicate()
        assert (ran.exit_code, ran.end["stopReason"]) == (1, "pids_limit"), ran


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


async def test_the_keeper_is_bounded_and_the_spawner_of_root_has_limits_of_its_own(provider: LocalProvider) -> None:
    """What a hostile program makes the keeper keep ends in the keeper; root inside is as free as the user."""
    async with made(provider) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        lines = Path(f"/proc/{facts['keeper_pid']}/limits").read_text().splitlines()
        soft = next(line.split()[3] for line in lines if line.startswith("Max data size"))
        assert int(soft) == OWN_DATA_BYTES
        asked = limits.default_limits().process_mb
        assert asked is not None
        for user in ("user", "root") if HOST_ROOT else ("user",):
            ran = await sandbox.run("ulimit -d", user=user)
            assert int(ran.stdout) == asked << 10, user


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
