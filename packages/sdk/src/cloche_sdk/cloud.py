"""The provider of sandbox platforms: E2B's REST API, spoken by E2B, Alibaba Cloud's agent sandbox and others.

Metadata is asked for and set by id, at the platform's own address alone: nothing here connects to
a sandbox, and only `connect` and `resume` resume one. A create whose answer is lost is looked for by the
label that it carries, and destroyed: nobody would know of it.

Source: systems facts 2.2 to 2.6; agent-protocol part 1; seed-000, "Implementation and verification".
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import NoReturn, TypeVar
from urllib.parse import quote, urlencode

import anyio
from pydantic import MISSING

from cloche_contract.common import LIMIT_RESOURCE_VALUES, Capability, LimitResource
from cloche_contract.errors import (
    ClocheError,
    SandboxNotFound,
    SandboxPaused,
    UnsupportedLimit,
    UnsupportedOperation,
)
from cloche_contract.http import HEADER_IDEMPOTENCY_KEY, Pause, PlatformClient, SandboxDetail
from cloche_contract.http import Timeout as Lifetime
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    DiffRequest,
    DiffResult,
    EmulatedAbility,
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

from ._http import PlatformHttp
from .cloud_records import CREATE_LABEL, created_record, detail_record, labels_of, new_sandbox, running_record
from .data_plane import answered
from .platform import Platform
from .presets import ALICLOUD_EXPRESS, CLOUD, E2B, Addresses, Preset

__all__ = ["CloudProvider", "open_alicloud_express", "open_cloud", "open_e2b"]

logger = logging.getLogger(__name__)

FIRST, SECOND = 1, 2  # versions of a platform's API
PAGE = 100
RESUMED_FOR_S = 300
LOOK_FOR_LOST_S = (0.0, 0.25, 0.5, 1.0)
UNDO_BOUND_S = 2.5  # a session that ends has four seconds in all
_PAUSED = frozenset({"paused", "pausing"})
_NO_SUCH_ROUTE = frozenset({404, 405})
_FILTERED_THERE = frozenset({"running", "paused"})  # states that every platform can filter by
_CAPABILITIES: tuple[Capability, ...] = (
    "lifecycle",
    "timeout",
    "exec",
    "files",
    "code",
    "metadata",
    "tasks",
    "transfers",
    "pause",
)
# What holds less where the agent of the platform is not that of this project.
_EMULATED: Mapping[Capability, Sequence[str]] = {
    "tasks": (
        "The output limit of a task counts each of its streams by itself.",
        "Secrets of the environment are replaced in its output only where the client knows them.",
        "A process that left its session and cleared its environment outlives its task.",
        "A task whose supervisor is killed has the state unknown.",
        "Its output lies in the home folder of the sandbox, where whatever runs there can change it.",
    ),
    "transfers": (
        "Every part of an upload hashes all that is there, so that many parts cost more than few.",
        "It needs a shell and sha256sum in the sandbox.",
    ),
}

_SIZES: tuple[Capability, ...] = ("limits_cpu", "limits_memory")
_ID = re.compile(r"[A-Za-z0-9_-]{1,256}")

T = TypeVar("T")
Call = Callable[[], Awaitable[T]]


class CloudProvider:
    """One account on one platform. Its clients, one for each region, share their connections."""

    def __init__(self, preset: Preset, options: ProviderOptions) -> None:
        self._preset = preset
        self._settings = options.settings
        self._clock = options.clock
        self._ids = options.ids
        self._timeout_s = float(options.settings.get("http_timeout", "30"))
        self._http = PlatformHttp(self._timeout_s)
        self._version: int | None = None
        self._without_key = preset.without_key(options.environ)

    @property
    def id(self) -> str:
        return self._preset.provider

    async def create(self, request: CreateRequest) -> SandboxRecord:
        if request.egress is not MISSING:
            raise UnsupportedOperation(capability="egress")
        if request.listen is True:
            raise UnsupportedOperation(capability="listener")
        if not self._preset.sizes and request.cpu is not MISSING:
            raise UnsupportedLimit(limit="cpu")
        if not self._preset.sizes and request.memory is not MISSING:
            raise UnsupportedLimit(limit="memory")
        client, addresses = self._at(None if request.region is MISSING else request.region)
        key = None if request.idempotency_key is MISSING else request.idempotency_key
        label = self._ids.new_id() if key is None else None
        body, headers = new_sandbox(request, label), {} if key is None else {HEADER_IDEMPOTENCY_KEY: key}
        end_at = self._from_now(request.timeout)  # before it is asked: the platform counts from no earlier
        try:
            created = await self._versioned(
                partial(client.create_sandbox, body, headers=headers),
                partial(client.create_sandbox_v1, body, headers=headers),
            )
            await anyio.lowlevel.checkpoint()  # a caller that has gone away meanwhile would never learn the id
        except BaseException as error:
            if label is not None and _perhaps_made(error):
                await self._undo(client, label)
            raise
        return created_record(created, addresses, end_at=end_at, asked=request)

    async def get(self, request: GetRequest) -> SandboxRecord:
        client, addresses = self._at()
        return detail_record(await answered(client.get_sandbox(_plain(request.sandbox_id))), addresses)

    async def list(self, request: ListRequest) -> ListResult:
        client, addresses = self._at(None if request.region is MISSING else request.region)
        found = await self._versioned(partial(self._walk, client, request), partial(self._page, client, request))
        return ListResult(sandboxes=[detail_record(detail, addresses) for detail in found])

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        client, _ = self._at()
        await client.set_timeout(_plain(request.sandbox_id), Lifetime(timeout=request.timeout))

    async def kill(self, request: KillRequest) -> None:
        client, _ = self._at()
        await client.delete_sandbox(_plain(request.sandbox_id))

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        """Return the sandbox with its agent. One that does not run is resumed, for five minutes from now."""
        client, addresses = self._at()
        sandbox_id = _plain(request.sandbox_id)
        detail = await answered(client.get_sandbox(sandbox_id))
        if detail.state == "running" and isinstance(detail.envdAccessToken, str):
            return running_record(detail, addresses)
        if not request.resume and detail_record(detail, addresses).status in _PAUSED:
            raise SandboxPaused
        return await self._resumed(client, addresses, sandbox_id, RESUMED_FOR_S)

    async def pause(self, request: PauseRequest) -> None:
        """Pause the sandbox. Where that was done already, the platform says so."""
        client, _ = self._at()
        await client.pause_sandbox(_plain(request.sandbox_id), Pause())

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        """Let the sandbox go on; what reaches its agent may be another than before."""
        client, addresses = self._at()
        return await self._resumed(client, addresses, _plain(request.sandbox_id), request.timeout)

    async def _resumed(
        self, client: PlatformClient, addresses: Addresses, sandbox_id: str, timeout_s: int
    ) -> SandboxRecord:
        lifetime, end_at = Lifetime(timeout=timeout_s), self._from_now(timeout_s)
        try:
            created = await self._versioned(
                partial(client.connect_sandbox, sandbox_id, lifetime),
                partial(client.connect_sandbox_v1, sandbox_id, lifetime),
            )
        except ClocheError as error:
            # 404 may mean the route as well as the sandbox.
            if error.details.get("http_status") not in _NO_SUCH_ROUTE:
                raise
            created = await answered(client.resume_sandbox(sandbox_id, lifetime))
        return created_record(created, addresses, end_at=end_at)

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

    async def probe(self) -> ProbeReport:
        """Ask for one page of the account's sandboxes: that takes the address, the key and the permission."""
        problem: ClocheError | None = None
        try:
            await self.list(ListRequest(limit=1))
        except ClocheError as error:
            problem = error
        check = ProbeCheck(
            id="platform",
            ok=problem is None,
            cause=None if problem is None else problem.code,
            fix=None if problem is None else problem.hint,
        )
        can: list[Capability] = list(_CAPABILITIES)
        if self._preset.region is not None and "sandbox_base_url" not in self._settings:
            can.append("region")
        if self._preset.sizes:
            can.extend(_SIZES)
        if self._version == SECOND:
            can.append("idempotent_create")
        held = {"cpu", "memory"} if self._preset.sizes else set[LimitResource]()
        by = "the platform"
        limits = [
            LimitInfo(resource=name, enforced=name in held, enforced_by=by if name in held else None)
            for name in LIMIT_RESOURCE_VALUES
        ]
        emulated = [EmulatedAbility(capability=name, limits=[*told]) for name, told in _EMULATED.items()]
        return ProbeReport(
            provider=self.id, usable=check.ok, checks=[check], capabilities=can, limits=limits, emulated=emulated
        )

    async def close(self) -> None:
        await self._http.aclose()

    def _at(self, region: str | None = None) -> tuple[PlatformClient, Addresses]:
        addresses = self._preset.addresses(self._settings, region)
        platform = Platform(
            addresses.base_url,
            self._settings.get("sandbox_api_key"),
            http=self._http,
            key_headers=self._preset.key_headers,
            timeout_s=self._timeout_s,
            without_key=self._without_key,
        )
        return PlatformClient(platform), addresses

    async def _versioned(self, second: Call[T], first: Call[T]) -> T:
        """Call the route of the API's second version, or of its first where the platform has no second."""
        missing: ClocheError | None = None
        if self._version != FIRST:
            try:
                found = await answered(second())
            except ClocheError as error:
                if self._version is not None or error.details.get("http_status") not in _NO_SUCH_ROUTE:
                    raise
                missing = error
            else:
                self._version = SECOND
                return found
        try:
            found = await answered(first())
        except ClocheError as error:
            if missing is not None and error.details.get("http_status") in _NO_SUCH_ROUTE:
                raise missing from error
            raise
        self._version = FIRST
        return found

    async def _walk(self, client: PlatformClient, request: ListRequest) -> list[SandboxDetail]:
        """The page of a list whose pages name the next one."""
        query = {"limit": str(PAGE)}
        if request.status in _FILTERED_THERE:
            query["state"] = str(request.status)
        found: list[SandboxDetail] = []
        tokens: set[str] = set()
        while True:
            page = await client.list_sandboxes(query=query)
            found += [entry for entry in page.entries if _wanted(entry, request)]
            token = page.next_token
            if len(found) >= request.offset + request.limit or token is None or token in tokens:
                return found[request.offset : request.offset + request.limit]
            tokens.add(token)
            query["nextToken"] = token

    async def _page(self, client: PlatformClient, request: ListRequest) -> list[SandboxDetail]:
        """The page of a list that takes an offset."""
        query = {"limit": str(request.limit), "offset": str(request.offset)}
        if request.status is not MISSING:
            query["status"] = request.status
        page = await client.list_sandboxes_v1(query=query)
        return [entry for entry in page.entries if _wanted(entry, request)][: request.limit]

    async def _undo(self, client: PlatformClient, label: str) -> None:
        """Destroy the sandbox of a create whose answer was lost, if there is one. Bounded; never fails."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(UNDO_BOUND_S):
            for pause_s in LOOK_FOR_LOST_S:
                await anyio.sleep(pause_s)
                try:
                    lost = await self._labelled(client, label)
                    for sandbox in lost:
                        await client.delete_sandbox(sandbox.sandboxID)
                except ClocheError as error:
                    logger.warning("a create may have left a sandbox", extra={"error": error.code})
                    return
                if lost:
                    return

    async def _labelled(self, client: PlatformClient, label: str) -> list[SandboxDetail]:
        labels = urlencode({CREATE_LABEL: label}, quote_via=quote)
        page = await self._versioned(
            partial(client.list_sandboxes, query={"metadata": labels, "limit": str(PAGE)}),
            partial(client.list_sandboxes_v1, query={"limit": str(PAGE), "offset": "0"}),
        )
        return [entry for entry in page.entries if labels_of(entry).get(CREATE_LABEL) == label]

    def _from_now(self, seconds: int) -> str:
        return (self._clock.now() + timedelta(seconds=seconds)).isoformat()


def _plain(sandbox_id: str) -> str:
    """The id as a segment of a path; what cannot be one is no id of a platform."""
    if _ID.fullmatch(sandbox_id) is None:
        raise SandboxNotFound
    return sandbox_id


def _wanted(entry: SandboxDetail, request: ListRequest) -> bool:
    return request.status is MISSING or entry.state.lower() == request.status


def _perhaps_made(error: BaseException) -> bool:
    """Whether a create that ended so may have made a sandbox: its answer was lost, or made no sense."""
    if not isinstance(error, ClocheError):
        return True  # cancelled on its way
    status = error.details.get("http_status")
    return not isinstance(status, int) or not 400 <= status < 500


def _refuse(capability: Capability) -> NoReturn:
    raise UnsupportedOperation(capability=capability)


def open_cloud(options: ProviderOptions) -> AbstractAsyncContextManager[CloudProvider]:
    """Entry point `cloud` of the group `cloche.providers`: the platform that is configured."""
    return _opened(CLOUD, options)


def open_alicloud_express(options: ProviderOptions) -> AbstractAsyncContextManager[CloudProvider]:
    """Entry point `alicloud-express`: Alibaba Cloud's agent sandbox."""
    return _opened(ALICLOUD_EXPRESS, options)


def open_e2b(options: ProviderOptions) -> AbstractAsyncContextManager[CloudProvider]:
    """Entry point `e2b`: E2B's own cloud."""
    return _opened(E2B, options)


@asynccontextmanager
async def _opened(preset: Preset, options: ProviderOptions) -> AsyncGenerator[CloudProvider, None]:
    preset.addresses(options.settings)  # a wrong address is told before anything is asked
    provider = CloudProvider(preset, options)
    try:
        yield provider
    finally:
        with anyio.CancelScope(shield=True):
            await provider.close()
