"""Input of a process as a stream of messages: as much is taken as the process reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

from . import connect, fields, limits
from .exchange import Exchange
from .failures import invalid_argument
from .pumps import InputPipe

Json = Mapping[str, object]


async def messages_of(exchange: Exchange) -> AsyncGenerator[Json]:
    """Yield the messages of a client-streaming request as they arrive.

    Raises:
        AgentError: not whole JSON messages.
        ClientGone: the peer left before the end of the stream.
    """
    buffer = b""
    while piece := await exchange.read_some():
        buffer += piece
        while (found := connect.split_envelope(buffer)) is not None:
            flags, payload = found
            buffer = buffer[5 + len(payload) :]
            if not flags & connect.END_STREAM:
                yield connect.parse_object(payload)
    if buffer:
        raise invalid_argument("the stream ends in the middle of a message", "body")


async def take_input(exchange: Exchange, pipe_of: Callable[[Json], Callable[[Json], tuple[InputPipe, bytes]]]) -> None:
    """Hand the data of a stream to the process that its first message names.

    `pipe_of` turns the first message's selector into what returns the pipe and the bytes of each later one.

    Raises:
        AgentError: no such process, or no input to be written to.
        ClientGone: the peer left; what it sent is written.
    """
    input_of: Callable[[Json], tuple[InputPipe, bytes]] | None = None
    async for message in messages_of(exchange):
        if message.get("start") is not None:
            input_of = pipe_of(fields.inner(message, "start"))
        elif message.get("data") is not None:
            if input_of is None:
                raise invalid_argument("the first message must name the process", "start")
            pipe, data = input_of(fields.inner(fields.inner(message, "data"), "input"))
            await _send(pipe, data)
    if input_of is None:
        raise invalid_argument("the first message must name the process", "start")


async def _send(pipe: InputPipe, data: bytes) -> None:
    for start in range(0, len(data), limits.STDIN_PIECE_BYTES):
        await pipe.room()
        pipe.send(data[start : start + limits.STDIN_PIECE_BYTES])
