"""The system call filter of a sandbox, built as classic BPF in plain Python.

An allowlist: what is not named is refused with EPERM, what the kernel of our table does not know with ENOSYS (so
that C libraries fall back). Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.
"""

import struct
from typing import NamedTuple

from cloche_local.seccomp_table import allowed_numbers

_LOAD, _JEQ, _JGE, _JSET, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x05
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_EPERM, _ENOSYS = 1, 38

# struct seccomp_data: nr at 0, arch at 4, args from 16 on (low half first on both machines).
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24

_X32_BIT = 0x40000000
_CLONE_NAMESPACES = 0x7E020000
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (name lookups use it). AF_VSOCK has no namespace: it would reach the
# hypervisor; AF_ALG and the rest are kernel code that nothing in a sandbox needs.
_SOCKET_FAMILIES = (1, 2, 10, 16)
# TIOCSTI types into the terminal of whoever shares it, TIOCLINUX does the same on a console.
_REFUSED_IOCTLS = (0x5412, 0x541C)
# Docker's list: Linux, 32 bit Linux, an old version number of it, both, and the query. Randomisation stays on.
_PERSONALITIES = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)


class _Machine(NamedTuple):
    audit_arch: int
    clone: int
    socket: int
    ioctl: int
    personality: int
    x32: bool


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 56, 41, 16, 135, True),
    "aarch64": _Machine(0xC00000B7, 220, 198, 29, 92, False),
}
_CLONE3 = 435
# The newest number in the table of Linux 6.13; later calls answer ENOSYS.
_LAST_KNOWN = 466


def supported_machines() -> tuple[str, ...]:
    """Machines that a filter exists for."""
    return tuple(_MACHINES)


def build_filter(machine: str, without: frozenset[str] = frozenset()) -> bytes:
    """The filter program for `machine` as `struct sock_filter[]`, less the calls named in `without`."""
    facts = _MACHINES[machine]
    code = _Code()
    code.add(_LOAD, _ARCH)
    # Another calling convention (i386 on x86_64) has other numbers: the list would not fit.
    code.add(_JEQ, facts.audit_arch, 1, 0)
    code.add(_RETURN, _KILL_PROCESS)
    code.add(_LOAD, _NR)
    if facts.x32:
        code.refuse_from(_X32_BIT, _EPERM)
    # glibc falls back to clone, whose flags can be read here; those of clone3 are behind a pointer.
    code.add(_JEQ, _CLONE3, 0, 1)
    code.add(_RETURN, _ERRNO | _ENOSYS)
    code.refuse_from(_LAST_KNOWN + 1, _ENOSYS)
    code.argument_rule(facts.clone, [(_LOAD, _ARG0, 0, 0), (_JSET, _CLONE_NAMESPACES, 0, 1)])
    code.one_of(facts.socket, _ARG0, _SOCKET_FAMILIES)
    code.none_of(facts.ioctl, _ARG1, _REFUSED_IOCTLS)
    code.one_of(facts.personality, _ARG0, _PERSONALITIES)
    code.search(_ranges(allowed_numbers(machine, without)))
    return code.assemble()


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """Inclusive runs of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


class _Code:
    """An append-only BPF program."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        if not (0 <= if_true < 256 and 0 <= if_false < 256):
            raise ValueError("a conditional jump reaches 255 instructions at most")
        self._instructions.append((code, if_true, if_false, value))

    def refuse_from(self, first: int, errno: int) -> None:
        """Refuse every number from `first` on."""
        self.add(_JGE, first, 0, 1)
        self.add(_RETURN, _ERRNO | errno)

    def argument_rule(self, number: int, test: list[tuple[int, int, int, int]]) -> None:
        """For call `number`: run `test`, refuse where it falls through, allow where it skips one."""
        self.add(_JEQ, number, 0, len(test) + 2)
        for code, value, if_true, if_false in test:
            self.add(code, value, if_true, if_false)
        self.add(_RETURN, _ERRNO | _EPERM)
        self.add(_RETURN, _ALLOW)

    def one_of(self, number: int, argument: int, values: tuple[int, ...]) -> None:
        """Allow call `number` only where `argument` is one of `values`."""
        count = len(values)
        test = [(_LOAD, argument, 0, 0)]
        test += [(_JEQ, value, count - place, 0) for place, value in enumerate(values)]
        self.argument_rule(number, test)

    def none_of(self, number: int, argument: int, values: tuple[int, ...]) -> None:
        """Refuse call `number` where `argument` is one of `values`."""
        count = len(values)
        test = [(_LOAD, argument, 0, 0)]
        # A match jumps to the refusal behind the list; the last miss steps over it.
        test += [(_JEQ, value, count - 1 - place, int(place == count - 1)) for place, value in enumerate(values)]
        self.argument_rule(number, test)

    def search(self, ranges: list[tuple[int, int]]) -> None:
        """Allow numbers inside `ranges`, refuse the rest: a binary search, as every call pays for it."""
        if not ranges:
            self.add(_RETURN, _ERRNO | _EPERM)
            return
        if len(ranges) == 1:
            first, last = ranges[0]
            self.add(_JGE, first, 0, 2)
            self.add(_JGE, last + 1, 1, 0)
            self.add(_RETURN, _ALLOW)
            self.add(_RETURN, _ERRNO | _EPERM)
            return
        middle = len(ranges) // 2
        lower = _Code()
        lower.search(ranges[:middle])
        # Below the middle: fall through to the lower half; else an unconditional (32 bit) jump over it.
        self.add(_JGE, ranges[middle][0], 0, 1)
        self.add(_JUMP, len(lower._instructions))
        self._instructions += lower._instructions
        self.search(ranges[middle:])

    def assemble(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *entry) for entry in self._instructions)
