"""Time and randomness, handed in: nothing else in the product reads a clock or makes an id."""

import time
import uuid
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime:
        """Wall time, with its zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...


class IdSource(Protocol):
    """Names that nobody can guess."""

    def new_id(self) -> str:
        """Return a fresh id of lowercase letters and digits."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        return time.monotonic()


class RandomIds:
    """Ids with 122 random bits, from the operating system."""

    def new_id(self) -> str:
        return uuid.uuid4().hex
