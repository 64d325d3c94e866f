"""`AsyncSandbox`: one sandbox, from any provider.

The synchronous `Sandbox` is generated from this module; keep public signatures simple.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType

import anyio

from cloche_contract.errors import ClocheError
from cloche_contract.lifecycle import SandboxMetadata, SandboxRecord, SandboxStatus, disclose
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    DiffResult,
    GetRequest,
    KillRequest,
    ListRequest,
    SandboxProvider,
    SetTimeoutRequest,
)

from .code import CodeRequest, run_code
from .commands import AsyncCommands
from .contexts import AsyncContexts
from .data_plane import AgentChannel
from .endpoint import Endpoint, find_endpoint
from .files import AsyncFiles
from .link import SandboxLink
from .metrics import Metrics, read_metrics
from .output import OutputCallback
from .overrides import CLOSE_BOUND_S, Overrides, close_pool, found, run_sync, with_overrides
from .providers import Doors, ProviderPool, Reference
from .requests import build, listed
from .results import CodeContext, Execution
from .tasks import AsyncTasks
from .terminals import AsyncPty
from .transfers import AsyncTransfers

__all__ = ["AsyncSandbox"]

logger = logging.getLogger(__name__)

DEFAULT_TEMPLATE = "base"


class AsyncSandbox:
    """An isolated machine: run commands and code in it, and work on its files.

    Make one with `create`, reach an existing one with `connect`. `close` lets go of it and
    leaves it running; `kill` destroys it. As a context manager it destroys what `create`
    made and lets go of what `connect` reached.
    """

    def __init__(self, link: SandboxLink, pool: ProviderPool, *, owns_pool: bool, made_here: bool) -> None:
        self._link = link
        self._pool = pool
        self._owns_pool = owns_pool
        self._made_here = made_here
        self.commands = AsyncCommands(link)
        self.contexts = AsyncContexts(link)
        self.files = AsyncFiles(link)
        self.tasks = AsyncTasks(link)
        self.pty = AsyncPty(link)
        self.transfers = AsyncTransfers(link)

    @classmethod
    async def create(
        cls,
        template: str | None = None,
        *,
        timeout: int = 300,
        envs: Mapping[str, str] | None = None,
        region: str | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        egress: Sequence[str] | None = None,
        listen: bool = False,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> AsyncSandbox:
        """Make a sandbox.

        Args:
            template: what it starts with; ABX_DEFAULT_TEMPLATE or `base` when left out.
            timeout: its lifetime from now, 1 to 86400 seconds.
            envs: environment variables of everything that runs in it.
            region, cpu, memory: left out, the provider decides; memory is in MB.
            egress: what it may reach: hosts, `*.` hosts, addresses and networks, each with `:port` or for ports
                80 and 443. Empty: nothing, until `update_network`. Left out: what ABX_LOCAL_EGRESS lists.
            listen: answer on a TCP port of this machine's loopback address too, for clients of E2B; see `endpoint`.
            metadata: labels that the provider keeps.
            idempotency_key: the same key with the same arguments gives the same sandbox.
            provider, api_key, base_url: instead of what is configured.
            sandbox_domain: accepted for compatibility, not used.

        Raises:
            TemplateNotFound, QuotaExceeded, UnsupportedLimit, BackendUnavailable: none was made.
            ProviderUnavailable, ProviderTimeout, ProviderFailed: the platform failed.

        Source: seed-001, create_sandbox; decisions D20, D22, D23.
        """
        chosen = (doors or Doors()).override(sandbox_api_key=api_key, sandbox_base_url=base_url)
        request = build(
            CreateRequest,
            template=template or chosen.settings.text("default_template") or DEFAULT_TEMPLATE,
            timeout=timeout,
            envs=envs,
            region=region,
            cpu=cpu,
            memory=memory,
            egress=None if egress is None else listed("egress", egress),
            listen=listen or None,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
        pool = ProviderPool(chosen)
        try:
            return await cls.create_in(pool, request, provider, owns_pool=True)
        except BaseException:
            await close_pool(pool)
            raise

    @classmethod
    async def create_in(
        cls, pool: ProviderPool, request: CreateRequest, provider: str | None = None, *, owns_pool: bool = False
    ) -> AsyncSandbox:
        """Make a sandbox with providers that are already open."""
        name = pool.doors.provider(provider)
        opened = await pool.get(name)
        record = await opened.create(request)
        return cls._of(pool, Reference(name, record.sandbox_id), opened, record, owns_pool=owns_pool, made_here=True)

    @classmethod
    async def connect(
        cls,
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> AsyncSandbox:
        """Reach a sandbox by its id, plain or as `provider:id`; a paused one is resumed.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
        """
        pool = ProviderPool(with_overrides(doors, region, api_key, base_url))
        try:
            return await cls.connect_in(pool, pool.doors.reference(sandbox_id, provider), owns_pool=True)
        except BaseException:
            await close_pool(pool)
            raise

    @classmethod
    async def connect_in(
        cls, pool: ProviderPool, reference: Reference, *, owns_pool: bool = False, resume: bool = True
    ) -> AsyncSandbox:
        """Reach a sandbox with providers that are already open."""
        opened = await pool.get(reference.provider)
        record = await opened.connect(build(ConnectRequest, sandbox_id=reference.sandbox_id, resume=resume))
        return cls._of(pool, reference, opened, record, owns_pool=owns_pool, made_here=False)

    @classmethod
    def _of(
        cls,
        pool: ProviderPool,
        reference: Reference,
        provider: SandboxProvider,
        record: SandboxRecord,
        *,
        owns_pool: bool,
        made_here: bool,
    ) -> AsyncSandbox:
        link = SandboxLink(reference, provider, record, pool.doors)
        return cls(link, pool, owns_pool=owns_pool, made_here=made_here)

    @staticmethod
    async def list(
        status: SandboxStatus | None = None,
        limit: int = 100,
        offset: int = 0,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> tuple[SandboxMetadata, ...]:
        """One page of the sandboxes that this account can see, newest first.

        Source: seed-000, "Discover and inspect".
        """
        pool = ProviderPool(with_overrides(doors, None, api_key, base_url))
        request = build(ListRequest, status=status, limit=limit, offset=offset, region=region)
        try:
            opened = await pool.get(pool.doors.provider(provider))
            return tuple(disclose(record) for record in (await opened.list(request)).sandboxes)
        finally:
            await close_pool(pool)

    @staticmethod
    async def get_info_by_id(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> SandboxMetadata:
        """Current metadata of a sandbox, by its id, without connecting to it or resuming it.

        Args:
            sandbox_domain: accepted for compatibility and intentionally unused: only the
                provider's own address is used, and no client of the sandbox is made.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.

        Source: seed-000, "Implementation and verification".
        """
        async with found(sandbox_id, Overrides(region, provider, api_key, base_url, doors)) as (opened, plain_id):
            return disclose(await opened.get(build(GetRequest, sandbox_id=plain_id)))

    @staticmethod
    async def set_timeout_by_id(
        sandbox_id: str,
        timeout: int,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """Let a sandbox live for `timeout` seconds from now, by its id, without connecting to it.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.

        Source: seed-000, "Create and extend".
        """
        async with found(sandbox_id, Overrides(region, provider, api_key, base_url, doors)) as (opened, plain_id):
            await opened.set_timeout(build(SetTimeoutRequest, sandbox_id=plain_id, timeout=timeout))

    @staticmethod
    async def kill_by_id(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """Destroy a sandbox by its id, without connecting to it.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
        """
        async with found(sandbox_id, Overrides(region, provider, api_key, base_url, doors)) as (opened, plain_id):
            await opened.kill(build(KillRequest, sandbox_id=plain_id))

    @staticmethod
    def get_info_by_id_sync(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> SandboxMetadata:
        """`get_info_by_id` for callers without an event loop."""
        overrides = Overrides(region, provider, api_key, base_url, doors)
        return run_sync(AsyncSandbox.get_info_by_id, overrides, sandbox_id)

    @staticmethod
    def set_timeout_by_id_sync(
        sandbox_id: str,
        timeout: int,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """`set_timeout_by_id` for callers without an event loop."""
        overrides = Overrides(region, provider, api_key, base_url, doors)
        run_sync(AsyncSandbox.set_timeout_by_id, overrides, sandbox_id, timeout)

    @staticmethod
    def kill_by_id_sync(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """`kill_by_id` for callers without an event loop."""
        overrides = Overrides(region, provider, api_key, base_url, doors)
        run_sync(AsyncSandbox.kill_by_id, overrides, sandbox_id)

    @property
    def sandbox_id(self) -> str:
        """Its id, without the provider."""
        return self._link.reference.sandbox_id

    @property
    def provider(self) -> str:
        """The id of its provider."""
        return self._link.reference.provider

    @property
    def info(self) -> SandboxMetadata:
        """Its metadata as of the last create, connect or `refresh_info`."""
        return disclose(self._link.record)

    @property
    def url(self) -> str:
        """Its address, without a token; `provider:id` where it has none."""
        return self._link.record.url or str(self._link.reference)

    async def endpoint(self) -> Endpoint:
        """Where a client of E2B's protocol reaches it: address, token and version.

        Raises:
            UnsupportedOperation: it has no address of its own; `create` with `listen` gives it one.
            SandboxLost, SandboxExpired: it is gone.
        """
        return await find_endpoint(self._link)

    @property
    def link(self) -> SandboxLink:
        """Its connection, for sessions and tools."""
        return self._link

    async def run_code(
        self,
        code: str,
        language: str | None = None,
        *,
        context: CodeContext | str | None = None,
        timeout: int = 30,
        envs: Mapping[str, str] | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> Execution:
        """Run code; Python keeps its variables from call to call.

        Args:
            language: python, javascript, typescript, shell or r; python when neither it nor a context is given.
            context: an interpreter of `contexts`, with variables of its own.
            envs: environment variables for this call alone.
            timeout: seconds until the code is interrupted, and 2 s later killed.
            clean: keep output as a terminal would show it: without colours, and of a progress bar its last state.
            output_limit: bytes that it may print in all before it is interrupted, with stop reason `output_limit`; 0 is
                no limit. Left out: ABX_OUTPUT_LIMIT (256 MiB), or none where a callback takes the output.
            on_stdout, on_stderr: called with each piece of output as it comes, uncapped.

        Raises:
            CommandTimeout: it took too long; `result` holds what there is.
            UnsupportedLanguage: the template cannot run it.
            ContextNotFound: there is no such interpreter.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        chosen = context.id if isinstance(context, CodeContext) else context
        request = CodeRequest(code, language, chosen, timeout, envs, output_limit, clean)
        return await run_code(self._link, request, on_stdout=on_stdout, on_stderr=on_stderr)

    async def get_metrics(self) -> Metrics:
        """What it uses of processor, memory and disk, now."""
        return await read_metrics(AgentChannel(self._link))

    async def set_timeout(self, timeout: int) -> None:
        """Let the sandbox live for `timeout` seconds from now."""
        await self._link.set_timeout(timeout)

    async def pause(self) -> bool:
        """Stop the sandbox and keep everything in it; False where it was paused already.

        Until `resume`, or `connect` by its id, every use of it fails with `SandboxPaused`.

        Raises:
            UnsupportedOperation: its provider cannot pause.
        """
        return await self._link.pause()

    async def resume(self, timeout: int = 300) -> None:
        """Let a paused sandbox go on, and live for `timeout` seconds from now; one that runs only gets the lifetime.

        Raises:
            UnsupportedOperation: its provider cannot pause.
        """
        await self._link.resume(timeout)

    async def update_network(self, *, allow: Sequence[str] = (), remove: Sequence[str] = ()) -> tuple[str, ...]:
        """Change what the sandbox may reach, at once; returns the rules in force.

        Connections that lose their rule are cut.

        Raises:
            InvalidArgument: a rule is malformed, or one to remove is not in force; nothing changed.
            UnsupportedOperation: it was made without a network, or its provider has no allowlists.
        """
        return await self._link.update_network(allow, remove)

    async def diff(self, limit: int = 1000, after: str | None = None) -> DiffResult:
        """What was added, modified and deleted inside, compared with the template; in the order of the paths.

        Args:
            limit: how many changes at most, 1 to 10000; the sums are of all.
            after: the `next` of the page before.

        Raises:
            UnsupportedOperation: its provider cannot tell.
        """
        return await self._link.diff(limit, after)

    async def refresh_info(self) -> SandboxMetadata:
        """Ask for current metadata; neither connects nor renews."""
        self._link.record = await self._link.refresh()
        return self.info

    async def is_running(self) -> bool:
        """Whether the sandbox answers."""
        return await self._link.is_running()

    async def kill(self) -> None:
        """Destroy the sandbox and everything in it.

        Raises:
            SandboxNotFound: it was already gone.
        """
        await self._link.kill()

    async def close(self) -> None:
        """Let go of the sandbox; it lives on until its lifetime is over."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_BOUND_S):
            await self._link.aclose()
            if self._owns_pool:
                await self._pool.aclose()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._made_here:
                with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_BOUND_S):
                    await self._link.kill_quietly()
        except ClocheError as error:
            if exc is None:
                raise
            # What the block raised matters more; the sandbox ends with its lifetime.
            logger.warning("kill failed", extra={"error": error.code})
        finally:
            await self.close()
