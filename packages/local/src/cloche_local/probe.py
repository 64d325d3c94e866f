"""Whether this machine can isolate a sandbox, and if not, the cause and the fix. Nothing weaker is ever used instead.

Facts come through `Host`, so that tests stand in another machine. The last word is a real sandbox: the provider
makes one and kills it.
"""

import errno
import os
import sys
from contextlib import suppress
from typing import cast

from cloche_contract.common import Capability
from cloche_contract.errors import CAUSES, BackendCause, BackendUnavailable
from cloche_contract.provider import LimitInfo, ProbeCheck, ProbeReport
from cloche_local import seccomp, templates
from cloche_local.limits import Hierarchy

# Overlay in a user namespace is 5.11; processes counted per user namespace, without which no pids limit holds, 5.14.
_USER_KERNEL = (5, 14)
# Root also needs overlay layers with mapped ids.
_ROOT_KERNEL = (5, 19)

# What users.lease_range hands out, from and to.
IDS_OF_SANDBOXES = (0x60000000, 0x70000000)
_DISABLING_SYSCTLS = ("/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone")
_APPARMOR_SYSCTL = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

_CAPABILITIES: tuple[Capability, ...] = (
    "lifecycle",
    "timeout",
    "renew_on_request",
    "exec",
    "files",
    "transfers",
    "tasks",
    "code",
    "code_languages",
    "idempotent_create",
    "metadata",
    "inspect",
    "limits_pids",
    "limits_disk",
    "egress",
    "listener",
    "diff",
    "logs",
    "prune",
)


class Host:
    """The machine, as far as the probe looks at it."""

    def platform(self) -> str:
        """`sys.platform`."""
        return sys.platform

    def machine(self) -> str:
        """Processor, as uname tells it."""
        return os.uname().machine

    def kernel(self) -> str:
        """Kernel release."""
        return os.uname().release

    def is_root(self) -> bool:
        """Whether we run as the host's root."""
        return hasattr(os, "geteuid") and os.geteuid() == 0

    def read(self, path: str) -> str | None:
        """A small file of /proc or /sys; None where it is not there."""
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                return file.read(4096).strip()
        except OSError:
            return None

    def python_readable(self) -> bool:
        """Whether others than its owner may read the Python that runs us."""
        prefix = os.path.realpath(sys.base_prefix)
        for path in (prefix, f"{prefix}/bin", os.path.realpath(sys.executable), os.path.dirname(os.__file__)):
            with suppress(FileNotFoundError):
                if os.stat(path).st_mode & 0o005 != 0o005 and os.path.isdir(path):
                    return False
        return True


def check_platform(host: Host) -> None:
    """Refuse what can be known without trying.

    Raises:
        BackendUnavailable: with its cause.
    """
    for found in host_checks(host):
        if found.required and not found.ok and found.cause is not None:
            # The cause was written by `check`, from the closed set.
            raise BackendUnavailable(cause=cast("BackendCause", found.cause))


def host_checks(host: Host) -> list[ProbeCheck]:
    """Everything that shows without making a namespace. Stops at the first thing that rules the machine out."""
    if host.platform() != "linux":
        return [check("platform", "platform_unsupported", host.platform())]
    checks = [check("platform", None, "linux")]
    machine = host.machine()
    known = machine in seccomp.supported_machines()
    checks.append(check("architecture", None if known else "architecture_unsupported", machine))
    wanted = _ROOT_KERNEL if host.is_root() else _USER_KERNEL
    checks.append(check("kernel", None if _version(host.kernel()) >= wanted else "kernel_too_old", host.kernel()))
    checks.append(check("user_namespaces", _namespaces_cause(host)))
    has_filters = host.read("/proc/sys/kernel/seccomp/actions_avail") is not None
    checks.append(check("seccomp", None if has_filters else "seccomp_unavailable"))
    if host.is_root():
        checks.append(check("id_range", None if _has_ranges(host) else "id_range_unavailable"))
        # Its user is another id than ours: what only root may read, the sandbox's Python cannot.
        checks.append(check("python", None if host.python_readable() else "python_unreadable"))
    found = templates.find_template(templates.CODE_INTERPRETER)
    missing = () if found is None else found.missing
    libraries = ProbeCheck(
        id="code_interpreter_libraries",
        ok=not missing,
        required=False,
        fix="Install the extra: pip install 'cloche[code-interpreter]'." if missing else None,
        detail=f"missing: {', '.join(missing)}" if missing else None,
    )
    return [*checks, libraries]


def check(name: str, cause: BackendCause | None, detail: str | None = None) -> ProbeCheck:
    """One finding; `cause` None means that it works."""
    fix = None if cause is None else CAUSES[cause][1]
    return ProbeCheck(id=name, ok=cause is None, cause=cause, fix=fix, detail=detail)


def cause_in(error: BackendUnavailable) -> BackendCause:
    """The cause that a typed error carries."""
    # The error's own constructor takes nothing else.
    return cast("BackendCause", error.details["cause"])


def _has_ranges(host: Host) -> bool:
    """Whether the ids that sandboxes of root get exist here; root of a container's user namespace lacks them."""
    for line in (host.read("/proc/self/uid_map") or "0 0 4294967295").splitlines():
        first, _outside, count = (int(field) for field in line.split())
        if first <= IDS_OF_SANDBOXES[0] and first + count >= IDS_OF_SANDBOXES[1]:
            return True
    return False


def _version(release: str) -> tuple[int, int]:
    parts = release.split(".")
    digits = ["".join(character for character in part if character.isdigit()) for part in parts[:2]]
    return (int(digits[0] or 0), int(digits[1] or 0)) if len(digits) == 2 else (0, 0)


def _namespaces_cause(host: Host) -> BackendCause | None:
    """Why user namespaces cannot be had, as settings tell. What they do not tell shows when one is made."""
    if host.read(_DISABLING_SYSCTLS[0]) == "0":
        return "user_namespaces_disabled"
    if not host.is_root() and host.read(_DISABLING_SYSCTLS[1]) == "0":
        return "user_namespaces_disabled"
    return None


def _restricted(host: Host) -> bool:
    return not host.is_root() and host.read(_APPARMOR_SYSCTL) == "1"


_STEP_CAUSES: dict[str, BackendCause] = {
    "namespaces": "namespaces_blocked",
    "id_range": "id_range_unavailable",
    "mounts": "mounts_blocked",
    "tmpfs": "mounts_blocked",
    "bind": "mounts_blocked",
    "dev": "mounts_blocked",
    "pivot": "mounts_blocked",
    "lower": "mounts_blocked",
    "overlay": "overlay_unavailable",
    "proc": "proc_mount_blocked",
    "capabilities": "capabilities_undroppable",
    "no_new_privileges": "no_new_privileges_unavailable",
    "seccomp": "seccomp_unavailable",
    "nested_namespaces": "namespaces_blocked",
    "counts": "namespaces_blocked",
    "init": "zygote_failed",
    "egress": "egress_failed",
}
_NAMESPACE_STEPS = ("namespaces", "id_range")
_REFUSALS = (errno.EPERM, errno.EACCES)


def cause_of(host: Host, step: str, number: int) -> BackendCause:
    """The cause behind a refused step of building a sandbox."""
    if step in _NAMESPACE_STEPS and number in (errno.ENOSPC, errno.EUSERS):
        # The count of namespaces is limited, and 0 is a limit.
        return "user_namespaces_disabled"
    if step in _NAMESPACE_STEPS and _namespaces_cause(host) is not None:
        return "user_namespaces_disabled"
    if number in _REFUSALS and _restricted(host) and step in _STEP_CAUSES:
        # The security module lets the namespace be made and then refuses every right in it.
        return "user_namespaces_restricted"
    if step == "lower" and host.is_root() and number in (errno.EINVAL, errno.EPERM):
        return "idmapped_mounts_unavailable"
    if step in _STEP_CAUSES:
        return _STEP_CAUSES[step]
    return "state_directory_unusable" if number else "zygote_failed"


def report(provider: str, checks: list[ProbeCheck], hierarchy: Hierarchy | None, *, host_root: bool) -> ProbeReport:
    """The report over `checks`: usable where every required one is fine."""
    usable = all(found.ok for found in checks if found.required)
    memory = hierarchy is not None and hierarchy.holds("memory")
    cpu = hierarchy is not None and hierarchy.holds("cpu")
    limits = [
        LimitInfo(resource="pids", enforced=usable, enforced_by="RLIMIT_NPROC" if usable else None),
        LimitInfo(resource="disk", enforced=usable, enforced_by="tmpfs size" if usable else None),
        LimitInfo(resource="memory", enforced=usable and memory, enforced_by="memory cgroup" if memory else None),
        LimitInfo(resource="cpu", enforced=usable and cpu, enforced_by="cpu cgroup" if cpu else None),
        LimitInfo(resource="process_memory", enforced=usable, enforced_by="RLIMIT_DATA" if usable else None),
        LimitInfo(resource="inodes", enforced=usable, enforced_by="tmpfs nr_inodes" if usable else None),
        LimitInfo(resource="open_files", enforced=usable, enforced_by="RLIMIT_NOFILE" if usable else None),
    ]
    capabilities: list[Capability] = [*_CAPABILITIES] if usable else []
    if usable and host_root:
        capabilities.append("users_root")
    if usable and memory:
        capabilities.append("limits_memory")
    if usable and cpu:
        capabilities.append("limits_cpu")
    return ProbeReport(provider=provider, usable=usable, checks=checks, capabilities=capabilities, limits=limits)
