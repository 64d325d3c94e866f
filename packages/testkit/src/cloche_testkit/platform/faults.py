"""What a reference platform does wrong, once it is told to."""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream

from cloche_testkit.platform.wire import raw_answer

FaultKind: TypeAlias = Literal["reset", "stall", "status", "malformed", "lying-length"]


@dataclass
class Fault:
    """A fault of one route.

    Attributes:
        route: name of the route in schemas/http/platform.json.
        kind: `reset` cuts the connection, `stall` never answers, `status` refuses, `malformed` answers no JSON,
            `lying-length` ends the body before its end.
        after: whether the request is carried out before it goes wrong.
        times: how often it happens.
        body: what a refusal says; the reason that a client must not show.
    """

    route: str
    kind: FaultKind
    after: bool = False
    times: int = 1
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b'{"code": 0, "message": "marker-of-the-platform"}'


class Faults:
    """The faults that are still to come."""

    def __init__(self) -> None:
        self._planned: list[Fault] = []

    def plan(self, fault: Fault) -> None:
        """Let it happen at the next requests of its route."""
        self._planned.append(fault)

    def next(self, route: str) -> Fault | None:
        """The fault of this request, if it has one."""
        for fault in self._planned:
            if fault.route == route and fault.times > 0:
                fault.times -= 1
                return fault
        return None


async def go_wrong(stream: SocketStream, fault: Fault) -> None:
    """Answer a request the way that the fault says; the connection is of no use afterwards."""
    if fault.kind == "stall":
        await anyio.sleep_forever()
    elif fault.kind == "reset":
        linger = struct.pack("ii", 1, 0)  # closing sends a reset instead of an end
        stream.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    elif fault.kind == "status":
        await stream.send(raw_answer(fault.status, fault.body, {"connection": "close", **fault.headers}))
    elif fault.kind == "malformed":
        await stream.send(raw_answer(200, b"{marker-of-the-platform", {"connection": "close"}))
    else:
        await stream.send(raw_answer(200, b"[", claimed_length=1_000_000))
