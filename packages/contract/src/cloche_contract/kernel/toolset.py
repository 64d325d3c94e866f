"""What a transport and a tool set know of each other."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from cloche_contract.kernel.doors import Clock, IdSource, RandomIds, SystemClock

T = TypeVar("T")


class ToolCall(Protocol):
    """One call in progress, as its handler sees it."""

    async def report(self, progress: float, message: str) -> None:
        """Tell the client how far it is; progress only grows. Nothing happens when nobody asked for it."""
        ...

    def attach_image(self, media_type: str, data: bytes) -> bool:
        """Attach an image to the result; False when it is over the limits of a result."""
        ...


@dataclass(frozen=True)
class CallReport:
    """A call that is over. `error` is a code, `cancelled` or None; an empty `sandbox_id` named something else."""

    tool: str
    sandbox_id: str | None
    error: str | None
    duration_s: float


class CallObserver(Protocol):
    """Who keeps a record of calls. A `ToolSession` that has one has it as its attribute `observer`."""

    def begin(self) -> None:
        """Raise a `ClocheError` where a call could not be recorded; it is then not carried out."""

    def end(self, report: CallReport) -> None:
        """Record a call that is over; never fails."""


class ToolSession(Protocol):
    """One client's view of a tool set. Leaving its context destroys what the session owns."""

    @property
    def handlers(self) -> object:
        """What implements the generated Protocol of the set."""
        ...


class Commons(Protocol):
    """What sessions of one process share, such as an opened provider; never what one client made."""

    ending: bool  # so is the process: what sessions still clean up has seconds, no more

    async def get(self, key: str, open_it: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What is kept under the key: opened by the first who asks, closed after the last session.

        Another task closes it, so it must not hold a task group."""
        ...


@dataclass(frozen=True)
class ToolSetOptions:
    """What a transport tells a tool set when it opens a session.

    `leases` is for clients that have no session: there is no default sandbox, and each call that needs
    one makes its own; at most so many live at a time. `commons` is None where nothing is shared.
    """

    template: str | None = None
    provider: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    principal: str | None = None
    leases: int | None = None
    commons: Commons | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)


class ToolSetFactory(Protocol):
    """The entry point of group `cloche.toolsets`."""

    def __call__(self, options: ToolSetOptions) -> AbstractAsyncContextManager[ToolSession]:
        """Open one session."""
        ...


@dataclass(frozen=True)
class ProviderOptions:
    """What a provider is opened with: resolved settings by key, and its doors."""

    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)
