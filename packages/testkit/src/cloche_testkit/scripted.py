"""The scripted provider: a platform that does what a test tells it. FOR TESTS ONLY, NO ISOLATION.

Its control plane lives in memory, records every request and fails on demand. Its data plane,
where a test asks for one, is the real agent, run as an ordinary child process in a temporary
folder: **code that it is given runs directly on this host, with the rights of whoever runs
the tests**. Nothing confines it. Never hand it code that you would not run yourself.

It is never a default, and it refuses to open unless the caller says so:

- a test makes a `ScriptedPlane` and installs it with `installed_plane(plane)` (the pytest
  fixtures `scripted_plane` and `unsandboxed_plane` do), or
- a test starts another process with the environment variable CLOCHE_TESTKIT_UNSANDBOXED=1.
  There CLOCHE_TESTKIT_LOG may name a file, to which each request is appended as a line of JSON.
"""

import json
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from pydantic import MISSING, BaseModel

from cloche_contract.common import Capability, LimitResource
from cloche_contract.errors import (
    ConfigurationInvalid,
    SandboxExpired,
    SandboxNotFound,
    SandboxPaused,
    UnsupportedLimit,
    UnsupportedOperation,
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
    LimitInfo,
    ListRequest,
    ListResult,
    LogsRequest,
    LogsResult,
    NetworkRules,
    PauseRequest,
    ProbeCheck,
    ProbeReport,
    ProviderOptions,
    PruneRequest,
    PruneResult,
    ResumeRequest,
    SetTimeoutRequest,
    UpdateNetworkRequest,
)
from cloche_testkit.plane import Held, ScriptedPlane
from cloche_testkit.script import Operation, Script

ALLOW_VARIABLE: Final = "CLOCHE_TESTKIT_UNSANDBOXED"
LOG_VARIABLE: Final = "CLOCHE_TESTKIT_LOG"

_LIMIT_ABILITY: Final[Mapping[LimitResource, Capability]] = {
    "cpu": "limits_cpu",
    "memory": "limits_memory",
    "pids": "limits_pids",
    "disk": "limits_disk",
}
_ALWAYS: Final[tuple[Capability, ...]] = (
    "lifecycle",
    "timeout",
    "region",
    "metadata",
    "idempotent_create",
    "inspect",
)
_WITH_AGENT: Final[tuple[Capability, ...]] = (
    "exec",
    "files",
    "transfers",
    "tasks",
    "code",
    "code_languages",
    "pause",
)
_installed: list[ScriptedPlane] = []


class ScriptedProvider:
    """One client of a `ScriptedPlane`. Several clients of one plane see the same sandboxes."""

    id = "scripted"

    def __init__(self, plane: ScriptedPlane) -> None:
        self._plane = plane
        plane.opened += 1

    async def create(self, request: CreateRequest) -> SandboxRecord:
        plane = self._plane
        await self._arrive("create", request)
        for resource, value in _asked_limits(request).items():
            if value is not MISSING and resource not in plane.limits:
                raise UnsupportedLimit(limit=resource)
        if request.egress is not MISSING:
            raise UnsupportedOperation(capability="egress")
        if request.listen is True:
            raise UnsupportedOperation(capability="listener")
        held = await plane.add(request)
        try:
            await plane.script.answer("create")
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await plane.undo(held)
            raise
        return plane.record(held)

    async def get(self, request: GetRequest) -> SandboxRecord:
        await self._arrive("get", request)
        held = self._visible(request.sandbox_id)
        await self._plane.script.answer("get")
        return self._plane.record(held)

    async def list(self, request: ListRequest) -> ListResult:
        await self._arrive("list", request)
        records = [self._plane.record(held) for held in self._plane.newest_first()]
        if request.status is not MISSING:
            records = [record for record in records if record.status == request.status]
        if request.region is not MISSING:
            records = [record for record in records if record.region == request.region]
        await self._plane.script.answer("list")
        return ListResult(sandboxes=records[request.offset : request.offset + request.limit])

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        await self._arrive("set_timeout", request)
        self._plane.renew(request.sandbox_id, request.timeout)
        await self._plane.script.answer("set_timeout")

    async def kill(self, request: KillRequest) -> None:
        await self._arrive("kill", request)
        self._visible(request.sandbox_id)
        with anyio.CancelScope(shield=True):  # the platform goes on when its caller goes away
            await self._plane.kill(request.sandbox_id)
        await self._plane.script.answer("kill")

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        await self._arrive("connect", request)
        held = self._plane.find(request.sandbox_id)
        if held.status == "paused":  # as the platforms do: connecting resumes
            if not request.resume:
                raise SandboxPaused
            self._plane.set_status(request.sandbox_id, "running")
            held = self._plane.find(request.sandbox_id)
        record = self._plane.record(held)
        if record.agent is None:
            raise UnsupportedOperation(capability="exec")
        await self._plane.script.answer("connect")
        return record

    async def pause(self, request: PauseRequest) -> None:
        await self._arrive("pause", request)
        self._refuse_without_agent()
        if self._visible(request.sandbox_id).status == "paused":
            raise SandboxPaused
        self._plane.set_status(request.sandbox_id, "paused")
        await self._plane.script.answer("pause")

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        await self._arrive("resume", request)
        self._refuse_without_agent()
        self._visible(request.sandbox_id)
        self._plane.set_status(request.sandbox_id, "running")
        self._plane.renew(request.sandbox_id, request.timeout)
        await self._plane.script.answer("resume")
        return self._plane.record(self._plane.find(request.sandbox_id))

    async def diff(self, request: DiffRequest) -> DiffResult:
        await self._arrive("diff", request)
        self._visible(request.sandbox_id)
        raise UnsupportedOperation(capability="diff")

    async def logs(self, request: LogsRequest) -> LogsResult:
        await self._arrive("logs", request)
        self._visible(request.sandbox_id)
        raise UnsupportedOperation(capability="logs")

    async def prune(self, request: PruneRequest) -> PruneResult:
        await self._arrive("prune", request)
        raise UnsupportedOperation(capability="prune")

    async def update_network(self, request: UpdateNetworkRequest) -> NetworkRules:
        await self._arrive("update_network", request)
        self._visible(request.sandbox_id)
        raise UnsupportedOperation(capability="egress")

    async def inspect(self, request: InspectRequest) -> InspectResult:
        await self._arrive("inspect", request)
        self._visible(request.sandbox_id)
        await self._plane.script.answer("inspect")
        return InspectResult(
            sandbox_id=request.sandbox_id,
            mounts=[],
            limits=_limits(self._plane),
            users="host",
            namespaces=[],
            network="host",
            facts={"isolation": "none: for tests only"},
        )

    async def probe(self) -> ProbeReport:
        await self._plane.script.arrive("probe", {})
        return ProbeReport(
            provider=self.id,
            usable=self._plane.usable,
            checks=[
                ProbeCheck(
                    id="isolation",
                    ok=False,
                    required=not self._plane.usable,
                    cause="none",
                    fix="Use the provider local: this one is for tests and isolates nothing.",
                )
            ],
            capabilities=_capabilities(self._plane),
            limits=_limits(self._plane),
        )

    async def close(self) -> None:
        self._plane.closed += 1
        await self._plane.script.arrive("close", {})

    def _refuse_without_agent(self) -> None:
        """Where nothing runs in a sandbox, there is nothing to pause."""
        if self._plane.data_plane == "none":
            raise UnsupportedOperation(capability="pause")

    async def _arrive(self, operation: Operation, request: BaseModel) -> None:
        await anyio.lowlevel.checkpoint()  # as over a network: a call that is cancelled now never arrives
        await self._plane.script.arrive(operation, request.model_dump(mode="json"))

    def _visible(self, sandbox_id: str) -> Held:
        try:
            return self._plane.find(sandbox_id)
        except SandboxExpired as error:
            raise SandboxNotFound from error


def _capabilities(plane: ScriptedPlane) -> list[Capability]:
    with_agent = _WITH_AGENT if plane.data_plane == "unsandboxed" else ()
    return [*_ALWAYS, *with_agent, *(_LIMIT_ABILITY[name] for name in plane.limits if name in _LIMIT_ABILITY)]


def _asked_limits(request: CreateRequest) -> Mapping[LimitResource, object]:
    return {"cpu": request.cpu, "memory": request.memory}


def _limits(plane: ScriptedPlane) -> list[LimitInfo]:
    return [
        LimitInfo(
            resource=resource,
            enforced=resource in plane.limits,
            enforced_by="the script" if resource in plane.limits else None,
        )
        for resource in _LIMIT_ABILITY
    ]


@contextmanager
def installed_plane(plane: ScriptedPlane) -> Generator[ScriptedPlane]:
    """While it is open, whoever opens the provider `scripted` in this process gets this plane."""
    _installed.append(plane)
    try:
        yield plane
    finally:
        _installed.remove(plane)


@asynccontextmanager
async def open_provider(options: ProviderOptions) -> AsyncGenerator[ScriptedProvider]:
    """Entry point `scripted` of the group `cloche.providers`.

    Raises:
        ConfigurationInvalid: nobody in this process asked for a provider without isolation.
    """
    if _installed:
        async with _client(_installed[-1]) as provider:
            yield provider
        return
    if os.environ.get(ALLOW_VARIABLE) != "1":
        raise ConfigurationInvalid(setting="ABX_PROVIDER")
    async with _client(_plane_of_process(options)) as provider:
        yield provider


@asynccontextmanager
async def _client(plane: ScriptedPlane) -> AsyncGenerator[ScriptedProvider]:
    provider = ScriptedProvider(plane)
    try:
        yield provider
    finally:
        await provider.close()


class _LoggedScript(Script):
    """Appends each request to a file, for a test that watches another process."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def arrive(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        line = json.dumps({"operation": operation, "arguments": dict(arguments)})
        with self._log.open("a") as file:
            file.write(line + "\n")
        await super().arrive(operation, arguments)


_of_process: list[ScriptedPlane] = []


def _plane_of_process(options: ProviderOptions) -> ScriptedPlane:
    """The plane of a process that was started for a test; its agents end when the process does."""
    if not _of_process:
        log = os.environ.get(LOG_VARIABLE)
        script = Script() if log is None else _LoggedScript(Path(log))
        _of_process.append(ScriptedPlane(data_plane="unsandboxed", script=script, clock=options.clock))
    return _of_process[0]
