"""Carries an error from the task that meets it to the calls that wait for its result."""

from __future__ import annotations

from types import TracebackType

__all__ = ["Relay"]


class Relay:
    """A block whose error is kept instead of raised; cancellation passes through.

    A background task of a session must not raise: its task group would cancel every other
    task of the session. What it met belongs to the calls that wait for it, or to the log.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    @property
    def code(self) -> str:
        """What may be logged of the error: its catalogue code, or its kind."""
        return str(getattr(self.error, "code", type(self.error).__name__))

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(exc, Exception):
            return False
        self.error = exc
        return True
