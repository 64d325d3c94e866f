"""The local provider: sandboxes out of Linux namespaces, for root and for ordinary users.

Sandboxes belong to the user of the machine, not to this process: another process of the same user lists, uses and
kills them, and they end by their own deadline when this process is gone.
"""

import logging
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import anyio
import anyio.to_thread
from pydantic import MISSING

from cloche_contract.errors import (
    BackendCause,
    BackendUnavailable,
    ConfigurationInvalid,
    IdempotencyConflict,
    ProviderTimeout,
    SandboxExpired,
    SandboxNotFound,
    TemplateNotFound,
    UnsupportedLimit,
    UnsupportedOperation,
)
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord
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
from cloche_local import agent_call, diff, idempotency, inspection, logs, network, probe, templates
from cloche_local.asked_limits import asked_limits
from cloche_local.description import address, agent_at, describe, describe_unreadable, endpoint, find, iso
from cloche_local.ending import end_sandbox
from cloche_local.launcher import Born, CreateRefused, Launcher, ZygoteGone
from cloche_local.launchers import SHARED, Launchers
from cloche_local.limits import default_limits, find_hierarchy
from cloche_local.listener import wanted_listener
from cloche_local.paths import SocketFolder, find_paths
from cloche_local.premises import Premises
from cloche_local.prune import Pruner
from cloche_local.spec import Limits, Protections, SandboxSpec, Shape
from cloche_local.state import Record, remove_left

logger = logging.getLogger(__name__)

PROVIDER_ID = "local"
_AGENT_VERSION = "1"
_AGENT_TIMEOUT_S = 5.0
# A create takes milliseconds; a machine that needs this long is not going to answer.
_CREATE_TIMEOUT_S = 30
_TRIAL_S = 30


@asynccontextmanager
async def open_provider(options: ProviderOptions) -> AsyncGenerator["LocalProvider"]:
    """Open the provider (entry point `local` of group `cloche.providers`).

    Opening never fails for what the machine lacks: `create` and `probe` say it.
    """
    provider = LocalProvider(options, launchers=SHARED)
    try:
        yield provider
    finally:
        await provider.close()


class LocalProvider:
    """Implements the generated `SandboxProvider` Protocol."""

    def __init__(
        self,
        options: ProviderOptions,
        *,
        protections: Protections | None = None,
        limits: Limits | None = None,
        host: probe.Host | None = None,
        launchers: Launchers | None = None,
    ) -> None:
        """Make a provider.

        Args:
            options: settings and doors.
            protections: for tests only, which take one out and show that an attack then works.
            limits: what a sandbox gets unless its request says otherwise; for tests.
            host: what the probe looks at; for tests.
            launchers: whom to share a zygote with; left out, it has one of its own, which ends with it.
        """
        self._default_limits = limits or default_limits()
        self._options = options
        self.protections = protections or Protections()
        self._host = host or probe.Host()
        self._paths = find_paths(options.settings, options.environ, host_root=self._host.is_root())
        self._premises = Premises(self._paths, self._host, self._default_limits, launchers or Launchers(idle_s=0))
        self._state = self._premises.state
        self._sockets = SocketFolder(self._paths.runtime)
        self._creating = anyio.Lock()

    @property
    def id(self) -> str:
        return PROVIDER_ID

    # -- making -----------------------------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Start the zygote ahead of the first `create`, where this machine can have one. Errors wait for `create`.

        Opening does not: whoever lists, reads or kills needs no process of its own for it.
        """
        with suppress(BackendUnavailable):
            (await self._premises.launcher(self.protections)).warm()

    async def create(self, request: CreateRequest) -> SandboxRecord:
        """Make a sandbox and return it running.

        Raises:
            TemplateNotFound, UnsupportedLimit, UnsupportedOperation, BackendUnavailable, IdempotencyConflict.
            InvalidArgument, ConfigurationInvalid: a rule of the network allowlist is malformed.
        """
        template = templates.find_template(request.template.strip(), self._paths.state)
        if template is None:
            raise TemplateNotFound
        if request.region is not MISSING:
            raise UnsupportedOperation
        hierarchy = find_hierarchy(self._paths.cgroup_root) if self._paths.cgroup_root else None
        wanted = asked_limits(self._default_limits, request, self._options.settings, hierarchy)
        network.wanted_rules(request, self._options.settings)
        launcher = await self._premises.launcher(self.protections)
        if request.idempotency_key is MISSING:
            return await self._create(launcher, request, template, wanted, "")
        return await self._create_once(launcher, request, template, wanted, request.idempotency_key)

    async def _create_once(
        self, launcher: Launcher, request: CreateRequest, template: templates.Template, wanted: Limits, key: str
    ) -> SandboxRecord:
        """The same key and arguments give the same sandbox, for every process of this user."""
        key_hash, mark = idempotency.marks(request, key)
        async with self._creating, idempotency.held(self._state.keys_lock):
            for record in await anyio.to_thread.run_sync(self._state.records):
                if record.idempotency.startswith(f"{key_hash}:"):
                    if record.idempotency != mark:
                        raise IdempotencyConflict
                    return self._describe(record, with_agent=True)
            return await self._create(launcher, request, template, wanted, mark)

    async def _create(
        self, launcher: Launcher, request: CreateRequest, template: templates.Template, wanted: Limits, mark: str
    ) -> SandboxRecord:
        try:
            with wanted_listener(request) as listener:
                spec = self._spec(request, template, wanted, mark)
                if listener is not None:
                    spec = replace(spec, port=listener.getsockname()[1])
                born = await self._launch(launcher, spec, listener)
        except CreateRefused as refused:
            if refused.step == "cgroup":
                raise UnsupportedLimit(limit="memory" if wanted.memory_mb is not None else "cpu") from refused
            raise BackendUnavailable(cause=probe.cause_of(self._host, refused.step, refused.errno)) from refused
        except ZygoteGone as gone:
            raise BackendUnavailable(cause="zygote_failed") from gone
        except TimeoutError as late:
            raise ProviderTimeout from late
        return SandboxRecord(
            sandbox_id=spec.sandbox_id,
            template=spec.template,
            status="running",
            region=None,
            started_at=iso(born.started_at),
            end_at=iso(born.end_at),
            cpu_count=wanted.cpus,
            memory_mb=wanted.memory_mb,
            disk_size_mb=wanted.disk_mb,
            url=address(spec.sandbox_id, spec.port),
            agent=agent_at(self._sockets, spec.runtime_folder, spec.socket_name, spec.access_token),
            user_metadata=dict(spec.metadata),
        )

    async def _launch(self, launcher: Launcher, spec: SandboxSpec, listener: socket.socket | None) -> Born:
        try:
            with anyio.fail_after(_CREATE_TIMEOUT_S):
                warm = spec.template == templates.CODE_INTERPRETER
                try:
                    return await launcher.create(spec, prefer_warm=warm, listener=listener)
                except ZygoteGone:
                    # The waiting keeper, or the zygote, died before it answered: nothing was made, a fresh one tells.
                    return await launcher.create(spec, prefer_warm=warm, listener=listener)
        except BaseException:
            # Refused or cancelled: its keeper has ended or is about to, and nobody knows the id.
            remove_left(spec.folder, f"{spec.runtime_folder}/{spec.socket_name}")
            raise

    def _spec(self, request: CreateRequest, template: templates.Template, wanted: Limits, mark: str) -> SandboxSpec:
        sandbox_id = self._options.ids.new_id()
        return SandboxSpec(
            sandbox_id=sandbox_id,
            template=template.name,
            folder=self._state.folder(sandbox_id),
            runtime_folder=self._paths.runtime,
            socket_name=sandbox_id,
            timeout_s=request.timeout,
            access_token=self._options.ids.new_id(),
            shape=Shape(self._premises.plan(template), wanted, self.protections),
            envs={
                **{name: value for name, value in template.env if name != "PATH"},
                **({} if request.envs is MISSING else request.envs),
            },
            metadata={} if request.metadata is MISSING else request.metadata,
            range_slots=self._paths.range_slots,
            cgroup_root=self._paths.cgroup_root,
            egress=network.wanted_rules(request, self._options.settings),
            idempotency=mark,
            ends_with_pid=os.getpid() if self._ends_with_server() else 0,
        )

    @property
    def outlives_server(self) -> bool:
        """Whether a sandbox lives on, until its deadline, when the process that made it is gone."""
        return not self._ends_with_server()

    def _ends_with_server(self) -> bool:
        """Whether sandboxes end when this process does (ABX_LOCAL_END_WITH).

        Raises:
            ConfigurationInvalid: the setting says something else than it may.
        """
        when = self._options.settings.get("local_end_with") or "deadline"
        if when not in ("deadline", "server"):
            raise ConfigurationInvalid(setting="ABX_LOCAL_END_WITH")
        return when == "server"

    # -- looking ----------------------------------------------------------------------------------------------------

    async def get(self, request: GetRequest) -> SandboxRecord:
        """Current metadata; touches nothing.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
        """
        return self._describe(self._find(request.sandbox_id))

    async def list(self, request: ListRequest) -> ListResult:
        """Live sandboxes of this user, newest first; what dead ones left is swept on the way."""
        if request.region is not MISSING:
            return ListResult(sandboxes=[])
        found = await anyio.to_thread.run_sync(self._sweep_and_look)
        if request.status is not MISSING:
            found = [record for record in found if record.status == request.status]
        return ListResult(sandboxes=found[request.offset : request.offset + request.limit])

    def _sweep_and_look(self) -> "_Records":
        self._premises.sweep()
        records, unreadable = self._state.look()
        others = [describe_unreadable(sandbox_id, problem) for sandbox_id, problem in unreadable.items()]
        return [*map(describe, records), *others]

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        """The sandbox with its agent endpoint.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
            SandboxExpired: its time is over.
        """
        record = self._find(request.sandbox_id)
        if record.expired:
            raise SandboxExpired
        return self._describe(record, with_agent=True)

    async def pause(self, request: PauseRequest) -> None:
        self._find(request.sandbox_id)
        raise UnsupportedOperation(capability="pause")

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        self._find(request.sandbox_id)
        raise UnsupportedOperation(capability="pause")

    async def inspect(self, request: InspectRequest) -> InspectResult:
        """Mounts, limits, users, namespaces and network of a sandbox.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
            ProviderUnavailable, ProviderTimeout: its agent does not tell its network rules.
        """
        record = self._find(request.sandbox_id)
        rules = await self._update_network(record, (), ()) if record.has_egress else None
        return inspection.inspect(record, rules)

    async def diff(self, request: DiffRequest) -> DiffResult:
        """What was added, modified and deleted inside, compared with the template.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
            InvalidArgument: `after` comes from no page.
            UnsupportedOperation: it was started by a version that cannot tell.
            ProviderUnavailable, ProviderTimeout, ProviderFailed: its agent does not answer.
        """
        record = self._find(request.sandbox_id)
        endpoint = self._endpoint(record)
        token = endpoint.access_token.get_secret_value()
        return await diff.compare(record, endpoint.socket_path or "", token, request)

    async def logs(self, request: LogsRequest) -> LogsResult:
        """What happened in a sandbox, also a while after its end.

        Raises:
            SandboxNotFound: no sandbox of this user had the id, or its log is gone.
        """
        return await logs.read(self._state, request)

    async def prune(self, request: PruneRequest) -> PruneResult:
        """Remove what dead sandboxes, broken starts and older versions left; nothing alive, nothing of others."""
        return await anyio.to_thread.run_sync(Pruner(self._state, self._paths, request).run)

    async def update_network(self, request: UpdateNetworkRequest) -> NetworkRules:
        """Change the network allowlist of a sandbox that was made with one; what it no longer lists is cut.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
            InvalidArgument: a rule is malformed; nothing changed.
            UnsupportedOperation: it was made without a network.
            ProviderUnavailable, ProviderTimeout: its agent does not answer.
        """
        allow = () if request.allow is MISSING else request.allow
        remove = () if request.remove is MISSING else request.remove
        network.check_update(allow=allow, remove=remove)
        record = self._find(request.sandbox_id)
        return NetworkRules(rules=[*await self._update_network(record, allow, remove)])

    async def _update_network(self, record: Record, allow: Sequence[str], remove: Sequence[str]) -> Sequence[str]:
        endpoint = self._endpoint(record)
        token = endpoint.access_token.get_secret_value()
        return await network.update_rules(endpoint.socket_path or "", token, allow, remove)

    async def probe(self) -> ProbeReport:
        """Try what this machine allows, by making a sandbox; never raises for what it lacks."""
        checks = await anyio.to_thread.run_sync(probe.host_checks, self._host)
        if all(check.ok for check in checks if check.required):
            checks.append(probe.check("sandbox", await self._trial()))
        hierarchy = find_hierarchy(self._paths.cgroup_root) if self._paths.cgroup_root else None
        return probe.report(PROVIDER_ID, checks, hierarchy, host_root=self._host.is_root())

    async def _trial(self) -> BackendCause | None:
        try:
            record = await self.create(CreateRequest(template=templates.BASE, timeout=_TRIAL_S))
            await self.kill(KillRequest(sandbox_id=record.sandbox_id))
        except BackendUnavailable as unavailable:
            return probe.cause_in(unavailable)
        except SandboxNotFound:
            return "zygote_failed"
        return None

    def _find(self, sandbox_id: str) -> Record:
        return find(self._state, sandbox_id)

    def _describe(self, record: Record, *, with_agent: bool = False) -> SandboxRecord:
        return describe(record, self._endpoint(record) if with_agent else None)

    def _endpoint(self, record: Record) -> AgentEndpoint:
        return endpoint(self._state, self._sockets, record)

    # -- ending -----------------------------------------------------------------------------------------------------

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        """Let the sandbox live `timeout` seconds from now.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
            SandboxExpired: its time is over.
            ProviderTimeout: its agent does not answer; nothing changed.
        """
        record = self._find(request.sandbox_id)
        if record.expired:
            raise SandboxExpired
        endpoint = self._endpoint(record)
        path = endpoint.socket_path or ""
        token = endpoint.access_token.get_secret_value()
        try:
            await agent_call.renew(path, token, request.timeout, timeout_s=_AGENT_TIMEOUT_S)
        except agent_call.AgentSilent as silent:
            self._find(request.sandbox_id)
            raise ProviderTimeout from silent

    async def kill(self, request: KillRequest) -> None:
        """Destroy the sandbox; returns when nothing of it runs. Safe to cancel and to repeat.

        Raises:
            SandboxNotFound: no live sandbox of this user has the id.
        """
        with anyio.CancelScope(shield=True):
            await end_sandbox(self._state, self._sockets, self._paths, request.sandbox_id)

    async def close(self) -> None:
        """Let go of the zygote. Sandboxes live on."""
        await self._premises.close()
        self._sockets.close()


# Inside the class `list` is one of its methods.
_Records = list[SandboxRecord]

__all__ = ["PROVIDER_ID", "LocalProvider", "open_provider"]
