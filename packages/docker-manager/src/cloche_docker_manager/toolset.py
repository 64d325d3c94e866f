"""The management tools, over a manager. One handler per tool; the contract has checked the arguments.

Entry point `cloche.toolsets`, name `management`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import anyio

from cloche_contract.common import ManagedEndpoint, ManagedSandbox, SharedBase, WorkspaceDirectory
from cloche_contract.kernel.toolset import ToolCall, ToolSession, ToolSetOptions
from cloche_contract.management import (
    CreateSandboxInput,
    CreateSandboxOutput,
    DestroySandboxInput,
    DestroySandboxOutput,
    ExportChangesInput,
    ExportChangesOutput,
    InspectSandboxInput,
    InspectSandboxOutput,
    ListDockerImagesInput,
    ListDockerImagesOutput,
    ListSandboxesInput,
    ListSandboxesOutput,
    ListWorkspaceDirectoriesInput,
    ListWorkspaceDirectoriesOutput,
    ManagementTools,
    SquashLayerstacksInput,
    SquashLayerstacksOutput,
)

from .container import LOOPBACK
from .export import Order
from .manager import Manager
from .registry import Record

LEFT_OUT_SHOWN = 1000
__all__ = ["ManagementToolSet", "open_toolset"]


def open_toolset(options: ToolSetOptions) -> AbstractAsyncContextManager[ToolSession]:
    """Open one session of the management tools. Blocks for a few file operations.

    Raises:
        ConfigurationInvalid: a setting is wrong.
        BackendUnavailable: the state directory cannot be used.
    """
    return _opened(Manager(options.environ or dict(os.environ)))


@asynccontextmanager
async def _opened(manager: Manager) -> AsyncGenerator[ManagementToolSet]:
    tools = ManagementToolSet(manager)
    try:
        yield tools
    finally:
        with anyio.CancelScope(shield=True):
            await manager.aclose()


class ManagementToolSet:
    """One client's management tools: a method per tool. Sandboxes are the user's, not the session's."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    @property
    def handlers(self) -> ManagementTools:
        return self

    async def list_docker_images(self, request: ListDockerImagesInput, call: ToolCall) -> ListDockerImagesOutput:
        return ListDockerImagesOutput(images=await self._manager.images())

    async def list_workspace_directories(
        self, request: ListWorkspaceDirectoriesInput, call: ToolCall
    ) -> ListWorkspaceDirectoriesOutput:
        path = request.path if isinstance(request.path, str) else None
        found = await self._manager.directories(path)
        directories = [WorkspaceDirectory(name=one.name, path=one.path) for one in found.directories]
        return ListWorkspaceDirectoriesOutput(
            path=found.path, parent=found.parent, truncated=found.truncated, directories=directories
        )

    async def create_sandbox(self, request: CreateSandboxInput, call: ToolCall) -> CreateSandboxOutput:
        made = await self._manager.create(request.image, request.workspace_root, request.count, call.report)
        if len(made) > 1:
            return CreateSandboxOutput(sandboxes=[_shown(record) for record in made])
        return CreateSandboxOutput.model_validate(vars(_shown(made[0])))

    async def list_sandboxes(self, request: ListSandboxesInput, call: ToolCall) -> ListSandboxesOutput:
        return ListSandboxesOutput(sandboxes=[_shown(record) for record in await self._manager.records()])

    async def inspect_sandbox(self, request: InspectSandboxInput, call: ToolCall) -> InspectSandboxOutput:
        record = await self._manager.record(request.sandbox_id)
        return InspectSandboxOutput.model_validate(vars(_shown(record)))

    async def destroy_sandbox(self, request: DestroySandboxInput, call: ToolCall) -> DestroySandboxOutput:
        record = await self._manager.destroy(request.sandbox_id)
        return DestroySandboxOutput.model_validate(vars(_shown(record)))

    async def squash_layerstacks(self, request: SquashLayerstacksInput, call: ToolCall) -> SquashLayerstacksOutput:
        found = await self._manager.squash(request.sandbox_id)
        return SquashLayerstacksOutput.model_validate(found.model_dump(mode="json", exclude_unset=True))

    async def export_changes(self, request: ExportChangesInput, call: ToolCall) -> ExportChangesOutput:
        order = Order(request.dest, request.format)
        told = (await self._manager.export(request.sandbox_id, order, call.report)).told(request.format)
        if "left_out" in told:
            told["left_out"] = cast("list[str]", told["left_out"])[:LEFT_OUT_SHOWN]
        return ExportChangesOutput.model_validate(told)


def _shown(record: Record) -> ManagedSandbox:
    """What a record may show: never its token."""
    base = record.base
    return ManagedSandbox(
        id=record.id,
        workspace_root=record.workspace_root,
        state=record.state,
        daemon=_endpoint(record.agent_port),
        daemon_http=_endpoint(record.interpreter_port),
        shared_base=None
        if base is None
        else SharedBase(source=base.source, target=base.target, root_hash=base.root_hash, readonly=True),
    )


def _endpoint(port: int | None) -> ManagedEndpoint | None:
    return None if port is None else ManagedEndpoint(host=LOOPBACK, port=port)
