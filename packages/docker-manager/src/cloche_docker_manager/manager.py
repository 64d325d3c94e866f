"""The manager of one process: its settings, its records, and one engine that is found when it is first needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
from anyio.to_thread import run_sync

from cloche_contract.errors import ClocheError

from .create import Creation, Report
from .destroy import destroy
from .engine import Engine, find_engine
from .picker import Listing, list_directories
from .reconcile import reconcile
from .registry import Record, Registry
from .settings import read_settings

logger = logging.getLogger(__name__)


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
        """Let go of the engine. Sandboxes live on: they are removed by destroy alone."""
        if self._engine is not None:
            await run_sync(self._engine.close)
            self._engine = None

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
        except ClocheError:
            engine.close()
            raise
        return engine

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

    async def create(self, image: str, workspace_root: str, count: int, report: Report) -> list[Record]:
        creation = Creation(await self.engine(), self._registry, self._settings)
        return await creation.run(image, workspace_root, count, report)

    async def destroy(self, sandbox_id: str) -> Record:
        await run_sync(self._registry.get, sandbox_id)
        return await destroy(await self.engine(), self._registry, sandbox_id)

    async def records(self) -> list[Record]:
        """Every record. Neither engine nor sandbox is asked: what is stored is what is shown."""
        return await run_sync(self._registry.all)

    async def record(self, sandbox_id: str) -> Record:
        return await run_sync(self._registry.get, sandbox_id)
