"""A keeper's end of a request: how it arrives, in advance of need or with it, and how it is answered."""

import asyncio
import errno
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cloche_local.egress_link import EgressLink
from cloche_local.setup import SetupFailed
from cloche_local.spec import SandboxSpec, Shape, decode_spec

_MOST_DESCRIPTORS = 3


class Orders:
    """The request of one sandbox. A keeper that was begun in advance waits here for it."""

    def __init__(self, requests: socket.socket | None, reply: socket.socket | None, egress: Sequence[int] = ()) -> None:
        """Wait on `requests` for a reply channel with what belongs to it, or have both already."""
        self._requests = requests
        self._reply = reply
        self._egress = egress
        self.egress: EgressLink | None = None
        self.listeners: list[socket.socket] = []
        """What the agent answers on beside its socket: ports of the host."""

    @property
    def waits(self) -> bool:
        """Whether the request has still to come."""
        return self._reply is None

    def filenos(self) -> list[int]:
        """The descriptors of it."""
        sockets = [channel.fileno() for channel in (self._requests, self._reply) if channel is not None]
        return [*sockets, *self._egress]

    async def receive(self, shape: Shape) -> SandboxSpec:
        """The request, once there is one.

        Raises:
            EOFError: nobody wants a sandbox any more.
        """
        if self._requests is not None:
            await self._wait(self._requests)
        if self._reply is None:
            raise EOFError
        self.egress = _link(self._egress)
        raw, fds = _read_all(self._reply)
        self.listeners = [socket.socket(fileno=fd) for fd in fds]
        return decode_spec(raw, shape)

    async def _wait(self, requests: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(requests, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(requests)
        _raw, fds, _flags, _address = socket.recv_fds(requests, 1, _MOST_DESCRIPTORS)
        requests.close()
        self._requests = None
        if fds:
            self._reply = socket.socket(fileno=fds[0])
            self._egress = fds[1:]

    def answer(self, message: Mapping[str, object]) -> bool:
        """Tell whoever asked; False where nobody listens any more. The last word on this channel."""
        if self._reply is None:
            return False
        with self._reply as reply, suppress(OSError):
            reply.send(json.dumps(message).encode())
            return True
        return False

    def refuse(self, error: OSError | SetupFailed) -> None:
        """Tell whoever asked which step failed."""
        if isinstance(error, SetupFailed):
            self.answer({"failed": error.step, "errno": error.errno})
        else:
            self.answer({"failed": "keeper", "errno": error.errno or errno.EIO})


def _link(egress: Sequence[int]) -> EgressLink | None:
    if not egress:
        return None
    control, denials = (socket.socket(fileno=fd) for fd in egress)
    return EgressLink(control, denials)


def _read_all(reply: socket.socket) -> tuple[bytes, list[int]]:
    """Read one length-prefixed message, and the descriptors that came with it.

    Raises:
        EOFError: the server took its request back.
    """
    begin, fds, _flags, _address = socket.recv_fds(reply, 4, _MOST_DESCRIPTORS)
    begin += _read_exactly(reply, 4 - len(begin)) if begin else b""
    if not begin:
        raise EOFError
    return _read_exactly(reply, int.from_bytes(begin, "big")), fds


def _read_exactly(reply: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = reply.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
