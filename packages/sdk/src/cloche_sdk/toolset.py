"""The sandbox tools, over a session. One handler per tool; the contract has checked the arguments.

The models of a tool are imported when it is first called: building all of them takes longer than a first call.
Entry point `cloche.toolsets`, name `sandbox`.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import MISSING

from cloche_contract import common, provider
from cloche_contract import sandbox as results
from cloche_contract.errors import FileTooLarge, InvalidArgument, NotText
from cloche_contract.kernel.toolset import CallObserver, ToolCall, ToolSession, ToolSetOptions

from .audit import audit_file
from .code import execute_code
from .config import load_settings
from .hidden import hidden_values
from .providers import Doors, ProviderPool
from .sandbox import AsyncSandbox
from .session import SandboxSession
from .shown import code_request, shown_command, shown_execution
from .shown_tasks import shown_report, start_note
from .transfers import PART_BYTES

if TYPE_CHECKING:
    from cloche_contract.sandbox import (
        CancelTaskInput,
        CancelTaskOutput,
        CreateSandboxInput,
        CreateSandboxOutput,
        DownloadFileInput,
        DownloadFileOutput,
        GetSandboxInput,
        GetSandboxOutput,
        GetTaskInput,
        GetTaskOutput,
        KillSandboxInput,
        KillSandboxOutput,
        ListFilesInput,
        ListFilesOutput,
        ListSandboxesInput,
        ListSandboxesOutput,
        ReadFileInput,
        ReadFileOutput,
        RunCodeInput,
        RunCodeOutput,
        RunCommandInput,
        RunCommandOutput,
        SandboxTools,
        SetSandboxTimeoutInput,
        SetSandboxTimeoutOutput,
        StartTaskInput,
        StartTaskOutput,
        UploadFileInput,
        UploadFileOutput,
        WriteFileInput,
        WriteFileOutput,
    )

__all__ = ["SandboxToolSet", "open_toolset"]

DEFAULT_TEMPLATE = "base"
CONTENT_LIMIT_BYTES = 4_194_304
ENTRIES_LIMIT = 1_000
PASS_ON = "Pass this sandbox_id in later calls to go on in this sandbox; each use renews its lifetime of 300 seconds."

_T = TypeVar("_T")


def open_toolset(options: ToolSetOptions) -> AbstractAsyncContextManager[ToolSession]:
    """Open one session of the sandbox tools.

    Imports what the first call needs and reads the settings, so it belongs into a worker thread.

    Raises:
        ConfigurationInvalid: a setting is wrong.
    """
    from . import _http as _http  # httpx takes long to import: do it here, not in the first call

    environ = options.environ or dict(os.environ)
    settings = load_settings(environ).override(provider=options.provider)
    doors = Doors(settings=settings, environ=environ, clock=options.clock, ids=options.ids)
    template = options.template or settings.text("default_template") or DEFAULT_TEMPLATE
    return _opened(doors, template, options)


@asynccontextmanager
async def _opened(doors: Doors, template: str, options: ToolSetOptions) -> AsyncGenerator[SandboxToolSet, None]:
    pool = None
    if options.commons is not None:
        # One zygote for all clients of a server: it takes longer to start, and more memory, than their sandboxes.
        pool = await options.commons.get("cloche_sdk.providers", partial(_pool, doors))
    session = SandboxSession(
        doors,
        template=template,
        pool=pool,
        principal=options.principal,
        leases=options.leases,
        hurried=lambda: options.commons is None or options.commons.ending,
    )
    async with session:
        session.warm_soon()
        observer = audit_file(doors, options.principal, lambda: session.default)
        yield SandboxToolSet(session, hidden_values(doors.settings, doors.environ), observer)


@asynccontextmanager
async def _pool(doors: Doors) -> AsyncGenerator[ProviderPool, None]:
    pool = ProviderPool(doors)
    try:
        yield pool
    finally:
        await pool.aclose()


class SandboxToolSet:
    """One client's sandbox tools: a method per tool."""

    def __init__(self, session: SandboxSession, hide: Sequence[str] = (), observer: CallObserver | None = None) -> None:
        self._session = session
        self.observer = observer
        self._hide = hide

    @property
    def handlers(self) -> SandboxTools:
        """What the contract dispatches to. A tool without its method here is a type error."""
        return self

    async def create_sandbox(self, request: CreateSandboxInput, call: ToolCall) -> CreateSandboxOutput:
        """Make a sandbox; it becomes the default."""
        wanted = request.model_dump(exclude={"provider"})
        wanted.setdefault("template", self._session.template)
        sandbox = await self._session.create(provider.CreateRequest.model_validate(wanted), _given(request.provider))
        return results.CreateSandboxOutput(
            sandbox_id=self._session.name(sandbox.link.reference), status=sandbox.info.status, url=sandbox.url
        )

    async def list_sandboxes(self, request: ListSandboxesInput, call: ToolCall) -> ListSandboxesOutput:
        """One page of what the account can see."""
        page = await self._session.list(
            _given(request.status),
            request.limit,
            request.offset,
            provider=_given(request.provider),
            region=_given(request.region),
        )
        return results.ListSandboxesOutput(sandboxes=list(page), limit=request.limit, offset=request.offset)

    async def get_sandbox(self, request: GetSandboxInput, call: ToolCall) -> GetSandboxOutput:
        """Current metadata."""
        info = await self._session.get(_given(request.sandbox_id))
        return results.GetSandboxOutput.model_validate(info.model_dump())

    async def set_sandbox_timeout(self, request: SetSandboxTimeoutInput, call: ToolCall) -> SetSandboxTimeoutOutput:
        """Set a lifetime from now."""
        name = await self._session.set_timeout(_given(request.sandbox_id), request.timeout)
        return results.SetSandboxTimeoutOutput(success=True, sandbox_id=name, timeout=request.timeout)

    async def kill_sandbox(self, request: KillSandboxInput, call: ToolCall) -> KillSandboxOutput:
        """Destroy a sandbox."""
        return results.KillSandboxOutput(success=True, sandbox_id=await self._session.kill(_given(request.sandbox_id)))

    async def run_code(self, request: RunCodeInput, call: ToolCall) -> RunCodeOutput:
        """Run code."""
        async with self._session.use(_given(request.sandbox_id), request.timeout) as sandbox:
            execution = await execute_code(sandbox.link, code_request(request))
        return results.RunCodeOutput(**self._with_place(shown_execution(execution, call), sandbox, request.sandbox_id))

    async def run_command(self, request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        """Run a shell command."""
        async with self._session.use(_given(request.sandbox_id), request.timeout) as sandbox:
            result = await sandbox.commands.execute(
                request.command, cwd=_given(request.cwd), timeout=request.timeout, clean=request.clean
            )
        return results.RunCommandOutput(**self._with_place(shown_command(result), sandbox, request.sandbox_id))

    async def read_file(self, request: ReadFileInput, call: ToolCall) -> ReadFileOutput:
        """Read a file as text, or as Base64."""
        async with self._session.use(_given(request.sandbox_id)) as sandbox:
            data = await sandbox.files.read_bytes(request.path, max_bytes=CONTENT_LIMIT_BYTES)
            text = _text(data, request.encoding)
        found = {"content": text, "encoding": request.encoding, "size": len(data)}
        return results.ReadFileOutput(**self._with_place(found, sandbox, request.sandbox_id))

    async def write_file(self, request: WriteFileInput, call: ToolCall) -> WriteFileOutput:
        """Create or replace a file."""
        data = _bytes(request.content, request.encoding)
        async with self._session.use(_given(request.sandbox_id)) as sandbox:
            written = await sandbox.files.write(request.path, data, mode=_given(request.mode))
        told = {"success": True, "bytes_written": written.size}
        return results.WriteFileOutput(**self._with_place(told, sandbox, request.sandbox_id))

    async def list_files(self, request: ListFilesInput, call: ToolCall) -> ListFilesOutput:
        """The entries of a directory."""
        async with self._session.use(_given(request.sandbox_id)) as sandbox:
            listing = await sandbox.files.list(request.path, limit=ENTRIES_LIMIT)
        files = [common.FileEntry(name=e.name, path=e.path, type=e.type, size=e.size) for e in listing.entries]
        found = {"files": files, "total": listing.total, "truncated": listing.truncated}
        return results.ListFilesOutput(**self._with_place(found, sandbox, request.sandbox_id))

    async def start_task(self, request: StartTaskInput, call: ToolCall) -> StartTaskOutput:
        """Start a background task."""
        async with self._session.use(_given(request.sandbox_id), make=False) as sandbox:
            info = await sandbox.tasks.start(request.command, cwd=_given(request.cwd), timeout=request.timeout)
            retained = self._session.keep_tasks_of(sandbox)
        told = results.StartTaskOutput(
            task_id=info.task_id,
            state=info.state,
            sandbox_id=self._session.name(sandbox.link.reference),
            retained_until_sandbox_ttl=retained,
        )
        note = start_note(info, request.timeout, sandbox.link.remaining_s)
        return told if note is None else told.model_copy(update={"note": note})

    async def get_task(self, request: GetTaskInput, call: ToolCall) -> GetTaskOutput:
        """Read a background task."""
        async with self._session.use(request.sandbox_id, request.wait, make=False) as sandbox:
            report = await sandbox.tasks.get(
                request.task_id,
                stdout_offset=request.stdout_offset,
                stderr_offset=request.stderr_offset,
                limit=request.limit,
                wait=request.wait,
                hide=self._hide,
                clean=request.clean,
            )
        return results.GetTaskOutput(**shown_report(report, self._session.name(sandbox.link.reference)))

    async def cancel_task(self, request: CancelTaskInput, call: ToolCall) -> CancelTaskOutput:
        """End a background task."""
        async with self._session.use(request.sandbox_id, make=False) as sandbox:
            report = await sandbox.tasks.cancel(
                request.task_id,
                stdout_offset=request.stdout_offset,
                stderr_offset=request.stderr_offset,
                limit=request.limit,
                hide=self._hide,
                clean=request.clean,
            )
        return results.CancelTaskOutput(**shown_report(report, self._session.name(sandbox.link.reference)))

    async def upload_file(self, request: UploadFileInput, call: ToolCall) -> UploadFileOutput:
        """Write a file, or a part of one, from Base64."""
        data = base64.b64decode(request.content_base64, validate=True)
        async with self._session.use(_given(request.sandbox_id)) as sandbox:
            part = await sandbox.transfers.upload(
                request.path,
                data,
                mode=_given(request.mode),
                transfer_id=_given(request.transfer_id),
                offset=request.offset,
                last=request.last,
            )
        told: dict[str, Any] = {"success": True, "bytes_written": len(data), "size": part.size, "sha256": part.sha256}
        told["complete"] = part.complete
        if not part.complete:
            told["transfer_id"] = part.transfer_id
        return results.UploadFileOutput(**self._with_place(told, sandbox, request.sandbox_id))

    async def download_file(self, request: DownloadFileInput, call: ToolCall) -> DownloadFileOutput:
        """Read a file, or a part of one, as Base64."""
        offset, length = _given(request.offset), _given(request.length)
        async with self._session.use(_given(request.sandbox_id)) as sandbox:
            if offset is None and length is None:
                part = await sandbox.transfers.download_whole(request.path)
            else:
                part = await sandbox.transfers.download(request.path, offset=offset or 0, length=length or PART_BYTES)
        found: dict[str, Any] = {
            "content_base64": base64.b64encode(part.data).decode(),
            "bytes_read": len(part.data),
            "sha256": part.sha256,
            "size": part.size,
            "offset": part.offset,
            "eof": part.eof,
        }
        return results.DownloadFileOutput(**self._with_place(found, sandbox, request.sandbox_id))

    def _with_place(self, told: dict[str, Any], sandbox: AsyncSandbox, asked: str | MISSING) -> dict[str, Any]:
        """The result, with the id to pass on where nothing but the result names it (decision D14)."""
        if not self._session.sessionless:
            return told
        told["sandbox_id"] = self._session.name(sandbox.link.reference)
        if asked is MISSING:
            told["note"] = " ".join(filter(None, [told.get("note"), PASS_ON]))
        return told


def _given(value: _T | MISSING) -> _T | None:
    return None if value is MISSING else value


def _text(data: bytes, encoding: str) -> str:
    if encoding == "base64":
        return base64.b64encode(data).decode()
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise NotText from None


def _bytes(content: str, encoding: str) -> bytes:
    """The bytes to write, known to be good before any sandbox is touched."""
    try:
        if encoding == "base64":
            data = base64.b64decode(content, validate=True)
            # Stray bits after the last byte are accepted by the decoder, and mean a damaged text.
            if base64.b64encode(data).decode() != content:
                raise InvalidArgument(field="content", rule="base64")
        else:
            data = content.encode()
    except binascii.Error:
        raise InvalidArgument(field="content", rule="base64") from None
    except UnicodeEncodeError:
        raise InvalidArgument(field="content", rule="unicode") from None
    if len(data) > CONTENT_LIMIT_BYTES:
        raise FileTooLarge(size=len(data), limit=CONTENT_LIMIT_BYTES)
    return data
