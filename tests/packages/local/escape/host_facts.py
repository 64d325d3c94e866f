"""What the host has that a sandbox must not reach: made by the test, found again by an attempt that works."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cloche_local import syscalls

_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_QUEUE = {"x86_64": (240, 241), "aarch64": (180, 181)}
_CAP_SYS_RESOURCE = 24
_SESSION_KEYRING = -3
_IPC_RMID = 0


@contextmanager
def host_facts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Everything that attempts name, by name."""
    with ExitStack() as stack:
        marker = folder / "marker"
        marker.write_text("marker of the host\n")
        marker.chmod(0o644)
        folder.chmod(0o755)
        libraries = folder / "libraries"
        libraries.mkdir()
        monkeypatch.setenv("CLOCHE_TEST_SECRET", "marker-environment")
        mark, pid = stack.enter_context(_process())
        port, name = stack.enter_context(_servers())
        yield {
            "marker_file": str(marker),
            "host_process": mark,
            "host_pid": str(pid),
            "server_environment": "",
            "tcp_port": str(port),
            "abstract_name": name,
            "shm_key": str(stack.enter_context(_shared_memory())),
            "key_name": _session_key(),
            "library_folder": str(libraries),
            "socket_file": stack.enter_context(_socket_file(folder)),
            "queue_name": stack.enter_context(_message_queue()),
            "may_raise_limits": "yes" if syscalls.permitted_capabilities() >> _CAP_SYS_RESOURCE & 1 else "no",
            "state_folder": str(folder / "sandboxes" / "state"),
        }


@contextmanager
def _process() -> Generator[tuple[str, int]]:
    mark = f"cloche-host-process-{os.getpid()}"
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", mark], stdin=subprocess.PIPE
    ) as process:
        yield mark, process.pid
        process.kill()


@contextmanager
def _servers() -> Generator[tuple[int, str]]:
    name = f"cloche-host-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        yield server.getsockname()[1], name


@contextmanager
def _socket_file(folder: Path) -> Generator[str]:
    path = str(folder / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        server.listen()
        yield path


@contextmanager
def _message_queue() -> Generator[str]:
    name = f"cloche-queue-{os.getpid()}"
    opening, removing = _QUEUE[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    mask = os.umask(0)
    fd = libc.syscall(ctypes.c_long(opening), name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
    os.umask(mask)
    assert fd >= 0
    try:
        yield name
    finally:
        os.close(fd)
        libc.syscall(ctypes.c_long(removing), name.encode())


@contextmanager
def _shared_memory() -> Generator[int]:
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x434C0000 + os.getpid() % 0xFFFF
    identifier = libc.shmget(key, 4096, 0o1666)
    assert identifier >= 0
    try:
        yield key
    finally:
        libc.shmctl(identifier, _IPC_RMID, None)


def _session_key() -> str:
    """A key in a session keyring of our own, which the zygote inherits as a login session's would be."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    machine = os.uname().machine
    libc.syscall(ctypes.c_long(_KEYCTL[machine]), 1, None)
    name = f"cloche-key-{os.getpid()}"
    added = libc.syscall(
        ctypes.c_long(_ADD_KEY[machine]), b"user", name.encode(), b"marker", ctypes.c_size_t(6), _SESSION_KEYRING
    )
    assert added > 0
    # Readable and searchable by possession alone: the possessor's bits.
    libc.syscall(ctypes.c_long(_KEYCTL[machine]), 5, ctypes.c_int(added), ctypes.c_uint(0x3F3F0000))
    return name
