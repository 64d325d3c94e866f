"""Attacks on a sandbox, as code that runs inside it.

Each prints OPEN where it works and HELD where it does not. `layers` are the protections that stop it: with any one
of them in place it is held, with all of them out it works. A layer that stops nothing would show here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Both kinds of sandbox code: the forked interpreter keeps the rights of init, a program gets those of an exec.
_PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return result, ctypes.get_errno() if result < 0 else 0
def verdict(worked):
    print("OPEN" if worked else "HELD", flush=True)
"""


@dataclass(frozen=True)
class Attempt:
    """One attack."""

    name: str
    code: str
    layers: tuple[str, ...]
    """Protections that stop it when the host's user is an ordinary one."""
    root_layers: tuple[str, ...] | None = None
    """The same for a root host; None where they are equal."""
    facts: tuple[str, ...] = field(default=())
    """What the test must prepare on the host; `{name}` in the code is replaced."""

    def program(self, facts: dict[str, str]) -> str:
        """The code with its facts filled in."""
        code = self.code
        for name, value in facts.items():
            code = code.replace("{" + name + "}", value)
        return _PRELUDE + code

    def layers_for(self, *, host_root: bool) -> tuple[str, ...]:
        """The protections that stop it on this host."""
        return self.layers if self.root_layers is None or not host_root else self.root_layers


_RIGHTS = ("drop_capabilities", "seccomp")
# A root host enters the user namespace last, so that even full capabilities in it reach no mount and no host name.
_ROOT_RIGHTS = ("drop_capabilities", "seccomp", "user_namespace")

ATTEMPTS = (
    Attempt(
        "read-a-file-of-the-host",
        "verdict(os.path.exists('{marker_file}') and 'marker' in open('{marker_file}').read())",
        ("root_switch",),
        facts=("marker_file",),
    ),
    Attempt(
        "see-a-process-of-the-host",
        """
def arguments(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read()
    except OSError:
        return ""
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
verdict(any("{host_process}" in arguments(pid) for pid in others))
""",
        ("pid_namespace",),
        facts=("host_process",),
    ),
    Attempt(
        "read-the-environment-that-the-server-had",
        """
import re
def found(path):
    try:
        return b"marker-" + b"environment" in open(path, "rb").read()
    except OSError:
        return False
def in_memory():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            if "[stack]" in line:
                first, last = (int(part, 16) for part in line.split()[0].split("-"))
                memory.seek(first)
                return b"marker-" + b"environment" in memory.read(last - first)
    return False
verdict(found("/proc/self/environ") or found("/proc/1/environ") or in_memory())
""",
        ("empty_environment",),
        facts=("server_environment",),
    ),
    Attempt(
        "mount-a-file-system",
        "verdict(libc.mount(b'x', b'/mnt', b'tmpfs', ctypes.c_ulong(0), None) == 0)",
        _RIGHTS,
        _ROOT_RIGHTS,
    ),
    Attempt(
        "unmount-what-hides-the-kernel-settings",
        "verdict(libc.umount2(b'/proc/sys', 2) == 0)",
        _RIGHTS,
        _ROOT_RIGHTS,
    ),
    Attempt(
        "make-a-nested-user-namespace",
        "verdict(libc.unshare(0x10000000) == 0)",
        ("nested_namespaces_refused", "seccomp"),
    ),
    Attempt(
        "trace-init",
        """
libc.ptrace.argtypes = [ctypes.c_long] * 4
worked = libc.ptrace(16, os.getppid(), 0, 0) == 0
if worked:
    os.waitpid(os.getppid(), 0x40000000)
    libc.ptrace(17, os.getppid(), 0, 0)
verdict(worked)
""",
        ("non_dumpable",),
    ),
    Attempt(
        "read-the-memory-of-init",
        """
def readable(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
        return True
    except OSError:
        return False
verdict(any(readable(f"/proc/{os.getppid()}/{name}") for name in ("mem", "environ", "maps", "fd")))
""",
        ("non_dumpable",),
    ),
    Attempt(
        "enter-another-namespace",
        "verdict(libc.setns(os.open('/proc/self/ns/uts', os.O_RDONLY), 0x04000000) == 0)",
        _RIGHTS,
        _ROOT_RIGHTS,
    ),
    Attempt(
        "see-a-disk-of-the-host",
        """
import stat
names = [name for name in os.listdir("/dev") if name not in ("pts", "shm", "fd")]
kinds = [os.stat("/dev/" + name).st_mode for name in names if os.path.exists("/dev/" + name)]
known = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr"}
verdict(any(stat.S_ISBLK(kind) for kind in kinds) or bool(set(names) - known))
""",
        ("minimal_devices",),
    ),
    Attempt(
        "reach-a-server-on-the-host",
        """
import socket
def reached(family, address):
    with socket.socket(family) as client:
        client.settimeout(3)
        try:
            client.connect(address)
            return True
        except OSError:
            return False
verdict(reached(socket.AF_INET, ("127.0.0.1", {tcp_port})) or reached(socket.AF_UNIX, "\\0{abstract_name}"))
""",
        ("net_namespace",),
        facts=("tcp_port", "abstract_name"),
    ),
    Attempt(
        "attach-shared-memory-of-the-host",
        "verdict(libc.shmget({shm_key}, 4096, 0o666) >= 0)",
        ("ipc_namespace",),
        facts=("shm_key",),
    ),
    Attempt(
        "read-a-key-of-the-login-session",
        """
number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
verdict(call(number, 10, ctypes.c_long(-3), b"user", b"{key_name}", 0)[0] > 0)
""",
        ("own_keyring", "seccomp"),
        facts=("key_name",),
    ),
    Attempt(
        "write-into-a-library-folder-of-the-host",
        """
try:
    open("{library_folder}/planted.py", "w").close()
    verdict(True)
except OSError:
    verdict(False)
""",
        ("read_only_system",),
        # A root host's files belong to an id that the sandbox does not have: no layer of ours is needed.
        (),
        facts=("library_folder",),
    ),
    Attempt(
        "signal-a-process-of-the-host",
        """
try:
    os.kill({host_pid}, 0)
    verdict(True)
except OSError:
    verdict(False)
""",
        ("pid_namespace",),
        # Ids alone stop it too, where the sandbox has ids that nobody else has.
        ("pid_namespace", "user_namespace"),
        facts=("host_pid",),
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
        _ROOT_RIGHTS,
    ),
    Attempt(
        "read-the-log-of-the-kernel",
        """
number = {"x86_64": 103, "aarch64": 116}[os.uname().machine]
verdict(call(number, 3, ctypes.create_string_buffer(4096), 4096)[0] >= 0)
""",
        # Distributions refuse it to ordinary users already; the filter is tested call by call.
        (),
        _ROOT_RIGHTS,
    ),
    Attempt(
        "open-a-disk-of-the-host-through-a-node-of-its-own",
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
        _ROOT_RIGHTS,
    ),
)
