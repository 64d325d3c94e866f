"""Interleaved rounds: every contender runs once per round, so a slow minute of the machine hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

# Runs once and returns the seconds that count; what it does before and after is its own business.
Trial = Callable[[], Awaitable[float]]


@dataclass
class Contender:
    """One way to do the work of a group, with what its trials took."""

    name: str
    trial: Trial
    seconds: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])

    @property
    def attempts(self) -> int:
        return len(self.seconds) + len(self.failures)

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.seconds) * 1000 if self.seconds else None


@dataclass(frozen=True)
class Goal:
    """What a contender is held against: a ratio of medians, or a number of milliseconds on top."""

    contender: str
    against: str
    at_most_ratio: float | None = None
    at_least_times_faster: float | None = None
    at_most_added_ms: float | None = None


@dataclass(frozen=True)
class Group:
    """Contenders that do the same work, and the goals among them."""

    title: str
    contenders: Sequence[Contender]
    goals: Sequence[Goal] = ()

    def median_ms(self, name: str) -> float | None:
        return next((one.median_ms for one in self.contenders if one.name == name), None)


async def run_rounds(group: Group, rounds: int, warm_up: int = 1) -> None:
    """Run every contender once per round. The first `warm_up` rounds are not counted."""
    for number in range(-warm_up, rounds):
        for contender in group.contenders:
            await _run_once(contender, counted=number >= 0)


async def _run_once(contender: Contender, *, counted: bool) -> None:
    try:
        seconds = await contender.trial()
    except (OSError, RuntimeError, TimeoutError) as error:
        # A failed trial is counted even while warming up: success comes before speed.
        contender.failures.append(f"{type(error).__name__}: {error}"[:200])
        return
    if counted:
        contender.seconds.append(seconds)
