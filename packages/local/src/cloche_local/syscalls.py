"""Typed Linux system calls that Python 3.11 lacks.

`ctypes` is imported at the first call, not with the module: the package must import on macOS and Windows. The
zygote makes the first call before any sandbox exists, so that nothing is loaded after the root is switched.
"""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL, Array, PyDLL, c_char

# clone(2), unshare(2), namespaces(7)
_CLONE_VM = 0x00000100
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# mount(2), umount2(2)
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

# mount_setattr(2)
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_IDMAP = 0x00100000

# open_tree(2), move_mount(2)
OPEN_TREE_CLONE = 0x1
OPEN_TREE_CLOEXEC = 0o2000000
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
AT_EMPTY_PATH = 0x1000
MOVE_MOUNT_F_EMPTY_PATH = 0x4

# prctl(2)
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

# openat2(2)
RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

CAP_DAC_READ_SEARCH = 1 << 2

# inotify(7)
_IN_MODIFY = 0x2
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000

_KEYCTL_JOIN_SESSION_KEYRING = 1
_MADV_COLLAPSE = 25
_CAP_VERSION_3 = 0x20080522
_STACK_BYTES = 16384

# Numbers differ per machine below 424 only; from there on every architecture shares one table.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPGET = {"x86_64": 125, "aarch64": 90}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_KEYCTL = {"x86_64": 250, "aarch64": 219}

_libc: "CDLL | None" = None
_held: "PyDLL | None" = None
_machine = ""


def load() -> "CDLL":
    """Load libc once. Called by the zygote before it forks."""
    global _libc, _held, _machine
    if _libc is None:
        import ctypes

        _libc = ctypes.CDLL(None, use_errno=True)
        _libc.syscall.restype = ctypes.c_long
        # Called with the interpreter's lock held.
        _held = ctypes.PyDLL(None, use_errno=True)
        _machine = os.uname().machine
    return _libc


def fork() -> int:
    """Fork a process with one thread, and call none of what modules have registered to be called after a fork.

    That renews locks which only another thread could hold, and random numbers, which neither keeper nor init uses; and
    each sandbox would pay for it, a hundred pages of memory each time.

    Raises:
        OSError: no process.
    """
    load()
    assert _held is not None
    return _check(_held.fork(), "fork")


def _check(result: int, name: str) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def _syscall(name: str, number: int, *arguments: object) -> int:
    return _check(load().syscall(_long(number), *arguments), name)


def _long(value: int) -> object:
    import ctypes

    return ctypes.c_long(value)


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _check(load().unshare(flags), "unshare")


@contextmanager
def paused_process(namespaces: int) -> Generator[int]:
    """A process in new namespaces that runs nothing, inside the block.

    It shares our memory, so that none is copied, and waits in pause(2) on a stack of its own until it is killed.
    """
    import ctypes

    libc = load()
    stack = ctypes.create_string_buffer(_STACK_BYTES)
    libc.clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    # Aligned as both architectures want it.
    top = ctypes.addressof(stack) + _STACK_BYTES & ~15
    flags = namespaces | _CLONE_VM | signal.SIGCHLD
    pid = _check(libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, flags, None), "clone")
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind `fd`."""
    _check(load().setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount; `kind` None for binds and remounts."""
    _check(
        load().mount(
            os.fsencode(source),
            os.fsencode(target),
            None if kind is None else kind.encode(),
            _unsigned_long(flags),
            None if data is None else os.fsencode(data),
        ),
        f"mount {target}",
    )


def _unsigned_long(value: int) -> object:
    import ctypes

    return ctypes.c_ulong(value)


def umount(target: str, flags: int = 0) -> None:
    """Unmount `target`."""
    _check(load().umount2(os.fsencode(target), flags), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    """Switch the root of this mount namespace."""
    load()
    _syscall("pivot_root", _PIVOT_ROOT[_machine], os.fsencode(new_root), os.fsencode(put_old))


def open_tree(path: str, flags: int = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) -> int:
    """Clone the mount at `path` as a detached tree; returns its descriptor."""
    return _syscall("open_tree", _OPEN_TREE, AT_FDCWD, os.fsencode(path), flags)


def move_mount(tree_fd: int, target: str) -> None:
    """Attach a detached tree at `target`."""
    _syscall("move_mount", _MOVE_MOUNT, tree_fd, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)


def mount_setattr(tree_fd: int, attributes: int, *, flags: int = AT_EMPTY_PATH, userns_fd: int = 0) -> None:
    """Set mount attributes (read-only, nosuid, idmap …) on a tree."""
    import struct

    packed = struct.pack("=QQQQ", attributes, 0, 0, userns_fd)
    _syscall("mount_setattr", _MOUNT_SETATTR, tree_fd, b"", flags, packed, _long(len(packed)))


def open_beneath(folder_fd: int, name: bytes, flags: int) -> int:
    """Open what is really at `name` below the folder: no link is followed, no mount is entered.

    Raises:
        OSError: EXDEV where something is mounted there, ELOOP where a link is in the way.
    """
    import struct

    resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    return _syscall("openat2", _OPENAT2, folder_fd, name, how, _long(len(how)))


def watch_writes(path: str) -> int:
    """A descriptor that becomes readable when the file is written.

    Raises:
        OSError: it is not there, or there are too many watches.
    """
    fd = _check(load().inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC), "inotify_init1")
    try:
        _check(load().inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY), "inotify_add_watch")
    except OSError:
        os.close(fd)
        raise
    return fd


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """Change an attribute of this process."""
    zero = _unsigned_long(0)
    return _check(load().prctl(option, _unsigned_long(value), _unsigned_long(third), zero, zero), f"prctl {option}")


def set_seccomp(program: bytes) -> None:
    """Install a classic BPF filter; `no_new_privs` must be set before."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    buffer: Array[c_char] = ctypes.create_string_buffer(program, len(program))
    value = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    address = _unsigned_long(ctypes.addressof(value))
    zero = _unsigned_long(0)
    mode = _unsigned_long(SECCOMP_MODE_FILTER)
    _check(load().prctl(PR_SET_SECCOMP, mode, address, zero, zero), "prctl seccomp")


def permitted_capabilities() -> int:
    """The capabilities that this process may make effective, as a bit set."""
    import ctypes
    import struct

    load()
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    _syscall("capget", _CAPGET[_machine], header, data)
    words = struct.unpack("=IIIIII", data.raw)
    return words[1] | words[4] << 32


def capset(capabilities: int, *, permitted: int | None = None) -> None:
    """Make `capabilities` (a bit set) the effective set, and the permitted one unless that is given."""
    import struct

    load()
    allowed = capabilities if permitted is None else permitted
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    low, high = (capabilities & 0xFFFFFFFF, allowed & 0xFFFFFFFF), (capabilities >> 32, allowed >> 32)
    data = struct.pack("=IIIIII", *low, 0, *high, 0)
    _syscall("capset", _CAPSET[_machine], header, data)


def set_fs_ids(uid: int, gid: int) -> None:
    """Use `uid` and `gid` for file access from now on. The kernel reports no error: the caller tests access."""
    libc = load()
    libc.setfsgid(gid)
    libc.setfsuid(uid)


def collapse_pages(address: int, length: int) -> None:
    """Put this range of our memory on huge pages, now (madvise(2), MADV_COLLAPSE)."""
    import ctypes

    _check(load().madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), _MADV_COLLAPSE), "madvise")


def join_session_keyring() -> None:
    """Start an empty session keyring, so that no key of the host's login session is possessed."""
    load()
    _syscall("keyctl", _KEYCTL[_machine], _KEYCTL_JOIN_SESSION_KEYRING, None)
