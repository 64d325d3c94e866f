"""Init: pid 1 of a sandbox. It builds the root, confines itself once, and everything that it starts inherits that.

The order of the steps is the security design; read `enter` and `confine` top to bottom.
"""

import errno
import os
import select
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

from cloche_local import mounts, users
from cloche_local import syscalls as sys_
from cloche_local.setup import step
from cloche_local.spec import OWN_PROCESSES, Limits, Protections, Shape

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_HOST_NAME = "sandbox"
_CORE_BYTES = 0
# PROC_USER_INIT_INO of the kernel: the same number on every machine.
_HOST_USER_NAMESPACE = 0xEFFFFFFD
_QUEUE_BYTES = 819200
_LOCKED_BYTES = 8 << 20
# Added to the badness that the kernel computes from a process's share of memory, of 1000.
_KILLED_FIRST = 500
# Counted for the user of the host, too: half of what he has stays his.
_COUNTS = ("max_inotify_instances", "max_inotify_watches")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What init has open while it sets up. Only `link` survives."""

    link: socket.socket
    gate: socket.socket
    keeper_pidfd: int
    userns_fd: int = -1
    range_base: int = 0


def prepare(fds: Descriptors, on: Protections) -> None:
    """Do what needs nobody's word.

    Raises:
        SetupFailed: step `mounts`.
    """
    close_all_but([fds.link.fileno(), fds.gate.fileno(), fds.keeper_pidfd, fds.userns_fd], on)
    # Modes of what is made here are meant as written; the keeper's mask is for its state.
    os.umask(0)
    step("mounts", mounts.make_private)


def enter(shape: Shape, staging_folder: str, fds: Descriptors, filter_program: bytes) -> int:
    """Become the confined pid 1 of a sandbox. Returns inside the sandbox.

    Returns:
        A descriptor of the template below the sandbox's changes, for the keeper alone: close it once it is sent.

    Raises:
        SetupFailed: a step was refused; nothing of the sandbox may run.
    """
    on = shape.protections
    host_root = fds.userns_fd >= 0
    staging = mounts.Staging(
        staging_folder,
        shape.limits.disk_mb if on.disk_limit else None,
        host_root=host_root,
        range_base=fds.range_base,
        userns_fd=fds.userns_fd,
    )
    root = mounts.build_root(shape.root, staging, on)
    mounts.mount_proc(root, own=on.pid_namespace, sealed=on.sealed_proc)
    lower_fd = os.open(f"{staging_folder}/lower", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    # Held open over the next step, which makes the folder read-only; the file in it is our namespace's own.
    user_settings = os.open(f"{root}/proc/sys/user", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if on.sealed_proc:
        step("proc", mounts.seal_proc_sys, root)
    if on.root_switch:
        mounts.switch_root(root)
    socket.sethostname(_HOST_NAME)
    _raise_loopback()
    if host_root and on.user_namespace:
        # Last of the namespaces: what sandbox root may do, it may do over this one only, so never unmount.
        step("id_range", users.enter_range, fds.userns_fd, users.USER_ID)
    if on.nested_namespaces_refused and (on.user_namespace or not host_root):
        step("nested_namespaces", _refuse_nested, user_settings)
    if on.kernel_counts_bounded and (on.user_namespace or not host_root):
        step("counts", _bound_counts, user_settings)
    os.close(user_settings)
    confine(shape.limits, on, filter_program, keep=0, keeper_pidfd=fds.keeper_pidfd)
    return lower_fd


def confine(limits: Limits, on: Protections, filter_program: bytes, *, keep: int, keeper_pidfd: int) -> None:
    """Give up every right that user code must not have. Same for init and for the spawner of sandbox root."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
    os.umask(0o022)
    _set_rlimits(limits, on)
    if on.killed_first:
        _be_killed_first()
    if on.drop_capabilities:
        step("capabilities", users.limit_capabilities, keep)
    if on.no_new_privileges:
        # Set-id programs gain nothing; also what lets an ordinary process install a filter.
        step("no_new_privileges", sys_.prctl, sys_.PR_SET_NO_NEW_PRIVS, 1)
    if on.seccomp:
        step("seccomp", sys_.set_seccomp, filter_program)
    # Commands have our uid: without this they could read our memory and trace us.
    sys_.prctl(sys_.PR_SET_DUMPABLE, 0 if on.non_dumpable else 1)
    if on.parent_death_signal:
        # After every change of ids, which clears it.
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before the line above; then no signal ever comes.
    if select.select([keeper_pidfd], [], [], 0)[0]:
        os._exit(1)
    os.close(keeper_pidfd)


def _set_rlimits(limits: Limits, on: Protections) -> None:
    """Resource limits of every process inside, soft and hard alike: rights to raise them are given up next."""
    import resource

    values = [(resource.RLIMIT_CORE, _CORE_BYTES), (resource.RLIMIT_MEMLOCK, _LOCKED_BYTES)]
    # Message queues take kernel memory that no mount counts.
    values.append((resource.RLIMIT_MSGQUEUE, _QUEUE_BYTES))
    # A user of the host may be allowed what takes the processor from everybody else.
    values += [(resource.RLIMIT_RTPRIO, 0), (resource.RLIMIT_NICE, 0)]
    if on.open_files_limit:
        values.append((resource.RLIMIT_NOFILE, limits.open_files))
    if on.process_memory_limit and limits.process_mb is not None:
        values.append((resource.RLIMIT_DATA, limits.process_mb << 20))
    if on.process_limit:
        # Set inside our user namespace: the kernel counts per id and namespace, so this sandbox's processes only.
        values.append((resource.RLIMIT_NPROC, limits.pids + OWN_PROCESSES))
    for kind, value in values:
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def _be_killed_first() -> None:
    """Be what the kernel kills when the host is out of memory, before anything of the host. Inherited."""
    # The file belongs to the host's root as long as others may not read our memory. Those who could are refused by
    # the capabilities that we still have.
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)
    with suppress(OSError):
        badness = min(_read_number("/proc/self/oom_score_adj") + _KILLED_FIRST, 1000)
        _write(os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC), badness)


def _bound_counts(user_settings: int) -> None:
    """Objects of the kernel that are counted per user, and whose limit an ordinary user's sandbox shares with him."""
    for name in _COUNTS:
        with suppress(FileNotFoundError):
            half = _read_number(f"/proc/sys/fs/inotify/{name.replace('_inotify', '_user')}") // 2
            _write(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=user_settings), half)


def _read_number(path: str) -> int:
    # By bytes: a text file would load its encoding, and nothing is loaded here.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(fd, 32))
    finally:
        os.close(fd)


def _write(fd: int, number: int) -> None:
    try:
        os.write(fd, b"%d" % number)
    finally:
        os.close(fd)


def _refuse_nested(user_settings: int) -> None:
    """No user namespace below ours: whoever makes one has every capability in it, whatever the filter says."""
    if os.stat("/proc/self/ns/user").st_ino == _HOST_USER_NAMESPACE:
        # The limit would be the host's own.
        raise PermissionError(errno.EPERM, "still in the host's user namespace")
    _write(os.open("max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC, dir_fd=user_settings), 0)


def _raise_loopback() -> None:
    """Bring 127.0.0.1 up, so that a server and its client inside can meet. There is no other interface."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def close_all_but(keep: list[int], on: Protections) -> None:
    """Close every descriptor but 0, 1, 2 and `keep`."""
    if not on.close_descriptors:
        return
    first = 3
    for fd in sorted(fd for fd in keep if fd >= 3):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, 0x7FFFFFFF)
