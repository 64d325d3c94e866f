"""Interleaved rounds: every contender runs once per round, so a slow minute of the machine hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from cloche_contract.errors import ClocheError

# Runs once and returns the number that counts; what it does before and after is its own business.
Trial = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class Unit:
    """How a group's numbers are shown: `factor` turns what a trial returns into it."""

    label: str
    factor: float


MILLISECONDS = Unit("ms", 1000)
MEGABYTES = Unit("MB", 1)


@dataclass
class Contender:
    """One way to do the work of a group, with what its trials gave: seconds, or the group's own unit."""

    name: str
    trial: Trial
    values: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])

    @property
    def attempts(self) -> int:
        return len(self.values) + len(self.failures)

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None


@dataclass(frozen=True)
class Goal:
    """What a contender is held against: a ratio of medians, a number of milliseconds on top, or a number alone."""

    contender: str
    against: str = ""
    at_most_ratio: float | None = None
    at_least_times_faster: float | None = None
    at_most_added_ms: float | None = None
    at_most: float | None = None
    """In the group's unit."""


@dataclass(frozen=True)
class Group:
    """Contenders that do the same work, and the goals among them."""

    title: str
    contenders: Sequence[Contender]
    goals: Sequence[Goal] = ()
    unit: Unit = MILLISECONDS
    skipped: Sequence[str] = ()
    """Contenders that this machine cannot run, each with the reason."""

    def median(self, name: str) -> float | None:
        """In the group's unit."""
        found = next((one.median for one in self.contenders if one.name == name), None)
        return None if found is None else found * self.unit.factor


async def run_rounds(group: Group, rounds: int, warm_up: int = 1) -> None:
    """Run every contender once per round. The first `warm_up` rounds are not counted."""
    for number in range(-warm_up, rounds):
        for contender in group.contenders:
            await _run_once(contender, counted=number >= 0)


async def _run_once(contender: Contender, *, counted: bool) -> None:
    try:
        value = await contender.trial()
    except (ClocheError, OSError, RuntimeError, TimeoutError) as error:
        # A failed trial is counted even while warming up: success comes before speed.
        contender.failures.append(f"{type(error).__name__}: {error}"[:200])
        return
    if counted:
        contender.values.append(value)
