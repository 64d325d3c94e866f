"""Refusals of a real kernel: namespaces of a test stand for machines that block what a sandbox needs.

Source: faults E16, E17; local-runtime, Refusals.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import pytest

from tests.packages.local.ordinary import missing, run_as_user, system_python
from tests.packages.local.sandboxes import HOST_ROOT

_PROBE = """
import anyio, os, sys
from cloche_contract.errors import BackendUnavailable
from cloche_contract.provider import CreateRequest, KillRequest, ListRequest, ProviderOptions
from cloche_local.provider import LocalProvider

async def main():
    home = os.environ["HOME"]
    settings = {"local_state_dir": home + "/s", "local_runtime_dir": home + "/r"}
    provider = LocalProvider(ProviderOptions(settings=settings))
    try:
        await provider.create(CreateRequest(template="base", timeout=60))
        print("made")
    except BackendUnavailable as refused:
        print(refused.details["cause"])
    report = await provider.probe()
    print(report.usable, [check.cause for check in report.checks if check.required and not check.ok])
    sandboxes = (await provider.list(ListRequest())).sandboxes
    print(len(sandboxes))
    for record in sandboxes:
        await provider.kill(KillRequest(sandbox_id=record.sandbox_id))
    await provider.close()

anyio.run(main)
"""

# What Docker's filter does to a program inside a container, by the filter of our own sandboxes.
_FILTERED = """
import os, sys
from cloche_local import seccomp, syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.set_seccomp(seccomp.build_filter(os.uname().machine))
os.execv(sys.argv[1], sys.argv[1:])
"""

pytestmark = pytest.mark.skipif(not HOST_ROOT, reason="needs root to change the namespaces that a user starts in")


def _probe(*, prepare: str = "true", before: Sequence[str] = ()) -> list[str]:
    """What an ordinary user's create and probe print."""
    if lacking := missing():
        pytest.skip(lacking)
    python = system_python() or ""
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        done = run_as_user([*before, python, "-P", "-c", _PROBE], home, prepare=prepare)
    if "Permission denied" in done.stderr:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_ordinary_user_is_not_refused() -> None:
    """The counterpart: what the tests below take away is all that is missing there."""
    assert _probe() == ["made", "True []", "1"]


def test_e16_a_masked_proc_is_refused_as_inside_a_container() -> None:
    """Faults E16: container engines hide parts of /proc, and the kernel then refuses a new one."""
    refused = ["proc_mount_blocked", "False ['proc_mount_blocked']", "0"]
    assert _probe(prepare="mount -t tmpfs none /proc/sysvipc") == refused


def test_e16_blocked_namespaces_are_refused_as_inside_a_container() -> None:
    """Faults E16: the engine's filter answers EPERM to unshare."""
    before = [system_python() or "", "-P", "-c", _FILTERED]
    assert _probe(before=before) == ["namespaces_blocked", "False ['namespaces_blocked']", "0"]


def test_e16_root_of_a_user_namespace_is_refused() -> None:
    """Root inside a rootless container has no range of ids to give away."""
    refused = ["id_range_unavailable", "False ['id_range_unavailable']", "0"]
    assert _probe(before=["unshare", "--user", "--map-root-user"]) == refused


def test_e17_a_full_state_folder_is_refused_and_leaves_nothing() -> None:
    """Faults E17: no half of a sandbox."""
    prepare = "mount -t tmpfs -o size=16k,nr_inodes=6,mode=777 none $HOME"
    assert _probe(prepare=prepare) == ["state_directory_unusable", "False ['state_directory_unusable']", "0"]
