"""Attempts at the kernel itself: calls, namespaces, rights and limits that a sandbox must not have."""

from __future__ import annotations

from tests.packages.local.escape.attempts import HOST_ROOT_ONLY, RIGHTS, ROOT_RIGHTS, Attempt

KERNEL_ATTEMPTS = (
    Attempt(
        "mount-a-file-system",
        "verdict(libc.mount(b'x', b'/mnt', b'tmpfs', ctypes.c_ulong(0), None) == 0)",
        RIGHTS,
        ROOT_RIGHTS,
    ),
    Attempt(
        "unmount-what-hides-the-kernel-settings",
        "verdict(libc.umount2(b'/proc/sys', 2) == 0)",
        RIGHTS,
        ROOT_RIGHTS,
    ),
    Attempt(
        "make-a-nested-user-namespace",
        "verdict(libc.unshare(0x10000000) == 0)",
        ("nested_namespaces_refused", "seccomp"),
    ),
    Attempt(
        "enter-another-namespace",
        "verdict(libc.setns(os.open('/proc/self/ns/uts', os.O_RDONLY), 0x04000000) == 0)",
        RIGHTS,
        ROOT_RIGHTS,
    ),
    Attempt(
        "load-into-the-kernel-by-bpf",
        """
number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
make_array = (ctypes.c_uint32 * 32)(2, 4, 4, 1)
verdict(call(number, 0, ctypes.byref(make_array), 128)[0] >= 0)
""",
        # Distributions refuse it to ordinary users already; the filter is tested call by call.
        (),
        ROOT_RIGHTS,
    ),
    Attempt(
        "read-the-log-of-the-kernel",
        """
number = {"x86_64": 103, "aarch64": 116}[os.uname().machine]
verdict(call(number, 3, ctypes.create_string_buffer(4096), 4096)[0] >= 0)
""",
        # Distributions refuse it to ordinary users already; the filter is tested call by call.
        (),
        ROOT_RIGHTS,
    ),
    Attempt(
        "open-a-device-through-a-node-of-its-own",
        """
import stat
libc.mount(b"x", b"/mnt", b"tmpfs", ctypes.c_ulong(0), None)
try:
    os.mknod("/mnt/null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.close(os.open("/mnt/null", os.O_RDONLY))
    verdict(True)
except OSError:
    verdict(False)
""",
        # The kernel refuses device nodes to whoever is not root of the host, whatever we do.
        (),
        ROOT_RIGHTS,
    ),
    Attempt(
        "make-a-nested-user-namespace-by-clone",
        """
made = call(220 if ARM else 56, 0x10000000 | 17, None, None, None, None)[0]
if made == 0:
    os._exit(0)
verdict(made > 0)
""",
        ("nested_namespaces_refused", "seccomp"),
    ),
    Attempt(
        "make-a-nested-user-namespace-by-clone3",
        """
arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
made = call(435, arguments, 88)[0]
if made == 0:
    os._exit(0)
verdict(made > 0)
""",
        ("nested_namespaces_refused", "seccomp"),
    ),
    Attempt(
        "make-calls-of-the-x32-convention",
        """
result, number = call(0x40000000 + 39)
verdict(result > 0, absent=ARM or number == errno.ENOSYS)
""",
        ("seccomp",),
    ),
    Attempt(
        "make-calls-of-the-32-bit-convention",
        """
import mmap
if ARM:
    verdict(False, absent=True)
else:
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    signal.signal(signal.SIGSEGV, lambda *_: None)
    inner = os.fork()
    if inner == 0:
        os._exit(0 if run() > 0 else 1)
    ended = os.waitpid(inner, 0)[1]
    verdict(ended == 0, absent=os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGSEGV)
""",
        ("seccomp",),
    ),
    Attempt(
        "add-a-key-to-a-keyring",
        "verdict(call(217 if ARM else 248, b'user', b'cloche-planted', b'x', ctypes.c_size_t(1), -1)[0] > 0)",
        ("seccomp",),
    ),
    Attempt(
        "measure-by-perf-events",
        """
attributes = ctypes.create_string_buffer(64)
ctypes.memmove(attributes, (ctypes.c_uint32 * 2)(1, 64), 8)
attributes[8], attributes[40] = b"\\x01", b"\\x60"  # task clock; kernel and hypervisor excluded
result, number = call(241 if ARM else 298, attributes, 0, -1, -1, ctypes.c_ulong(0))
verdict(result >= 0, absent=number in (errno.ENOSYS, errno.EACCES))
""",
        ("seccomp",),
    ),
    Attempt(
        "set-up-an-io-uring",
        """
result, number = call(425, 4, ctypes.create_string_buffer(120))
settings = "/proc/sys/kernel/io_uring_disabled"
disabled = can_open(settings) and open(settings).read().strip() != "0"
verdict(result >= 0, absent=number == errno.ENOSYS or (result < 0 and disabled))
""",
        ("seccomp",),
    ),
    Attempt(
        "handle-page-faults-in-user-space",
        """
result, number = call(282 if ARM else 323, 1)
verdict(result >= 0, absent=number == errno.ENOSYS)
""",
        ("seccomp",),
    ),
    Attempt(
        "load-a-module-into-the-kernel",
        """
result, number = call(105 if ARM else 175, None, ctypes.c_ulong(0), b"")
verdict(number not in (errno.EPERM, errno.ENOSYS), absent=number == errno.ENOSYS)
""",
        HOST_ROOT_ONLY,
        ROOT_RIGHTS,
    ),
    Attempt(
        "open-a-file-of-the-host-by-its-inode",
        """
handle = (ctypes.c_uint32 * 34)(128)
mount = ctypes.c_int()
by_name, by_handle = (264, 265) if ARM else (303, 304)
named, number = call(by_name, -100, b"/usr", handle, ctypes.byref(mount), 0)
folder = os.open("/usr", os.O_RDONLY)
opened = call(by_handle, folder, handle, os.O_RDONLY)[0] if named == 0 else -1
verdict(opened >= 0, absent=number == errno.EOPNOTSUPP)
""",
        HOST_ROOT_ONLY,
        ROOT_RIGHTS,
    ),
    Attempt(
        "change-its-root-folder",
        "verdict(call(51 if ARM else 161, b'/tmp')[0] == 0)",
        RIGHTS,
    ),
    Attempt(
        "set-the-clock-of-the-host",
        "verdict(call(170 if ARM else 164, None, None)[0] == 0)",
        HOST_ROOT_ONLY,
        ROOT_RIGHTS,
    ),
    Attempt(
        "call-what-restarts-the-machine",
        """
# The magic numbers are wrong: whoever has the right is told so, and nothing happens.
verdict(call(142 if ARM else 169, 0, 0, 0, None)[1] == errno.EINVAL)
""",
        RIGHTS,
        ROOT_RIGHTS,
    ),
    Attempt(
        "raise-a-hard-limit",
        """
import resource
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
try:
    resource.setrlimit(resource.RLIMIT_CORE, (hard + 1, hard + 1))
    verdict(hard >= 0)
except (OSError, ValueError):
    verdict(False, absent="{may_raise_limits}" == "no")
""",
        HOST_ROOT_ONLY,
        ("drop_capabilities", "user_namespace"),
        facts=("may_raise_limits",),
    ),
    Attempt(
        "keep-the-processor-by-real-time-priority",
        """
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    verdict(True)
except PermissionError:
    verdict(False)
""",
        HOST_ROOT_ONLY,
        ("drop_capabilities", "user_namespace"),
    ),
    Attempt(
        "reach-the-hypervisor-by-a-socket",
        """
import socket
try:
    socket.socket(40, socket.SOCK_STREAM).close()
    verdict(True)
except OSError as error:
    verdict(False, absent=error.errno == errno.EAFNOSUPPORT)
""",
        ("seccomp",),
    ),
    Attempt(
        "use-the-cryptography-of-the-kernel",
        """
import socket
try:
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    verdict(True)
except OSError as error:
    verdict(False, absent=error.errno == errno.EAFNOSUPPORT)
""",
        ("seccomp",),
    ),
)
