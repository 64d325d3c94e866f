"""The way to one sandbox: its provider, its agent, its lifetime, and why it went silent.

Every use goes through `enter`, which also renews the lifetime where a policy is set. The
renewal rides on the request where the agent takes it, else it is one call to the
provider before the use.

Source: decisions D15 to D18, D24; seed-001, rule 5.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio
from pydantic import MISSING

from cloche_contract.agent import HEADER_ACCESS_TOKEN, HEADER_RENEW, PROTOCOL, ROUTE_HEALTH
from cloche_contract.common import Capability
from cloche_contract.errors import (
    ClocheError,
    NotFound,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxExpired,
    SandboxIncompatible,
    SandboxLost,
    SandboxPaused,
    UnsupportedOperation,
)
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    DiffRequest,
    DiffResult,
    GetRequest,
    KillRequest,
    PauseRequest,
    ResumeRequest,
    SandboxProvider,
    SetTimeoutRequest,
    UpdateNetworkRequest,
)

from .providers import Doors, Reference
from .requests import build, listed
from .silence import AgentRefusal, AgentUnreachable

if TYPE_CHECKING:
    from ._http import AgentHttp

__all__ = ["SandboxLink"]

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = (0.02, 0.08, 0.3, 0.6)

_NO_HEADERS: Mapping[str, str] = {}
_PAUSED = frozenset({"paused", "pausing"})
_ENDED = frozenset({"stopping", "stopped", "error"})


class SandboxLink:
    """Owns the connection to one sandbox and knows its provider."""

    def __init__(self, reference: Reference, provider: SandboxProvider, record: SandboxRecord, doors: Doors) -> None:
        self.reference = reference
        self.provider = provider
        self.record = record
        self.ended = False
        # Whether it is known to be paused: nothing that uses it resumes it by itself.
        self.paused = False
        # Abilities that its agent turned out not to have: they are done by other means from then on.
        self.lacks: set[Capability] = set()
        self._doors = doors
        self._lifetime_s: int | None = None
        self._renew_headers: Mapping[str, str] = {}
        self._http: AgentHttp | None = None
        self._connecting = anyio.Lock()
        # Serialises what changes the lifetime: a renewal that is still on its way must not
        # land after, and undo, a timeout that was set later.
        self._lifetime_lock = anyio.Lock()
        self._deadline = _parse_time(record.end_at)
        self.patience_s = float(doors.settings.integer("http_timeout"))
        self.output_limit = doors.settings.integer("output_limit")

    @property
    def lifetime_s(self) -> int | None:
        """How long each use lets the sandbox live from then on; None renews nothing."""
        return self._lifetime_s

    @lifetime_s.setter
    def lifetime_s(self, seconds: int | None) -> None:
        self._lifetime_s = seconds
        self._renew_headers = {} if seconds is None else {HEADER_RENEW: str(seconds)}

    def new_id(self) -> str:
        """A name that nobody can guess, for something in the sandbox."""
        return self._doors.ids.new_id()

    @property
    def runs_our_agent(self) -> bool:
        """Whether its agent is that of this project, which keeps the time of code and ends what is left behind."""
        agent = self.record.agent
        return agent is None or (agent.version.isascii() and agent.version.isdigit())

    @property
    def remaining_s(self) -> float | None:
        """How long the sandbox lives, as far as is known here."""
        return None if self._deadline is None else (self._deadline - self._doors.clock.now()).total_seconds()

    async def enter(self) -> tuple[AgentHttp, Mapping[str, str]]:
        """The agent's connection, and the headers that renew the lifetime with this request.

        Raises:
            SandboxExpired, SandboxLost, SandboxNotFound: it is gone.
            SandboxPaused: it is paused, and stays so.
            ProviderUnavailable, ProviderTimeout: it cannot be told.
        """
        if self.paused:
            await self._see_whether_paused()
        http = self._http or await self._connect()
        if self._lifetime_s is None or not self._renews_on_request:
            return http, _NO_HEADERS
        self._deadline = self._from_now(self._lifetime_s)
        return http, self._renew_headers

    async def renew_before_use(self) -> None:
        """Renew by a call to the provider, where the renewal cannot ride on the request.

        Raises:
            SandboxExpired, SandboxLost: it is gone.
        """
        seconds = self._lifetime_s
        if seconds is None or self._renews_on_request:
            return
        try:
            await self.set_timeout(seconds)
        except NotFound as error:
            raise self.gone(error) from None
        except ClocheError as error:
            # Best effort: the sandbox may well live long enough for this use.
            logger.warning("renew failed", extra={"error": error.code})

    async def extend_to(self, seconds: int) -> None:
        """Let the next use renew the lifetime to `seconds`, unless it lives longer already.

        For what somebody else may have given a longer life meanwhile: the provider is asked.

        Raises:
            SandboxExpired, SandboxLost: it is gone.
        """
        try:
            await self.refresh()
        except NotFound as error:
            raise self.gone(error) from None
        except ClocheError as error:
            # Best effort: the sandbox may well live long enough for this use.
            logger.warning("renew failed", extra={"error": error.code})
            return
        left = self.remaining_s
        self.lifetime_s = seconds if left is None or left < seconds else None
        await self.renew_before_use()

    async def renew(self) -> None:
        """Renew now, between requests: a long command is a use as long as it runs."""
        if self._lifetime_s is None:
            return
        if not self._renews_on_request:
            await self.renew_before_use()
            return
        http, headers = await self.enter()
        async with http.request("GET", ROUTE_HEALTH, headers=headers):
            return

    async def refresh(self) -> SandboxRecord:
        """Ask the provider for current metadata. Never connects, never renews."""
        record = await self.provider.get(GetRequest(sandbox_id=self.reference.sandbox_id))
        self._deadline = _parse_time(record.end_at)
        if record.agent is None:
            # What reaches the agent is told when it is made or connected to, and goes on being true.
            record = record.model_copy(update={"agent": self.record.agent, "url": self.record.url or record.url})
        return record

    async def set_timeout(self, seconds: int) -> None:
        """Set the lifetime from now, by exactly one provider call."""
        async with self._lifetime_lock:
            over = self._from_now(seconds)
            await self.provider.set_timeout(SetTimeoutRequest(sandbox_id=self.reference.sandbox_id, timeout=seconds))
            self._deadline = over

    async def pause(self) -> bool:
        """Pause the sandbox; False where it was paused already."""
        self.paused = True  # where that is not so in the end, the next use sees it
        try:
            await self.provider.pause(PauseRequest(sandbox_id=self.reference.sandbox_id))
        except SandboxPaused:
            return False
        except UnsupportedOperation:
            self.paused = False
            raise
        await self.aclose()
        return True

    async def resume(self, seconds: int) -> None:
        """Let the sandbox go on, for `seconds` from now; its agent may be reached in another way than before."""
        request = build(ResumeRequest, sandbox_id=self.reference.sandbox_id, timeout=seconds)
        async with self._lifetime_lock:
            over = self._from_now(seconds)
            self.record = await self.provider.resume(request)
            self._deadline = over
        self.paused = False
        await self.aclose()

    async def _see_whether_paused(self) -> None:
        """Look at one that was paused; somebody else may have resumed it.

        Raises:
            SandboxPaused: nobody has.
        """
        try:
            record = await self.refresh()
        except NotFound as error:
            raise self.gone(error) from None
        if record.status in _PAUSED:
            raise SandboxPaused
        self.paused = False

    async def update_network(self, allow: Sequence[str], remove: Sequence[str]) -> tuple[str, ...]:
        """Change the network allowlist; returns the rules in force."""
        request = build(
            UpdateNetworkRequest,
            sandbox_id=self.reference.sandbox_id,
            allow=listed("allow", allow),
            remove=listed("remove", remove),
        )
        return tuple((await self.provider.update_network(request)).rules)

    async def diff(self, limit: int, after: str | None) -> DiffResult:
        """One page of what was changed inside."""
        request = build(DiffRequest, sandbox_id=self.reference.sandbox_id, limit=limit, after=after)
        return await self.provider.diff(request)

    async def kill(self) -> None:
        """Destroy the sandbox."""
        await self.provider.kill(KillRequest(sandbox_id=self.reference.sandbox_id))
        self.ended = True

    async def kill_quietly(self) -> None:
        """Destroy the sandbox; that it is gone already is no error."""
        try:
            await self.kill()
        except NotFound:
            return

    async def is_running(self) -> bool:
        """Whether the agent answers its health check."""
        try:
            http = self._http or await self._connect()
            async with http.request("GET", ROUTE_HEALTH):
                return True
        except (AgentRefusal, AgentUnreachable, NotFound, SandboxPaused):
            return False

    async def explain(self, silence: AgentUnreachable) -> ClocheError:
        """Why the agent does not answer: ask the provider, and return the error to raise.

        A sandbox that is being destroyed cuts its connections before its provider calls it gone,
        so a dead agent of a living sandbox is looked at again.
        """
        unknown = ProviderTimeout() if silence.slow else ProviderUnavailable()
        for pause_s in (*LOOK_AGAIN_S, None):
            try:
                record = await self.provider.get(GetRequest(sandbox_id=self.reference.sandbox_id))
            except NotFound as error:
                return self.gone(error)
            except ClocheError as error:
                logger.warning("sandbox state unknown", extra={"error": error.code})
                return unknown
            if record.status in _ENDED:
                return self.gone()
            if record.status in _PAUSED:
                self.paused = True
                return SandboxPaused()
            if pause_s is None or silence.slow or await self.is_running():
                break
            await anyio.sleep(pause_s)
        return unknown

    async def aclose(self) -> None:
        """Close the connections. The sandbox lives on."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _connect(self) -> AgentHttp:
        async with self._connecting:
            if self._http is not None:
                return self._http
            if self.record.agent is None:
                request = ConnectRequest(sandbox_id=self.reference.sandbox_id, resume=False)
                self.record = await self.provider.connect(request)
            agent = self.record.agent
            if agent is None:
                raise ProviderUnavailable
            _check_protocol(agent.version)
            from ._http import AgentHttp

            routing = {} if agent.headers is MISSING else agent.headers
            headers = {**routing, "user-agent": "cloche", HEADER_ACCESS_TOKEN: agent.access_token.get_secret_value()}
            self._http = AgentHttp(
                socket_path=agent.socket_path,
                base_url=agent.base_url,
                headers=headers,
                interpreter_url=agent.interpreter_url,
            )
            return self._http

    @property
    def _renews_on_request(self) -> bool:
        agent = self.record.agent
        return agent is not None and agent.renew_on_request

    def _from_now(self, seconds: int) -> datetime:
        """The end of a lifetime that is about to be asked for: whoever is asked counts from no earlier."""
        return self._doors.clock.now() + timedelta(seconds=seconds)

    def gone(self, told: NotFound | None = None) -> ClocheError:
        """Note that the sandbox is gone, and say how; the provider may have `told` that it expired."""
        self.ended = True
        over = self._deadline is not None and self._doors.clock.now() >= self._deadline
        if not over and not isinstance(told, SandboxExpired):
            return SandboxLost()
        return SandboxExpired() if self._deadline is None else SandboxExpired(ended_at=self._deadline.isoformat())


def _check_protocol(version: str) -> None:
    """See that we speak the agent's protocol. Platforms number theirs otherwise, and speak what E2B's clients do.

    Raises:
        SandboxIncompatible: the agent is of another version of this project.
    """
    if version.isascii() and version.isdigit() and version != PROTOCOL:
        raise SandboxIncompatible(problem="newer" if int(version) > int(PROTOCOL) else "older")


def _parse_time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        # Python 3.10 does not read the "Z" that platforms write.
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
