"""What the generated agent client needs from whoever carries its messages."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol


class AgentTransport(Protocol):
    """Carries messages to one agent. Failures arrive as catalogue errors."""

    async def unary(self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Send one message and return the one that answers it."""
        ...

    def stream(
        self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Send one message and yield those that answer it: frames of a Connect stream or lines of NDJSON.

        Closing the iterator closes the request.
        """
        ...
