"""The socket pair between keeper and init: JSON in SEQPACKET messages, descriptors from keeper to init only.

The keeper trusts nothing that comes back: sizes are bounded, shapes are checked, descriptors are refused.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from . import limits

_MAX_FDS: Final = 8
_INT_BYTES: Final = array.array("i").itemsize

LOST: Final = -1
"""The status of a child whose init is gone."""

Message = Mapping[str, object]
Exit = asyncio.Future[int]
"""Becomes the raw wait status of a child, or LOST."""
Reply = tuple[Message, Exit | None]


class LinkLost(Exception):
    """Init is gone, or it broke the protocol."""


def open_link() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a link: the keeper's and init's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


# -- init's side: blocking ------------------------------------------------------------------------------------------


def receive(link: socket.socket) -> tuple[Message, list[int]] | None:
    """Read one request of the keeper with its descriptors; None at the end of the link."""
    space = socket.CMSG_SPACE(_MAX_FDS * _INT_BYTES)
    data, ancillary, _flags, _address = link.recvmsg(limits.LINK_REPLY_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return None
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % _INT_BYTES])
    received = list(fds)
    message = cast("dict[str, object]", json.loads(data))  # the keeper is trusted by init
    if message.get("beside") is True:
        message = cast("dict[str, object]", json.loads(_read_all(received.pop())))
    return message, received


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        stream.seek(0)
        return stream.read()


def answer(link: socket.socket, message: Message) -> None:
    """Send a message to the keeper; a keeper that is gone is noticed by the next read."""
    try:
        link.send(json.dumps(message, separators=(",", ":")).encode())
    except OSError:
        return


# -- the keeper's side: asyncio -------------------------------------------------------------------------------------


class InitLink:
    """The keeper's end: calls with answers, and exits of children."""

    def __init__(self, link: socket.socket, on_lost: Callable[[], None]) -> None:
        self._socket = link
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._next_id = 0
        self._calls: dict[int, asyncio.Future[Reply]] = {}
        self._exits: dict[int, Exit] = {}
        self._outbox: deque[tuple[bytes, list[int]]] = deque()
        self.lost = False
        link.setblocking(False)
        self._loop.add_reader(link, self._on_readable)

    def close(self) -> None:
        """Stop using the link and close it: init then ends its side."""
        if not self.lost:
            self.lost = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            for _data, copies in self._outbox:
                for fd in copies:
                    os.close(fd)
            self._outbox.clear()

    async def call(
        self, request: Message, fds: Sequence[int] = (), *, patience_s: float = limits.LINK_REPLY_TIMEOUT_S
    ) -> Message:
        """Ask init for something and return its answer. The descriptors are duplicated, not taken.

        Raises:
            LinkLost: init is gone or does not answer.
        """
        return (await self._ask(request, fds, patience_s))[0]

    async def start(self, request: Message, fds: Sequence[int]) -> tuple[int, Exit] | Message:
        """Ask for a child. Return its pid and its exit, or init's refusal.

        Raises:
            LinkLost: init is gone or does not answer.
        """
        reply, child = await self._ask(request, fds, limits.LINK_REPLY_TIMEOUT_S)
        pid = reply.get("pid")
        return reply if child is None or not isinstance(pid, int) else (pid, child)

    async def _ask(self, request: Message, fds: Sequence[int], patience_s: float) -> Reply:
        if self.lost:
            raise LinkLost
        self._next_id += 1
        number = self._next_id
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._calls[number] = future
        try:
            self._send({**request, "id": number}, fds)
            async with asyncio.timeout(patience_s):
                return await future
        except TimeoutError:
            raise LinkLost from None
        finally:
            self._calls.pop(number, None)

    # -- sending ------------------------------------------------------------------------------------------------

    def _send(self, request: Message, fds: Sequence[int]) -> None:
        data = json.dumps(request, separators=(",", ":")).encode()
        beside = -1
        if len(data) > limits.LINK_MESSAGE_BYTES:
            beside = os.memfd_create("request", os.MFD_CLOEXEC)
            with os.fdopen(os.dup(beside), "wb") as stream:
                stream.write(data)
            data = b'{"beside":true}'
        # Own copies: the message may wait in the outbox after the caller has closed its descriptors.
        copies = [os.dup(fd) for fd in fds]
        if beside >= 0:
            copies.append(beside)
        if self._outbox or not self._try_send(data, copies):
            if not self._outbox:
                self._loop.add_writer(self._socket, self._on_writable)
            self._outbox.append((data, copies))
            if len(self._outbox) > limits.LINK_WAITING:
                # Init reads nothing and makes us say more and more.
                self._lose()

    def _try_send(self, data: bytes, copies: list[int]) -> bool:
        try:
            if copies:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", copies))
                self._socket.sendmsg([data], [rights])
            else:
                self._socket.send(data)
        except BlockingIOError:
            return False
        except OSError:
            self._lose()
        for fd in copies:
            os.close(fd)
        return True

    def _on_writable(self) -> None:
        while self._outbox and not self.lost:
            data, copies = self._outbox.popleft()
            if not self._try_send(data, copies):
                self._outbox.appendleft((data, copies))
                return
        if not self.lost:
            self._loop.remove_writer(self._socket)

    # -- receiving ----------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        # So many at a time: a flood of messages must not keep the keeper from its clients and its deadline.
        for _ in range(limits.LINK_READS):
            if self.lost:
                return
            try:
                # recv, not recvmsg: descriptors that a hostile init sends are dropped by the kernel.
                data = self._socket.recv(limits.LINK_REPLY_BYTES + 1)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data or len(data) > limits.LINK_REPLY_BYTES or not self._receive(data):
                self._lose()
                return

    def _receive(self, data: bytes) -> bool:
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        message = cast("Message", value)
        number, pid, status = message.get("id"), message.get("pid"), message.get("status")
        if type(number) is int:
            return self._take_reply(number, message)
        if type(pid) is int and type(status) is int and 0 <= status <= 0xFFFF:
            child = self._exits.pop(pid, None)
            if child is not None and not child.done():
                child.set_result(status)
            return True
        return False

    def _take_reply(self, number: int, message: Message) -> bool:
        """Hand an answer to whoever waits for it; False where it cannot be one."""
        call = self._calls.get(number)
        named = message.get("pid")
        pid = named if type(named) is int and named > 0 else None
        if call is None or call.done():
            if pid is not None:
                # Whoever asked for this child is gone: nobody would ever end it.
                self._send({"op": "kill", "id": 0, "leader": pid}, ())
            return True
        child: Exit | None = None
        if pid is not None:
            if pid in self._exits:
                # Two children with one number: the exit of the first would never be told.
                return False
            # Made here and not by the caller: the exit may be the very next message.
            child = self._exits[pid] = self._loop.create_future()
        call.set_result((message, child))
        return True

    def _lose(self) -> None:
        if self.lost:
            return
        self.close()
        for call in self._calls.values():
            if not call.done():
                call.set_exception(LinkLost())
        self.give_up_children()
        self._on_lost()

    def give_up_children(self) -> None:
        """Report every child as LOST: it ends with the sandbox, so no status from now on is its own."""
        for child in self._exits.values():
            if not child.done():
                child.set_result(LOST)
