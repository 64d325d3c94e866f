"""A clock that stands still and ids that can be foretold, for the doors of the contract."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Time that passes only when a test says so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._passed_s = 0.0

    def now(self) -> datetime:
        """The time of day, with its zone."""
        return self._start + timedelta(seconds=self._passed_s)

    def monotonic(self) -> float:
        """Seconds since some moment; never runs backwards."""
        return self._passed_s

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._passed_s += seconds


class SequentialIds:
    """Ids `sb0001`, `sb0002`, …"""

    def __init__(self, prefix: str = "sb") -> None:
        self._prefix = prefix
        self._last = 0

    def new_id(self) -> str:
        """The next id."""
        self._last += 1
        return f"{self._prefix}{self._last:04d}"
