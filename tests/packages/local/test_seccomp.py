"""The system call filter: as a program that a small interpreter runs, and in a real sandbox."""

from __future__ import annotations

import os
import struct
from collections.abc import AsyncGenerator
from functools import cache
from pathlib import Path

import pytest

from cloche_local import seccomp, seccomp_table
from cloche_local.spec import Protections
from tests.packages.local.sandboxes import Sandbox, made, make_provider, opened

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_EPERM = 0x00050001
_ENOSYS = 0x00050026
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_IOCTL = {"x86_64": 16, "aarch64": 29}


def _judge(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Run the filter on one call, as the kernel would."""
    program = _program(machine)
    data = struct.pack("=IIQ", number, _ARCH[machine] if arch is None else arch, 0)
    data += struct.pack("=6Q", *(arguments + (0,) * 6)[:6])
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x05:
                at += value
            case 0x06:
                return value
            case _:
                raise AssertionError(code)


@cache
def _program(machine: str) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("=HBBI", seccomp.build_filter(machine)))


@pytest.mark.parametrize("machine", seccomp.supported_machines())
def test_exactly_the_table_is_allowed(machine: str) -> None:
    """Every number from 0 to 600: allowed if it is in the table, refused otherwise, with no hole in the search."""
    allowed = set(seccomp_table.allowed_numbers(machine))
    special = {_CLONE[machine], _SOCKET[machine], _IOCTL[machine], 435, 135 if machine == "x86_64" else 92}
    for number in range(600):
        if number in special:
            continue
        expected = _ALLOW if number in allowed else _ENOSYS if number > 466 else _EPERM
        assert _judge(machine, number) == expected, number


@pytest.mark.parametrize("machine", seccomp.supported_machines())
def test_arguments_decide_where_the_number_is_not_enough(machine: str) -> None:
    """Seccomp in local-runtime: clone without namespaces, known socket families, no typing into terminals."""
    assert _judge(machine, _CLONE[machine], 0x11) == _ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert _judge(machine, _CLONE[machine], flag | 0x11) == _EPERM
    assert [_judge(machine, _SOCKET[machine], family) for family in (1, 2, 10, 16)] == [_ALLOW] * 4
    # AF_PACKET, AF_ALG, AF_VSOCK.
    assert [_judge(machine, _SOCKET[machine], family) for family in (0, 17, 38, 40)] == [_EPERM] * 4
    assert _judge(machine, _IOCTL[machine], 0, 0x5401) == _ALLOW
    assert [_judge(machine, _IOCTL[machine], 0, request) for request in (0x5412, 0x541C)] == [_EPERM] * 2
    # glibc falls back from clone3, whose flags are behind a pointer, to clone.
    assert _judge(machine, 435) == _ENOSYS


def test_other_calling_conventions_do_not_pass() -> None:
    """x32 refused; i386 ends the process: its numbers mean other calls."""
    assert _judge("x86_64", 0x40000000 | 1) == _EPERM
    assert _judge("x86_64", 1, arch=0x40000003) == _KILL


def test_dangerous_calls_are_not_in_the_table() -> None:
    """A hand-made deny list forgot unshare [ran]: here a name has to be added to be allowed, and these never are."""
    never = """mount umount2 pivot_root unshare setns bpf io_uring_setup io_uring_enter keyctl add_key request_key
        perf_event_open userfaultfd open_by_handle_at name_to_handle_at init_module finit_module delete_module
        kexec_load kexec_file_load reboot swapon swapoff acct quotactl syslog settimeofday clock_settime iopl ioperm
        fsopen fsmount move_mount open_tree mount_setattr chroot vhangup uselib ustat sysfs nfsservctl lookup_dcookie
        move_pages mbind set_mempolicy get_mempolicy migrate_pages fanotify_init pidfd_spawn"""
    assert seccomp_table.allowed_names().isdisjoint(never.split())


# Numbers for x86_64 and aarch64, and arguments that the kernel refuses by another error than EPERM.
_REFUSED = {
    "unshare": (272, 97, "0"),
    "setns": (308, 268, "-1, 0"),
    "bpf": (321, 280, "99, None, 0"),
    "io_uring_setup": (425, 425, "0, None"),
    "keyctl": (250, 219, "99"),
    "add_key": (248, 217, "None, None, None, 0, 0"),
    "request_key": (249, 218, "None, None, None, 0"),
    "userfaultfd": (323, 282, "0xffff"),
    "perf_event_open": (298, 241, "None, 0, -1, -1, 0"),
    "name_to_handle_at": (303, 264, "-1, None, None, None, 0xffff"),
    "fsopen": (430, 430, "None, 0xffff"),
    "open_tree": (428, 428, "-100, None, 0xffffff"),
    "move_mount": (429, 429, "-1, None, -1, None, 0xffff"),
    "mount_setattr": (442, 442, "-1, None, 0xfffff, None, 0"),
    "syslog": (103, 116, "99, None, -1"),
    "pivot_root": (155, 41, "None, None"),
    "chroot": (161, 51, "None"),
    "get_mempolicy": (239, 236, "None, None, 0, 0, 99"),
}
_CALL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
result = libc.syscall(ctypes.c_long({number}), {arguments})
print("ok" if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""
_MACHINE = os.uname().machine if hasattr(os, "uname") else ""
# Refused by the kernel itself to whoever has no capability: the filter makes no difference that an errno shows.
_ALSO_BY_CAPABILITY = {
    "setns",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "pivot_root",
    "chroot",
    "syslog",
    "fsopen",
    "move_mount",
}


def _code(name: str) -> str:
    x86, arm, arguments = _REFUSED[name]
    return _CALL.format(number=x86 if _MACHINE == "x86_64" else arm, arguments=arguments)


@pytest.fixture(scope="module")
async def unfiltered(usable: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sandbox]:
    """A sandbox without the filter."""
    folder = tmp_path_factory.mktemp("s")
    provider = make_provider(Path(folder), protections=Protections(seccomp=False))
    async with opened(provider), made(provider, timeout=600) as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", _REFUSED)
async def test_a_refused_call_is_refused_by_the_filter(name: str, shared_sandbox: Sandbox, unfiltered: Sandbox) -> None:
    """One test per refused call: EPERM with the filter, and another answer of the kernel without it."""
    assert (await shared_sandbox.python(_code(name))).stdout.strip() == "EPERM"
    without = (await unfiltered.python(_code(name))).stdout.strip()
    if name not in _ALSO_BY_CAPABILITY:
        assert without not in ("", "EPERM")


async def test_programs_that_need_many_calls_still_work(shared_sandbox: Sandbox) -> None:
    """The list is Docker's in reach: threads, pipes, timers, sockets, async I/O."""
    code = """
import asyncio, concurrent.futures, multiprocessing, os, sqlite3, subprocess
async def serve():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.read()
    writer.close()
asyncio.run(serve())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(10))) == 45
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
assert subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3
with sqlite3.connect(":memory:") as db:
    assert db.execute("select 1").fetchone() == (1,)
os.memfd_create("x")
os.posix_fallocate(os.open("/tmp/f", os.O_CREAT | os.O_RDWR), 0, 4096)
print("fine")
"""
    ran = await shared_sandbox.python(code, timeout_s=60)
    assert ran.stdout == "fine\n", ran.stderr
