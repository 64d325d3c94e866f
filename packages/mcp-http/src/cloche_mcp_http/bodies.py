"""Reading the body of a request, bounded in size and in time.

Source: decision D9 (message 8 MiB); the issue's "slow clients", "a body of 100 MB".
"""

from collections import deque

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Receive


class BodyTooLarge(Exception):
    """The body is larger than allowed. What follows of it is not read."""


class BodyTooSlow(Exception):
    """The body did not arrive in time."""


class ClientGone(Exception):
    """The client went away before its request was complete."""


async def read_body(headers: Headers, receive: Receive, *, max_bytes: int, within_s: float) -> bytes:
    """Return the whole body.

    Raises:
        BodyTooLarge, BodyTooSlow, ClientGone: see there.
    """
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > max_bytes:
        raise BodyTooLarge
    body = bytearray()
    with anyio.move_on_after(within_s):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > max_bytes:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return bytes(body)
    raise BodyTooSlow


def replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out the body once more, and then what really comes: the disconnect."""
    waiting: deque[Message] = deque([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        return waiting.popleft() if waiting else await receive()

    return replay
