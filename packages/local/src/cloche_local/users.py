"""Who runs inside: ids, maps and capabilities. Source: user_namespaces(7), capabilities(7).

A root host gives each sandbox its own range of 65,536 ids: processes are counted per id, and two sandboxes share
none. An ordinary user has one id, shown as 1000 inside.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from cloche_local import syscalls as sys_

USER_ID = 1000
RANGE_SIZE = 65536
# Below the range that systemd documents as unusable (2^31) and above what it and /etc/subuid hand out by default.
FIRST_RANGE = 0x60000000
_RANGE_COUNT = 4096

# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID: what package managers and `su` need, over mapped ids only.
ROOT_CAPABILITIES = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7))
_LAST_CAPABILITY = 40


@dataclass(frozen=True, slots=True)
class IdRange:
    """A user namespace over a range of its own, and the lock that keeps the range ours while it is open."""

    base: int
    lock_fd: int
    userns_fd: int

    def close(self) -> None:
        """Let go of both descriptors in this process."""
        os.close(self.lock_fd)
        os.close(self.userns_fd)


def lease_range(slots: str) -> tuple[int, int]:
    """Take a free range: `(base, lock descriptor)`. The lock lives as long as a copy of the descriptor is open.

    Raises:
        OSError: EAGAIN where every range is taken.
    """
    import fcntl

    os.makedirs(slots, 0o700, exist_ok=True)
    for slot in range(_RANGE_COUNT):
        fd = os.open(f"{slots}/{slot}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        return FIRST_RANGE + slot * RANGE_SIZE, fd
    raise BlockingIOError(11, "every id range is in use")


def open_range(slots: str, process_limit: int) -> IdRange:
    """Lease a range and make a user namespace over it. Host root only; the caller is single-threaded.

    A process that runs nothing is made in the new namespace: the map of a range must be written from outside.

    Raises:
        OSError: every range is taken, or a step was refused.
    """
    # Nothing can be imported as an id that may not read the host's Python.
    sys_.load()
    base, lock_fd = lease_range(slots)
    try:
        with ExitStack() as ended:
            with _as_owner(base, process_limit):
                pid = ended.enter_context(sys_.paused_process(sys_.CLONE_NEWUSER))
            _write(f"/proc/{pid}/uid_map", f"0 {base} {RANGE_SIZE}")
            _write(f"/proc/{pid}/gid_map", f"0 {base} {RANGE_SIZE}")
            return IdRange(base, lock_fd, os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC))
    except BaseException:
        os.close(lock_fd)
        raise


@contextmanager
def _as_owner(base: int, process_limit: int) -> Generator[None]:
    """Be the range's root inside the block, with the sandbox's limit of processes.

    A namespace's processes are also counted for whoever made it, against the RLIMIT_NPROC that held then; made by an
    id that nobody else has, that bounds the sandbox as a whole, whatever ids its root takes.
    """
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NPROC)
    uid, gid = os.geteuid(), os.getegid()
    # A root without CAP_SYS_RESOURCE cannot go above.
    most = process_limit if limits[1] == resource.RLIM_INFINITY else min(process_limit, limits[1])
    resource.setrlimit(resource.RLIMIT_NPROC, (most, limits[1]))
    os.setresgid(base, base, gid)
    os.setresuid(base, base, uid)
    try:
        yield
    finally:
        # The saved ids are what allows it.
        os.setresuid(uid, uid, uid)
        os.setresgid(gid, gid, gid)
        resource.setrlimit(resource.RLIMIT_NPROC, limits)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def write_single_map(host_uid: int, host_gid: int, inside: tuple[int, int] = (USER_ID, USER_ID)) -> None:
    """Show our one id as 1000, or as `inside`. Both ids were read before `unshare`: after it they are nobody's."""
    # The kernel wants setgroups off before an unprivileged gid map.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{inside[0]} {host_uid} 1")
    _write("/proc/self/gid_map", f"{inside[1]} {host_gid} 1")


def enter_range(userns_fd: int, uid: int) -> None:
    """Enter a range's namespace and become `uid` in it, with no groups of the host left."""
    sys_.setns(userns_fd, sys_.CLONE_NEWUSER)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def limit_capabilities(keep: int) -> None:
    """Drop every capability outside `keep` from the bounding set and all others from the rest, for good."""
    for number in range(_LAST_CAPABILITY + 1):
        if not keep >> number & 1:
            with suppress(OSError):
                sys_.prctl(sys_.PR_CAPBSET_DROP, number)
    sys_.prctl(sys_.PR_CAP_AMBIENT, sys_.PR_CAP_AMBIENT_CLEAR_ALL)
    sys_.capset(keep)
