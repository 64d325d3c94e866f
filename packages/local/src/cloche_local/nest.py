"""Fresh namespaces with a confined init in them: what every sandbox starts from.

All of it depends on the sandbox's shape alone, so the zygote has one made while nobody waits.
"""

import asyncio
import errno
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, Protocol

from cloche_local import init, users
from cloche_local import syscalls as sys_
from cloche_local.limits import Group
from cloche_local.setup import SetupFailed, step
from cloche_local.spec import Shape

_MESSAGE_BYTES = 4096


class Spawner(Protocol):
    """The init half of the in-sandbox agent."""

    def run_init(self, link: socket.socket, shape: Shape) -> NoReturn:
        """Serve the keeper as a spawner."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What a nest is made with."""

    spawner: Spawner
    filter_program: bytes
    host_uid: int
    host_gid: int
    id_range: users.IdRange | None
    staging_folder: str
    runtime_folder: str


class Nest:
    """The namespaces of one sandbox, and the ends of two sockets to its init."""

    def __init__(self, ground: Ground, shape: Shape, group: Group | None = None) -> None:
        """Leave the host's session and namespaces, and fork init. The caller is single-threaded and a fresh fork.

        Args:
            group: what init goes into before it starts anything. We stay outside.

        Raises:
            SetupFailed: step `namespaces` or `cgroup`.
        """
        self._ground = ground
        self._shape = shape
        on = shape.protections
        # No terminal of the host: a process in its session could type into it.
        os.setsid()
        # Keys of the host's login session are reachable by possession, not by id: have none.
        if on.own_keyring:
            with suppress(OSError):
                sys_.join_session_keyring()
        self._unshare()
        self.keeper_pidfd = os.pidfd_open(os.getpid())
        self.link, link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._gate, gate = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.init_pid = sys_.fork()
        if self.init_pid == 0:
            self._be_init(link, gate)
        link.close()
        gate.close()
        if group is not None:
            step("cgroup", group.attach, self.init_pid)
        self._gate.send(b"go")

    def _unshare(self) -> None:
        """Enter the sandbox's namespaces, pid for our children."""
        on = self._shape.protections
        flags = sys_.CLONE_NEWNS | sys_.CLONE_NEWUTS | sys_.CLONE_NEWCGROUP
        flags |= sys_.CLONE_NEWPID if on.pid_namespace else 0
        flags |= sys_.CLONE_NEWNET if on.net_namespace else 0
        flags |= sys_.CLONE_NEWIPC if on.ipc_namespace else 0
        single = self._ground.id_range is None
        try:
            # An ordinary user owns namespaces through a user namespace only, made in the same call and first.
            sys_.unshare(flags | (sys_.CLONE_NEWUSER if single else 0))
            if single:
                users.write_single_map(self._ground.host_uid, self._ground.host_gid)
        except OSError as error:
            raise SetupFailed("namespaces", error.errno or 0) from error

    # -- init's side ------------------------------------------------------------------------------------------------

    def _be_init(self, link: socket.socket, gate: socket.socket) -> NoReturn:
        """Run as init; reports a refused step over the gate."""
        id_range = self._ground.id_range
        fds = init.Descriptors(
            link,
            gate,
            self.keeper_pidfd,
            -1 if id_range is None else id_range.userns_fd,
            0 if id_range is None else id_range.base,
        )
        try:
            init.prepare(fds, self._shape.protections)
            # Anything else: the keeper is gone, and nobody wants a sandbox.
            if gate.recv(_MESSAGE_BYTES) == b"go":
                lower_fd = init.enter(self._shape, self._ground.staging_folder, fds, self._ground.filter_program)
                socket.send_fds(gate, [b"ready"], [lower_fd])
                os.close(lower_fd)
                gate.close()
                self._ground.spawner.run_init(link, self._shape)
        except SetupFailed as failure:
            _refuse(gate, failure.step, failure.errno)
        except OSError as error:
            _refuse(gate, "confine", error.errno or 0)
        finally:
            # Never back into the keeper's code, whatever happened.
            os._exit(1)

    # -- the keeper's side ------------------------------------------------------------------------------------------

    async def arrived(self) -> int:
        """Wait until init is confined.

        Returns:
            A descriptor of the template that lies below what the sandbox changes.

        Raises:
            SetupFailed: the step that was refused.
        """
        try:
            answer, fds = await _receive(self._gate)
        except OSError as error:
            raise SetupFailed("init", error.errno or errno.EPIPE) from error
        finally:
            self._gate.close()
        if answer == b"ready" and fds:
            return fds[0]
        if not answer:
            raise SetupFailed("init", errno.EPIPE)
        step, number = json.loads(answer)
        raise SetupFailed(str(step), int(number))


async def _receive(gate: socket.socket) -> tuple[bytes, list[int]]:
    """One message and the descriptor that came with it."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(gate.fileno(), arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(gate.fileno())
    raw, fds, _flags, _address = socket.recv_fds(gate, _MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    return raw, fds


def _refuse(gate: socket.socket, step: str, number: int) -> None:
    """Tell the keeper which step failed."""
    with suppress(OSError):
        gate.send(json.dumps([step, number]).encode())
        # Take its words out of the socket: one that is closed with something unread loses what it sent.
        while gate.recv(_MESSAGE_BYTES):
            pass
