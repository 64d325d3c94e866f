"""The platform behind a scripted provider: sandboxes in memory, shared by every client that opens it."""

from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from pydantic import MISSING, SecretStr

from cloche_contract.common import LimitResource
from cloche_contract.errors import IdempotencyConflict, SandboxExpired, SandboxNotFound, TemplateNotFound
from cloche_contract.kernel.doors import Clock, IdSource, SystemClock
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord, SandboxStatus
from cloche_contract.provider import CreateRequest
from cloche_testkit.doors import SequentialIds
from cloche_testkit.markers import MARKERS
from cloche_testkit.script import Script
from cloche_testkit.unsandboxed_agent import UnsandboxedAgent

DataPlane = Literal["none", "unsandboxed"]


@dataclass(frozen=True)
class Held:
    """One sandbox as the platform remembers it."""

    sandbox_id: str
    request: CreateRequest
    status: SandboxStatus
    started_at: datetime
    end_at: datetime
    agent: UnsandboxedAgent | None = None
    ended: Literal["killed", "expired"] | None = None


@dataclass
class ScriptedPlane:
    """Sandboxes, the script of what goes wrong, and every request so far.

    Args:
        data_plane: "unsandboxed" runs the real agent of each sandbox as a child process of the
            test, WITHOUT ANY ISOLATION; "none" has sandboxes that cannot be used.
        templates: names that create accepts; None accepts every name.
        limits: resources whose limits create accepts, and pretends to enforce.
        usable: what the report says, and whether its check `isolation` is one that must hold.
        marked: put a marker into every confidential field of every record (see `markers`).
    """

    data_plane: DataPlane = "none"
    templates: Collection[str] | None = None
    limits: Collection[LimitResource] = ()
    marked: bool = False
    usable: bool = True
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=SequentialIds)
    script: Script = field(default_factory=Script)
    opened: int = 0
    closed: int = 0
    _held: dict[str, Held] = field(default_factory=dict[str, Held])
    _keys: dict[str, str] = field(default_factory=dict[str, str])

    # What tests ask and do

    @property
    def alive(self) -> list[str]:
        """Ids of the sandboxes that live, oldest first."""
        self._expire_due()
        return [held.sandbox_id for held in self._held.values() if held.ended is None]

    async def expire(self, sandbox_id: str) -> None:
        """End a sandbox as its deadline would."""
        await self._end(sandbox_id, "expired")

    async def lose(self, sandbox_id: str) -> None:
        """Kill the agent of a sandbox; the platform does not know yet."""
        held = self._held[sandbox_id]
        if held.agent is not None:
            await held.agent.stop()

    def set_status(self, sandbox_id: str, status: SandboxStatus) -> None:
        """Change what the platform reports, for example to `paused`."""
        self._held[sandbox_id] = replace(self._held[sandbox_id], status=status)

    def lifetime_left_s(self, sandbox_id: str) -> float:
        """Seconds until the deadline of a sandbox."""
        return (self._held[sandbox_id].end_at - self.clock.now()).total_seconds()

    async def aclose(self) -> None:
        """End every agent. Sandboxes of a closed plane are gone."""
        async with AsyncExitStack() as stack:
            for held in self._held.values():
                if held.agent is not None:
                    stack.push_async_callback(held.agent.stop)

    # What the provider asks

    async def add(self, request: CreateRequest) -> Held:
        """Make a sandbox, or return the one that the idempotency key stands for."""
        if self.templates is not None and request.template not in self.templates:
            raise TemplateNotFound
        key = None if request.idempotency_key is MISSING else request.idempotency_key
        known = self._known(key, request)
        if known is not None:
            return known
        now = self.clock.now()
        held = Held(
            sandbox_id=self.ids.new_id(),
            request=request,
            status="running",
            started_at=now,
            end_at=now + timedelta(seconds=request.timeout),
        )
        if self.data_plane == "unsandboxed":
            envs = {} if request.envs is MISSING else request.envs
            held = replace(held, agent=await UnsandboxedAgent.start(held.sandbox_id, envs))
        self._held[held.sandbox_id] = held
        if key is not None:
            self._keys[key] = held.sandbox_id
        return held

    async def undo(self, held: Held) -> None:
        """Take back a create whose answer reached nobody."""
        await self._end(held.sandbox_id, "killed")
        self._keys = {key: sandbox_id for key, sandbox_id in self._keys.items() if sandbox_id != held.sandbox_id}

    def find(self, sandbox_id: str) -> Held:
        """The sandbox, alive.

        Raises:
            SandboxExpired: its lifetime is over.
            SandboxNotFound: never made here, or killed.
        """
        self._expire_due()
        held = self._held.get(sandbox_id)
        if held is None or held.ended == "killed":
            raise SandboxNotFound
        if held.ended == "expired":
            raise SandboxExpired
        return held

    def newest_first(self) -> list[Held]:
        """The sandboxes that live."""
        return [self._held[sandbox_id] for sandbox_id in reversed(self.alive)]

    def renew(self, sandbox_id: str, lifetime_s: int) -> None:
        """Let a sandbox live for so many seconds from now."""
        held = self.find(sandbox_id)
        self._held[sandbox_id] = replace(held, end_at=self.clock.now() + timedelta(seconds=lifetime_s))

    async def kill(self, sandbox_id: str) -> None:
        """End a sandbox that lives."""
        self.find(sandbox_id)
        await self._end(sandbox_id, "killed")

    def record(self, held: Held) -> SandboxRecord:
        """Everything that this platform says about a sandbox."""
        request = held.request
        return SandboxRecord(
            sandbox_id=held.sandbox_id,
            template=request.template,
            status=held.status,
            region=None if request.region is MISSING else request.region,
            started_at=held.started_at.isoformat(),
            end_at=held.end_at.isoformat(),
            cpu_count=None if request.cpu is MISSING else request.cpu,
            memory_mb=None if request.memory is MISSING else request.memory,
            disk_size_mb=None,
            url=MARKERS["url"] if self.marked else f"scripted:{held.sandbox_id}",
            agent=self._endpoint(held),
            account_id=MARKERS["account_id"] if self.marked else None,
            user_metadata=self._labels(request),
            lifecycle={"marker": MARKERS["lifecycle"]} if self.marked else {},
            envs={"MARKER": MARKERS["envs"]} if self.marked else {},
        )

    # Inside

    def _known(self, key: str | None, request: CreateRequest) -> Held | None:
        held = self._held.get(self._keys.get(key, "")) if key is not None else None
        if held is None or held.ended is not None:
            return None
        if held.request != request:
            raise IdempotencyConflict
        return held

    def _endpoint(self, held: Held) -> AgentEndpoint | None:
        if held.agent is not None:
            return held.agent.endpoint
        if not self.marked:
            return None
        return AgentEndpoint(
            base_url=MARKERS["agent.base_url"],
            socket_path=MARKERS["agent.socket_path"],
            access_token=SecretStr(MARKERS["agent.access_token"]),
            version=MARKERS["agent.version"],
        )

    def _labels(self, request: CreateRequest) -> dict[str, str]:
        labels = {} if request.metadata is MISSING else dict(request.metadata)
        return labels | ({"marker": MARKERS["user_metadata"]} if self.marked else {})

    async def _end(self, sandbox_id: str, how: Literal["killed", "expired"]) -> None:
        held = self._held[sandbox_id]
        self._held[sandbox_id] = replace(held, ended=how, status="stopped")
        if held.agent is not None:
            await held.agent.stop()

    def _expire_due(self) -> None:
        now = self.clock.now()
        for held in list(self._held.values()):
            if held.ended is None and held.end_at <= now:
                self._held[held.sandbox_id] = replace(held, ended="expired", status="stopped")
                if held.agent is not None:
                    held.agent.terminate()
