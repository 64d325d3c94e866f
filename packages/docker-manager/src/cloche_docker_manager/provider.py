"""Provider `docker`: the fifteen tools over the sandboxes of the Docker manager. Entry point `cloche.providers`.

There is one registry: a sandbox that either makes is listed, used and killed by the other. Its lifetime is its agent's
own affair; what has ended is removed by whoever looks next.

Source: issue 7, part 6; decisions D22 to D25.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NoReturn

import anyio
from pydantic import MISSING

from cloche_contract.common import Capability
from cloche_contract.errors import (
    BackendUnavailable,
    BaseUnusable,
    ClocheError,
    ConfigurationInvalid,
    DestroyFailed,
    ImageNotFound,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxLost,
    SandboxNotFound,
    SandboxStartFailed,
    SandboxStateConflict,
    TemplateNotFound,
    UnsupportedLimit,
    UnsupportedOperation,
    WorkspaceNotAllowed,
    WorkspaceNotFound,
)
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    DiffRequest,
    DiffResult,
    GetRequest,
    InspectRequest,
    InspectResult,
    KillRequest,
    ListRequest,
    ListResult,
    LogsRequest,
    LogsResult,
    NetworkRules,
    PauseRequest,
    ProbeReport,
    ProviderOptions,
    PruneRequest,
    PruneResult,
    ResumeRequest,
    SetTimeoutRequest,
    UpdateNetworkRequest,
)

from .agent_link import AgentLink
from .create import Wanted
from .description import describe
from .manager import Manager
from .probe import holds_limit, probe
from .registry import Record

logger = logging.getLogger(__name__)

PROVIDER_ID = "docker"
# Every other template is the name of an image.
CONFIGURED_TEMPLATES = ("base", "code-interpreter-v1")
_ASK_S = 3.0
_KILL_S = 60.0
_KILL_POLL_S = 0.05
_SILENT_S = 30.0

__all__ = ["PROVIDER_ID", "DockerProvider", "open_provider"]


@asynccontextmanager
async def open_provider(options: ProviderOptions) -> AsyncGenerator[DockerProvider]:
    """Open the provider. Opening never fails for what the machine lacks: `create` and `probe` say it."""
    provider = DockerProvider(options)
    try:
        yield provider
    finally:
        with anyio.CancelScope(shield=True):
            await provider.close()


class DockerProvider:
    """Implements the generated `SandboxProvider` Protocol."""

    def __init__(self, options: ProviderOptions) -> None:
        self._options = options
        self._opened: Manager | None = None

    @property
    def id(self) -> str:
        return PROVIDER_ID

    def _manager(self) -> Manager:
        if self._opened is None:
            self._opened = Manager(self._options.environ)
        return self._opened

    async def close(self) -> None:
        """Let go of the engine. Sandboxes live on."""
        manager, self._opened = self._opened, None
        if manager is not None:
            await manager.aclose()

    # -- making -----------------------------------------------------------------------------------------------------

    async def create(self, request: CreateRequest) -> SandboxRecord:
        """Make a sandbox and return it running.

        Raises:
            TemplateNotFound: the engine has no such image.
            BackendUnavailable: there is no usable engine, or no image is named.
            ConfigurationInvalid: the workspace cannot be used.
            UnsupportedLimit, UnsupportedOperation: it asks for what Docker sandboxes do not have.
        """
        manager = self._manager()
        await self._check(manager, request)
        template = request.template.strip()
        image = manager.settings.image if template in CONFIGURED_TEMPLATES else template
        if image is None:
            raise BackendUnavailable(cause="docker_image_unset")
        wanted = Wanted(
            template=template,
            lifetime_s=request.timeout,
            cores=None if request.cpu is MISSING else request.cpu,
            memory_mb=None if request.memory is MISSING else request.memory,
            envs={} if request.envs is MISSING else request.envs,
            metadata={} if request.metadata is MISSING else request.metadata,
        )
        workspace = str(manager.settings.workspace or manager.settings.empty_workspace)
        try:
            (record,) = await manager.create(image, workspace, 1, _report_nothing, wanted)
        except ImageNotFound as exc:
            raise TemplateNotFound from exc
        except (WorkspaceNotFound, WorkspaceNotAllowed, BaseUnusable) as exc:
            raise ConfigurationInvalid(setting="ABX_DOCKER_WORKSPACE") from exc
        except SandboxStartFailed as exc:
            raise ProviderFailed from exc
        return describe(record, with_agent=True)

    async def _check(self, manager: Manager, request: CreateRequest) -> None:
        """Refuse what would not hold."""
        if request.egress is not MISSING:
            raise UnsupportedOperation(capability="egress")
        if request.region is not MISSING:
            raise UnsupportedOperation(capability="region")
        if request.idempotency_key is not MISSING:
            raise UnsupportedOperation(capability="idempotent_create")
        if request.cpu is not MISSING and not await holds_limit(manager, "cpu"):
            raise UnsupportedLimit(limit="cpu")
        if request.memory is not MISSING and not await holds_limit(manager, "memory"):
            raise UnsupportedLimit(limit="memory")

    # -- looking ----------------------------------------------------------------------------------------------------

    async def get(self, request: GetRequest) -> SandboxRecord:
        """Current metadata.

        Raises:
            SandboxNotFound: there is none, or its time is over.
        """
        return (await self._look(await self._manager().record(request.sandbox_id)))[0]

    async def list(self, request: ListRequest) -> ListResult:
        """The sandboxes of this user, newest first, whoever made them; what has ended is removed on the way."""
        manager = self._manager()
        if request.region is not MISSING:
            return ListResult(sandboxes=[])
        await manager.sweep()
        records = sorted(await manager.records(), key=lambda record: record.started_at, reverse=True)
        found: dict[str, SandboxRecord] = {}

        async def look(record: Record) -> None:
            try:
                found[record.id] = (await self._look(record))[0]
            except SandboxNotFound:
                return

        async with anyio.create_task_group() as tasks:
            for record in records:
                tasks.start_soon(look, record)
        shown = [found[record.id] for record in records if record.id in found]
        if request.status is not MISSING:
            shown = [record for record in shown if record.status == request.status]
        return ListResult(sandboxes=shown[request.offset : request.offset + request.limit])

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        """The sandbox with its agent endpoint.

        Raises:
            SandboxNotFound: there is none, or its time is over.
            SandboxLost: it has lost its container.
        """
        record = await self._manager().record(request.sandbox_id)
        shown, answers = await self._look(record)
        if shown.status == "running" and answers:
            return describe(record, with_agent=True, end_at=shown.end_at)
        raise SandboxLost if shown.status == "error" else ProviderUnavailable

    async def _look(self, record: Record) -> tuple[SandboxRecord, bool]:
        """Describe a sandbox as it is now, and say whether its agent answers.

        Raises:
            SandboxNotFound: it is over.
        """
        if record.state != "ready":
            return describe(record), False
        link = AgentLink(record.agent_port or 0, record.token, timeout_s=_ASK_S)
        try:
            return describe(record, end_at=await link.deadline()), True
        except ClocheError as silent:
            logger.info("an agent is silent", extra={"sandbox": record.id, "error": silent.code})
        finally:
            with anyio.CancelScope(shield=True):
                await link.aclose()
        manager = self._manager()
        overdue = record.end_at is not None and self._options.clock.now().timestamp() > record.end_at + _SILENT_S
        if overdue and await manager.is_running(record):
            # Its own timer should have ended it.
            await self._destroy(record.id)
            raise SandboxNotFound
        await manager.sweep()
        return describe(await manager.record(record.id)), False

    async def probe(self) -> ProbeReport:
        """Try what the engine allows; never raises for what it lacks."""
        return await probe(PROVIDER_ID, self._options.environ)

    # -- ending -----------------------------------------------------------------------------------------------------

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        """Let the sandbox live `timeout` seconds from now.

        Raises:
            SandboxNotFound: there is none, or its time is over.
            ProviderUnavailable, ProviderTimeout: its agent does not answer; nothing changed.
        """
        record = await self._manager().record(request.sandbox_id)
        if record.state != "ready":
            raise ProviderUnavailable
        try:
            await self._manager().renew(record, request.timeout)
        except ProviderUnavailable:
            await self._look(record)
            raise

    async def kill(self, request: KillRequest) -> None:
        """Destroy the sandbox; returns when nothing of it is left.

        Raises:
            SandboxNotFound: there is none.
        """
        await self._manager().record(request.sandbox_id)
        with anyio.CancelScope(shield=True):
            await self._destroy(request.sandbox_id)

    async def _destroy(self, sandbox_id: str) -> None:
        with anyio.move_on_after(_KILL_S):
            while True:
                try:
                    await self._manager().destroy(sandbox_id)
                except SandboxStateConflict:
                    # Somebody else makes or destroys it just now.
                    await anyio.sleep(_KILL_POLL_S)
                except DestroyFailed as exc:
                    raise ProviderFailed from exc
                else:
                    return
        raise ProviderTimeout

    # -- what Docker sandboxes do not have --------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> None:
        _refuse("pause")

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        _refuse("pause")

    async def inspect(self, request: InspectRequest) -> InspectResult:
        _refuse("inspect")

    async def diff(self, request: DiffRequest) -> DiffResult:
        _refuse("diff")

    async def logs(self, request: LogsRequest) -> LogsResult:
        _refuse("logs")

    async def prune(self, request: PruneRequest) -> PruneResult:
        _refuse("prune")

    async def update_network(self, request: UpdateNetworkRequest) -> NetworkRules:
        _refuse("egress")


def _refuse(capability: Capability) -> NoReturn:
    raise UnsupportedOperation(capability=capability)


async def _report_nothing(_progress: float, _message: str) -> None:
    return
