"""The provider interface. Generated from schemas/provider/operations.json; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cloche_contract._gen.models.lifecycle.sandbox import SandboxRecord
    from cloche_contract._gen.models.provider.operations import (
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
        PruneRequest,
        PruneResult,
        ResumeRequest,
        SetTimeoutRequest,
        UpdateNetworkRequest,
    )


class SandboxProvider(Protocol):
    """The operations that every provider implements."""

    @property
    def id(self) -> str:
        """Id of the provider."""
        ...

    async def create(self, request: CreateRequest) -> SandboxRecord:
        """Make a sandbox and return it running, with its agent endpoint.

        Raises:
            TemplateNotFound, QuotaExceeded, UnsupportedLimit, UnsupportedOperation, BackendUnavailable, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied, IdempotencyConflict, DiskFull.
        """
        ...

    async def get(self, request: GetRequest) -> SandboxRecord:
        """Return current metadata. Never connects and never resumes.

        Raises:
            SandboxNotFound, SandboxIncompatible, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def list(self, request: ListRequest) -> ListResult:
        """List the sandboxes of this account, newest first.

        Raises:
            ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied, UnsupportedOperation.
        """
        ...

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        """Let the sandbox live for so many seconds from now.

        Raises:
            SandboxNotFound, SandboxIncompatible, SandboxExpired, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def kill(self, request: KillRequest) -> None:
        """Destroy the sandbox and everything in it. Returns when it is gone.

        Raises:
            SandboxNotFound, SandboxIncompatible, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        """Return the sandbox with its agent endpoint, so that it can be used. A paused one is resumed, unless that is not wanted.

        Raises:
            SandboxNotFound, SandboxPaused, SandboxIncompatible, SandboxExpired, SandboxLost, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def pause(self, request: PauseRequest) -> None:
        """Stop the sandbox and keep everything in it, processes included, until it is resumed.

        Raises:
            SandboxNotFound, SandboxPaused, SandboxExpired, UnsupportedOperation, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        """Let a paused sandbox go on, and return it with its agent endpoint. One that runs only gets the lifetime.

        Raises:
            SandboxNotFound, SandboxExpired, QuotaExceeded, UnsupportedOperation, ProviderUnavailable, ProviderTimeout, ProviderFailed, AuthenticationFailed, PermissionDenied.
        """
        ...

    async def inspect(self, request: InspectRequest) -> InspectResult:
        """Show what the sandbox is made of: mounts, limits and by what they hold, users, namespaces.

        Raises:
            SandboxNotFound, SandboxIncompatible, UnsupportedOperation, ProviderUnavailable, ProviderFailed.
        """
        ...

    async def diff(self, request: DiffRequest) -> DiffResult:
        """Tell what was added, modified and deleted in a live sandbox, compared with its template.

        Raises:
            SandboxNotFound, SandboxIncompatible, InvalidArgument, UnsupportedOperation, ProviderUnavailable, ProviderTimeout, ProviderFailed.
        """
        ...

    async def logs(self, request: LogsRequest) -> LogsResult:
        """Tell what happened in a sandbox, also a while after its end.

        Raises:
            SandboxNotFound, SandboxIncompatible, UnsupportedOperation, ProviderUnavailable, ProviderFailed.
        """
        ...

    async def prune(self, request: PruneRequest) -> PruneResult:
        """Remove what dead sandboxes left. Never anything that is alive.

        Raises:
            UnsupportedOperation, ProviderUnavailable, ProviderFailed.
        """
        ...

    async def update_network(self, request: UpdateNetworkRequest) -> NetworkRules:
        """Change the network allowlist of a sandbox that was made with one, and return it. What it no longer lists is cut.

        Raises:
            SandboxNotFound, SandboxIncompatible, InvalidArgument, UnsupportedOperation, ProviderUnavailable, ProviderTimeout, ProviderFailed.
        """
        ...

    async def probe(self) -> ProbeReport:
        """Try what this machine or account allows. Never raises for a missing ability, it reports it.

        Raises:
            ProviderFailed.
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Sandboxes live on."""
        ...
