"""Attempts at what the host has: files, processes, sockets, shared memory, devices, settings."""

from __future__ import annotations

from tests.packages.local.escape.attempts import HOST_ROOT_ONLY, Attempt

HOST_ATTEMPTS = (
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
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (os.getpid(), os.getppid())]
verdict(any(arguments(pid).endswith("{host_process}\\0") for pid in others))
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
        "trace-init",
        """
libc.ptrace.argtypes = [ctypes.c_long] * 4
worked = libc.ptrace(16, PARENT, 0, 0) == 0
if worked:
    os.waitpid(PARENT, 0x40000000)
    libc.ptrace(17, PARENT, 0, 0)
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
verdict(any(readable(f"/proc/{PARENT}/{name}") for name in ("mem", "environ", "maps", "fd")))
""",
        ("non_dumpable",),
    ),
    Attempt(
        "see-a-disk-of-the-host",
        """
import stat
names = [name for name in os.listdir("/dev") if name not in ("pts", "shm", "fd")]
kinds = [os.stat("/dev/" + name).st_mode for name in names if os.path.exists("/dev/" + name)]
known = {"console", "core", "mqueue", "null", "zero", "full", "random", "urandom", "tty", "ptmx"}
known |= {"stdin", "stdout", "stderr"}
verdict(any(stat.S_ISBLK(kind) for kind in kinds) or bool(set(names) - known))
""",
        ("minimal_devices",),
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
        "reach-a-server-on-the-host",
        """
import socket
with socket.socket() as client:
    client.settimeout(3)
    verdict(client.connect_ex(("127.0.0.1", {tcp_port})) == 0)
""",
        ("net_namespace",),
        facts=("tcp_port",),
    ),
    Attempt(
        "reach-an-abstract-socket-of-the-host",
        """
import socket
with socket.socket(socket.AF_UNIX) as client:
    verdict(client.connect_ex("\\0{abstract_name}") == 0)
""",
        ("net_namespace",),
        facts=("abstract_name",),
    ),
    Attempt(
        "reach-a-socket-file-of-the-host",
        """
import socket
with socket.socket(socket.AF_UNIX) as client:
    verdict(client.connect_ex("{socket_file}") == 0)
""",
        ("root_switch",),
        facts=("socket_file",),
    ),
    Attempt(
        "open-a-message-queue-of-the-host",
        "verdict(call(180 if ARM else 240, b'{queue_name}', os.O_RDONLY, 0, None)[0] >= 0)",
        ("ipc_namespace",),
        facts=("queue_name",),
    ),
    Attempt(
        "take-a-handle-of-a-process-of-the-host",
        "verdict(call(434, {host_pid}, 0)[0] >= 0)",
        ("pid_namespace",),
        facts=("host_pid",),
    ),
    Attempt(
        "steal-a-descriptor-of-init",
        """
process = call(434, PARENT, 0)[0]
verdict(any(call(438, process, number, 0)[0] >= 0 for number in range(16)))
""",
        ("non_dumpable",),
    ),
    Attempt(
        "write-below-its-layer",
        """
worked = False
for name in entries("{state_folder}"):
    planted = f"{state_folder}/{name}/etc/planted"
    if name.startswith(".skeleton-") and can_open(planted, os.O_CREAT | os.O_WRONLY):
        os.unlink(planted)
        worked = True
verdict(worked)
""",
        ("root_switch",),
        ("root_switch", "user_namespace"),
        facts=("state_folder",),
    ),
    Attempt(
        "read-the-token-of-another-sandbox",
        """
verdict(any(can_open(f"{state_folder}/{name}/token") for name in entries("{state_folder}")))
""",
        ("root_switch",),
        ("root_switch", "user_namespace"),
        facts=("state_folder",),
    ),
    Attempt(
        "see-the-control-groups-of-the-host",
        "verdict(os.path.isdir('/sys/fs/cgroup'))",
        ("root_switch",),
    ),
    Attempt(
        "write-a-setting-of-the-kernel",
        "verdict(can_open('/proc/sys/kernel/core_pattern', os.O_WRONLY))",
        HOST_ROOT_ONLY,
        ("sealed_proc", "user_namespace"),
    ),
    Attempt(
        "press-the-system-request-key",
        """
key = "/proc/sysrq-trigger"
there = os.path.exists(key)
verdict(there and can_open(key, os.O_WRONLY) and os.stat(key).st_rdev == 0, absent=not there)
""",
        HOST_ROOT_ONLY,
        ("sealed_proc", "user_namespace"),
    ),
)
