"""Refusals: what this machine cannot isolate is said with cause and fix, and nothing weaker is used. By fault id."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cloche_contract.errors import CAUSES, BackendCause, BackendUnavailable, SandboxNotFound
from cloche_contract.provider import (
    CreateRequest,
    GetRequest,
    KillRequest,
    ListRequest,
    LogsRequest,
    ProviderOptions,
    PruneRequest,
)
from cloche_local import early, probe, users
from cloche_local import launcher as launcher_module
from cloche_local.launcher import CreateRefused
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import HOST_ROOT, make_provider, opened

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_MAX_NAMESPACES = "/proc/sys/user/max_user_namespaces"
_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_SECCOMP = "/proc/sys/kernel/seccomp/actions_avail"


class FakeHost(probe.Host):
    """A machine that a test describes."""

    def __init__(
        self,
        *,
        platform: str = "linux",
        machine: str = "x86_64",
        kernel: str = "6.8.0-45-generic",
        root: bool = False,
        files: dict[str, str] | None = None,
        readable: bool = True,
    ) -> None:
        self._platform, self._machine, self._kernel = platform, machine, kernel
        self._root, self._readable = root, readable
        self._files = {_SECCOMP: "kill_process errno allow"} if files is None else files

    def platform(self) -> str:
        return self._platform

    def machine(self) -> str:
        return self._machine

    def kernel(self) -> str:
        return self._kernel

    def is_root(self) -> bool:
        return self._root

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def python_readable(self) -> bool:
        return self._readable


_WITH_SECCOMP = {_SECCOMP: "errno allow"}
_MACHINES: list[tuple[str, FakeHost, BackendCause]] = [
    ("macos", FakeHost(platform="darwin", machine="arm64"), "platform_unsupported"),
    ("windows", FakeHost(platform="win32", machine="AMD64"), "platform_unsupported"),
    ("riscv", FakeHost(machine="riscv64"), "architecture_unsupported"),
    ("rhel-8", FakeHost(kernel="4.18.0-553.el8_10.x86_64"), "kernel_too_old"),
    ("ubuntu-20.04", FakeHost(kernel="5.4.0-190-generic"), "kernel_too_old"),
    ("debian-11-root", FakeHost(kernel="5.10.0-32-amd64", root=True), "kernel_too_old"),
    ("ubuntu-22.04-root", FakeHost(kernel="5.15.0-122-generic", root=True), "kernel_too_old"),
    ("namespaces-off", FakeHost(files={**_WITH_SECCOMP, _MAX_NAMESPACES: "0"}), "user_namespaces_disabled"),
    ("debian-switch-off", FakeHost(files={**_WITH_SECCOMP, _CLONE: "0"}), "user_namespaces_disabled"),
    ("no-seccomp", FakeHost(files={}), "seccomp_unavailable"),
    ("python-in-roots-home", FakeHost(root=True, readable=False), "python_unreadable"),
]


@pytest.mark.parametrize(("host", "cause"), [machine[1:] for machine in _MACHINES], ids=[m[0] for m in _MACHINES])
async def test_e16_an_unfit_machine_is_refused_with_its_cause(
    folder: Path, host: FakeHost, cause: BackendCause
) -> None:
    """Faults E16: one typed error with the cause, and a fix for each; the probe says the same."""
    async with opened(make_provider(folder, host=host)) as provider:
        with pytest.raises(BackendUnavailable) as refused:
            await provider.create(CreateRequest(template="base", timeout=60))
        assert refused.value.details["cause"] == cause
        report = await provider.probe()
        assert not report.usable
        assert report.capabilities == []
        assert not any(limit.enforced for limit in report.limits)
        bad = [check for check in report.checks if check.required and not check.ok]
        assert [check.cause for check in bad] == [cause]
        assert bad[0].fix == CAUSES[cause][1]


async def test_a_machine_without_posix_calls_still_lists_and_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """local-runtime, Refusals: macOS and Windows answer typed errors, not AttributeError."""
    for module, names in ((os, ("geteuid", "getuid", "pidfd_open")), (socket, ("recv_fds", "send_fds"))):
        for name in names:
            monkeypatch.delattr(module, name, raising=False)
    for name in ("fcntl", "ctypes", "resource"):
        monkeypatch.setitem(sys.modules, name, None)
    provider = LocalProvider(ProviderOptions(environ={"HOME": str(folder)}), host=FakeHost(platform="win32"))
    assert (await provider.list(ListRequest())).sandboxes == []
    with pytest.raises(SandboxNotFound):
        await provider.get(GetRequest(sandbox_id="abc"))
    with pytest.raises(SandboxNotFound):
        await provider.kill(KillRequest(sandbox_id="abc"))
    with pytest.raises(BackendUnavailable):
        await provider.create(CreateRequest(template="base", timeout=60))
    with pytest.raises(SandboxNotFound):
        await provider.logs(LogsRequest(sandbox_id="abc", wait=1))
    assert (await provider.prune(PruneRequest())).removed == []
    assert not (await provider.probe()).usable
    await provider.warm()
    await provider.close()


_REFUSED: list[tuple[str, int, FakeHost, BackendCause]] = [
    ("namespaces", errno.EPERM, FakeHost(), "namespaces_blocked"),
    ("namespaces", errno.ENOSPC, FakeHost(), "user_namespaces_disabled"),
    ("namespaces", errno.EPERM, FakeHost(files={_CLONE: "0"}), "user_namespaces_disabled"),
    ("namespaces", errno.EACCES, FakeHost(files={_APPARMOR: "1"}), "user_namespaces_restricted"),
    ("tmpfs", errno.EACCES, FakeHost(files={_APPARMOR: "1"}), "user_namespaces_restricted"),
    ("tmpfs", errno.EPERM, FakeHost(), "mounts_blocked"),
    ("bind", errno.EPERM, FakeHost(), "mounts_blocked"),
    ("pivot", errno.EINVAL, FakeHost(), "mounts_blocked"),
    ("overlay", errno.ENODEV, FakeHost(), "overlay_unavailable"),
    ("overlay", errno.EPERM, FakeHost(), "overlay_unavailable"),
    ("proc", errno.EPERM, FakeHost(), "proc_mount_blocked"),
    ("seccomp", errno.EINVAL, FakeHost(), "seccomp_unavailable"),
    ("no_new_privileges", errno.EINVAL, FakeHost(), "no_new_privileges_unavailable"),
    ("capabilities", errno.EPERM, FakeHost(), "capabilities_undroppable"),
    ("id_range", errno.EPERM, FakeHost(root=True), "id_range_unavailable"),
    ("lower", errno.EINVAL, FakeHost(root=True), "idmapped_mounts_unavailable"),
    ("init", errno.EPIPE, FakeHost(), "zygote_failed"),
    ("/state/record.new", errno.ENOSPC, FakeHost(), "state_directory_unusable"),
]


@pytest.mark.parametrize(("step", "number", "host", "cause"), _REFUSED)
async def test_e16_a_refused_step_is_one_typed_cause(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, host: FakeHost, cause: BackendCause
) -> None:
    """Faults E16: Ubuntu 24.04's AppArmor rule, containers, missing overlay; by a faked answer of the keeper."""

    async def refuse(*_arguments: object, **_options: object) -> None:
        raise CreateRefused(step, number)

    monkeypatch.setattr(launcher_module.Launcher, "create", refuse)
    monkeypatch.setattr(launcher_module.Launcher, "start", _start_nothing)
    fit = FakeHost(root=host.is_root(), files={**_WITH_SECCOMP, _APPARMOR: host.read(_APPARMOR) or "0"})
    assert probe.cause_of(host, step, number) == cause
    if host.read(_CLONE) is not None or (host.is_root() and not HOST_ROOT):
        # The first is refused before any step; the second prepares files as only a root host may.
        return
    async with opened(make_provider(folder, host=fit)) as provider:
        with pytest.raises(BackendUnavailable) as refused:
            await provider.create(CreateRequest(template="base", timeout=60))
        assert refused.value.details["cause"] == cause


async def _start_nothing(_self: launcher_module.Launcher) -> None:
    return None


async def test_e17_nothing_runs_unsandboxed_when_a_step_is_refused(provider: LocalProvider, folder: Path) -> None:
    """Faults E17: fail closed. A real refusal: the skeleton vanishes between plan and mount."""
    await provider.warm()
    mark = folder / "ran"
    (folder / "state" / ".mnt").rmdir()
    with pytest.raises(BackendUnavailable) as refused:
        await provider.create(CreateRequest(template="base", timeout=60))
    assert refused.value.details["cause"] == "mounts_blocked"
    assert not mark.exists()
    assert (await provider.list(ListRequest())).sandboxes == []
    # What was built up to that step is gone as well.
    left = [path.name for path in (folder / "state").iterdir() if path.name.startswith(".new-") or path.name[0] != "."]
    assert left == []


async def test_the_probe_of_this_machine_tells_the_truth(provider: LocalProvider) -> None:
    """local-runtime, Limits: a report built by trying, `enforced_by` per resource."""
    report = await provider.probe()
    assert report.usable
    assert {"lifecycle", "timeout", "renew_on_request", "exec", "files", "code"} <= set(report.capabilities)
    assert ("users_root" in report.capabilities) is HOST_ROOT
    by_resource = {limit.resource: limit for limit in report.limits}
    assert all(limit.enforced_by for limit in report.limits if limit.enforced)
    assert ("limits_memory" in report.capabilities) is by_resource["memory"].enforced
    assert (await provider.list(ListRequest())).sandboxes == []


def test_the_probe_asks_for_the_ids_that_sandboxes_get(tmp_path: Path) -> None:
    """A map that covers less is refused before anything is made."""
    first, last = probe.IDS_OF_SANDBOXES
    held = [users.lease_range(str(tmp_path)) for _ in range(3)]
    try:
        assert all(first <= base and base + users.RANGE_SIZE <= last for base, _lock in held)
        assert len({base for base, _lock in held}) == 3
    finally:
        for _base, lock in held:
            os.close(lock)
    container = FakeHost(root=True, files={**_WITH_SECCOMP, "/proc/self/uid_map": "0 1000 1\n1 100000 65536"})
    assert [check.cause for check in probe.host_checks(container) if not check.ok] == ["id_range_unavailable"]


async def test_a_state_folder_of_somebody_else_is_refused(folder: Path) -> None:
    """security.md, Judge0: work only in folders that are ours."""
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    async with opened(make_provider(folder)) as provider:
        with pytest.raises(BackendUnavailable) as refused:
            await provider.create(CreateRequest(template="base", timeout=60))
    assert refused.value.details["cause"] == "state_directory_unusable"


async def test_a_linked_runtime_folder_is_refused(folder: Path) -> None:
    """/tmp is everybody's: a link in place of our folder is not followed."""
    (folder / "elsewhere").mkdir()
    (folder / "run").symlink_to(folder / "elsewhere")
    async with opened(make_provider(folder)) as provider:
        with pytest.raises(BackendUnavailable) as refused:
            await provider.create(CreateRequest(template="base", timeout=60))
    assert refused.value.details["cause"] == "runtime_directory_unusable"


_OTHER_PLATFORM = """
import importlib, pkgutil, sys
for name in ("ctypes", "fcntl", "resource"):
    assert name not in sys.modules, name
    sys.modules[name] = None
import cloche_local
names = [module.name for module in pkgutil.iter_modules(cloche_local.__path__) if module.name != "zygote"]
for name in names:
    importlib.import_module("cloche_local." + name)
print(len(names))
"""


def test_every_module_imports_without_ctypes_and_fcntl() -> None:
    """local-runtime, Refusals: everything imports on macOS and Windows."""
    command = [sys.executable, "-c", _OTHER_PLATFORM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


_GUEST_ONLY = """
import sys
sys.path[:0] = {folders!r}
from cloche_local import zygote, keeper, init, mounts, users, seccomp, limits, state
outside = [name for name in sys.modules if name.split(".")[0] in ("pydantic", "anyio", "cloche_contract", "httpx")]
print(outside, any("site-packages" in path for path in sys.path))
"""


def test_the_guest_half_is_standard_library_only() -> None:
    """local-runtime, Processes: under -I -S, with nothing but our own folders."""
    code = _GUEST_ONLY.format(folders=early.code_folders())
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[]", "False"]
