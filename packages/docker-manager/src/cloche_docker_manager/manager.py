"""The manager of one process: its settings, its records, and one engine that is found when it is first needed."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import anyio
from anyio.to_thread import run_sync
from pydantic import ValidationError

from cloche_contract.agent import SquashRequest, SquashResponse
from cloche_contract.client import AgentClient
from cloche_contract.errors import ClocheError, ProviderFailed, SandboxStateConflict

from .agent_link import AgentLink
from .change_list import ChangeList, list_changes
from .create import Creation, Report, Wanted, drop_network
from .destroy import destroy
from .drafts import Drafts
from .engine import Engine, find_engine
from .export import Exported, Order, export
from .picker import Listing, list_directories
from .reconcile import reconcile
from .registry import Record, Registry
from .settings import ManagerSettings, read_settings

logger = logging.getLogger(__name__)

RENEW_S = 5.0


class Manager:
    """Sandboxes of one user in one engine, shared by every manager with the same state directory."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the settings; blocks for a few file operations.

        Raises:
            ConfigurationInvalid: a setting is wrong.
            BackendUnavailable: the state directory cannot be used.
        """
        self._environ = environ
        self._settings = read_settings(environ)
        self._registry = Registry(self._settings.state_dir)
        self._engine: Engine | None = None
        self._opening = anyio.Lock()

    async def aclose(self) -> None:
        """Let go of the engine. Sandboxes live on; the network goes where none is left to need it."""
        if self._engine is not None:
            await run_sync(self._leave, self._engine)
            self._engine = None

    def _leave(self, engine: Engine) -> None:
        try:
            drop_network(engine, self._registry)
        except ClocheError as exc:
            logger.warning("the network stays", extra={"error": exc.code})
        engine.close()

    async def engine(self) -> Engine:
        """The engine, connected; the first use brings records and engine together.

        Raises:
            BackendUnavailable: none answers, or it cannot be used.
        """
        async with self._opening:
            if self._engine is None:
                self._engine = await run_sync(self._open)
        return self._engine

    def _open(self) -> Engine:
        engine = Engine(find_engine(self._environ))
        try:
            reconcile(engine, self._registry)
            Drafts(self._settings.state_dir).sweep()
        except ClocheError:
            engine.close()
            raise
        return engine

    async def sweep(self) -> None:
        """Remove what has ended by itself, and what killed managers left.

        Raises:
            BackendUnavailable: no engine answers.
        """
        await run_sync(reconcile, await self.engine(), self._registry)

    async def is_running(self, record: Record) -> bool:
        facts = await run_sync((await self.engine()).inspect, record.container)
        return facts is not None and bool(facts["State"]["Running"])

    async def renew(self, record: Record, lifetime_s: int) -> None:
        """Let a sandbox live so many seconds from now; one that lived until it is destroyed has an end from now on.

        Raises:
            ProviderUnavailable, ProviderTimeout: its agent does not answer.
        """
        link = AgentLink(record.agent_port or 0, record.token, timeout_s=RENEW_S)
        try:
            await link.renew(lifetime_s)
        finally:
            await link.aclose()
        await run_sync(self._registry.note_end, record.id, lifetime_s, time.time() + lifetime_s)

    @property
    def settings(self) -> ManagerSettings:
        return self._settings

    async def catch_up(self) -> None:
        """Bring records and engine together, if there is an engine."""
        try:
            await self.engine()
        except ClocheError as exc:
            logger.info("no engine yet", extra={"error": exc.code})

    async def images(self) -> list[str]:
        return await run_sync((await self.engine()).images)

    async def directories(self, path: str | None) -> Listing:
        return await run_sync(list_directories, path, self._settings)

    async def create(
        self, image: str, workspace_root: str, count: int, report: Report, wanted: Wanted | None = None
    ) -> list[Record]:
        creation = Creation(await self.engine(), self._registry, self._settings, wanted)
        return await creation.run(image, workspace_root, count, report)

    async def destroy(self, sandbox_id: str) -> Record:
        await run_sync(self._registry.get, sandbox_id)
        return await destroy(await self.engine(), self._registry, sandbox_id)

    async def squash(self, sandbox_id: str) -> SquashResponse:
        """Make one layer of each run of layers that no session parts.

        Raises:
            SandboxStateConflict: the sandbox is not ready.
            ClocheError: its agent refuses, or does not answer.
        """
        record = await self._ready(sandbox_id)
        link = AgentLink(record.agent_port or 0, record.token)
        try:
            return await AgentClient(link).layers_squash(SquashRequest())
        except ValidationError as exc:
            raise ProviderFailed from exc
        finally:
            await link.aclose()

    async def export(self, sandbox_id: str, order: Order, report: Report) -> Exported:
        record = await self._ready(sandbox_id)
        return await export(record, order, self._settings, self._environ, report)

    async def changes(self, sandbox_id: str) -> ChangeList:
        """What an export would write now; nothing is written."""
        return await list_changes(await self._ready(sandbox_id), self._settings)

    async def _ready(self, sandbox_id: str) -> Record:
        record = await run_sync(self._registry.get, sandbox_id)
        if record.state != "ready" or record.agent_port is None:
            raise SandboxStateConflict(state=record.state)
        return record

    async def records(self) -> list[Record]:
        """Every record. Neither engine nor sandbox is asked: what is stored is what is shown."""
        return await run_sync(self._registry.all)

    async def record(self, sandbox_id: str) -> Record:
        return await run_sync(self._registry.get, sandbox_id)
