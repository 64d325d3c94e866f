"""What can go wrong on the way to an agent or a platform, before it is translated for the caller.

Kept apart from `_http` so that naming these does not import httpx.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["AgentRefusal", "AgentUnreachable", "PlatformUnreachable"]


class AgentUnreachable(Exception):
    """The agent did not take the request, or went away while it answered.

    `slow` tells a deadline that passed from a connection that is not there.
    """

    def __init__(self, *, slow: bool = False) -> None:
        super().__init__("the agent of the sandbox cannot be reached")
        self.slow = slow


class AgentRefusal(Exception):
    """The agent answered with an error."""

    def __init__(self, http_status: int, body: Mapping[str, Any]) -> None:
        super().__init__("the agent of the sandbox refused the request")
        self.http_status = http_status
        self.body = body


class PlatformUnreachable(Exception):
    """A platform did not answer a request, or not to its end.

    `slow` tells a deadline that passed from a connection that broke; `sent`, whether the request may have been
    carried out.
    """

    def __init__(self, *, slow: bool = False, sent: bool) -> None:
        super().__init__("the platform cannot be reached")
        self.slow = slow
        self.sent = sent
