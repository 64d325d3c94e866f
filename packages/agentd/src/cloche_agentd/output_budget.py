"""How much one command, task or execution may print in all. Counted where its output is read, so nothing is polled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import limits
from .failures import invalid_argument

HEADER = "cloche-output-limit"


class OutputBudget:
    """Lets output through up to a limit, over all streams; tells once when there is more, and drops that.

    What prints is still read afterwards: a program that is asked to stop must not hang in a write.
    """

    def __init__(self, limit: int | None, on_spent: Callable[[], None]) -> None:
        self._left = limit
        self._on_spent = on_spent
        self.spent = False

    def take(self, data: bytes) -> bytes:
        """Return the part that is within the limit; nothing once there was more."""
        if self._left is None:
            return data
        if self.spent:
            return b""
        if len(data) <= self._left:
            self._left -= len(data)
            return data
        self.spent = True
        self._on_spent()
        return data[: self._left]


def limit_of(value: int) -> int | None:
    """Return the limit that a request names; it has none where the field is left out (0).

    Raises:
        AgentError: out of range.
    """
    if not 0 <= value <= limits.OUTPUT_LIMIT_MAX:
        raise invalid_argument("the limit of output is out of range", "output_limit")
    return value or None


def limit_in(headers: Mapping[str, str]) -> int | None:
    """Return the limit in a request's headers.

    Raises:
        AgentError: it is no whole number.
    """
    value = headers.get(HEADER, "0")
    if not (value.isascii() and value.isdigit()) or len(value) > 16:
        raise invalid_argument("cloche-output-limit must be a whole number", "cloche-output-limit")
    return limit_of(int(value))
