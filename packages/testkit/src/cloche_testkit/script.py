"""What a scripted provider is told to do wrong, and what it was asked.

Every request is recorded before anything else happens to it. A step of the script applies
to the next request of its operation; without a step the provider does what it should.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

Operation = Literal[
    "create",
    "get",
    "list",
    "set_timeout",
    "kill",
    "connect",
    "pause",
    "resume",
    "inspect",
    "diff",
    "logs",
    "prune",
    "update_network",
    "probe",
    "close",
]


@dataclass(frozen=True)
class Recorded:
    """One request as it reached the provider. `arguments` holds only what was given."""

    operation: Operation
    arguments: Mapping[str, Any]


class Gate:
    """A request that waits. The test learns that it is there and decides when it goes on."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.left = anyio.Event()
        self._released = anyio.Event()

    def release(self) -> None:
        """Let the request go on."""
        self._released.set()

    async def pass_through(self) -> None:
        """Called by the provider."""
        self.reached.set()
        try:
            await self._released.wait()
        finally:
            self.left.set()


@dataclass
class _Step:
    error: Exception | None = None
    gate: Gate | None = None


@dataclass
class _Queue:
    before: deque[_Step] = field(default_factory=deque[_Step])
    after: deque[_Step] = field(default_factory=deque[_Step])


class Script:
    """Steps to come, and requests so far."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self._queues: dict[str, _Queue] = defaultdict(_Queue)

    def fail_next(self, operation: Operation, error: Exception, *, times: int = 1, answer_lost: bool = False) -> None:
        """Let the next requests of an operation fail.

        Args:
            error: what the provider raises.
            times: how many requests fail.
            answer_lost: the operation takes effect first; only its answer is lost.
        """
        for _ in range(times):
            self._queue(operation, answer_lost).append(_Step(error=error))

    def hold_next(self, operation: Operation, *, answer_only: bool = False) -> Gate:
        """Let the next request of an operation wait until the gate is released.

        Args:
            answer_only: the operation takes effect first; only its answer waits.
        """
        gate = Gate()
        self._queue(operation, answer_only).append(_Step(gate=gate))
        return gate

    def of(self, operation: Operation) -> list[Mapping[str, Any]]:
        """The arguments of every request of one operation, in order."""
        return [request.arguments for request in self.requests if request.operation == operation]

    def operations(self) -> list[Operation]:
        """The operations that were asked for, in order, without probing and closing."""
        return [request.operation for request in self.requests if request.operation not in ("probe", "close")]

    async def arrive(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Record a request, then play the step that stands before its effect."""
        self.requests.append(Recorded(operation, dict(arguments)))
        await self._play(self._queues[operation].before)

    async def answer(self, operation: Operation) -> None:
        """Play the step that stands between an effect and its answer."""
        await self._play(self._queues[operation].after)

    def _queue(self, operation: Operation, after_effect: bool) -> deque[_Step]:
        queue = self._queues[operation]
        return queue.after if after_effect else queue.before

    @staticmethod
    async def _play(steps: deque[_Step]) -> None:
        if not steps:
            return
        step = steps.popleft()
        if step.gate is not None:
            await step.gate.pass_through()
        if step.error is not None:
            raise step.error
