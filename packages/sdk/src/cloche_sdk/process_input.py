"""Input of a running process: taken piece by piece, as fast as the process reads."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from cloche_contract import agent
from cloche_contract.agent import ROUTE_STREAM_INPUT
from cloche_contract.errors import InvalidArgument, ProcessNotFound

from .data_plane import AgentChannel, agent_client, answered

__all__ = ["close_input", "feed_and_close", "send_input"]

# In Base64 it is less than an agent takes in ahead, so that sending never stalls half-way.
PIECE_BYTES = 131_072
# A process may take its time to read.
TAKEN_WITHIN_S = 86_400.0


async def send_input(
    channel: AgentChannel, selector: Mapping[str, Any], data: str | bytes, stream: Literal["stdin", "pty"]
) -> None:
    """Write to a process. Returns when the agent has taken it all; a process that does not read is waited for.

    Raises:
        ProcessNotFound: it has ended.
        InvalidArgument: it takes no input, or no more.
    """
    for piece in _pieces(data):
        written = {"data": {"input": {stream: base64.b64encode(piece).decode()}}}
        messages = ({"start": {"process": selector}}, written)
        await channel.feed(ROUTE_STREAM_INPUT, messages, wait_s=TAKEN_WITHIN_S)


async def close_input(channel: AgentChannel, selector: Mapping[str, Any]) -> None:
    """Let a process read the end of its input, after what was written."""
    request = agent.CloseStdinRequest(process=agent.ProcessSelector.model_validate(selector))
    await answered(agent_client(channel).process_close_stdin(request))


async def feed_and_close(channel: AgentChannel, selector: Mapping[str, Any], data: str | bytes) -> None:
    """Write all of a process's input, then its end. A process that wants no more of it is no error."""
    try:
        await send_input(channel, selector, data, "stdin")
        await close_input(channel, selector)
    except (ProcessNotFound, InvalidArgument):
        return


def _pieces(data: str | bytes) -> Iterator[bytes]:
    try:
        raw = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError:
        raise InvalidArgument(field="data", rule="unicode") from None
    return (raw[start : start + PIECE_BYTES] for start in range(0, len(raw), PIECE_BYTES))
