"""One method per management tool. Generated from toolsets/management.json; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cloche_contract._gen.models.management.create_sandbox import CreateSandboxInput, CreateSandboxOutput
    from cloche_contract._gen.models.management.destroy_sandbox import DestroySandboxInput, DestroySandboxOutput
    from cloche_contract._gen.models.management.export_changes import ExportChangesInput, ExportChangesOutput
    from cloche_contract._gen.models.management.inspect_sandbox import InspectSandboxInput, InspectSandboxOutput
    from cloche_contract._gen.models.management.list_docker_images import ListDockerImagesInput, ListDockerImagesOutput
    from cloche_contract._gen.models.management.list_sandboxes import ListSandboxesInput, ListSandboxesOutput
    from cloche_contract._gen.models.management.list_workspace_directories import (
        ListWorkspaceDirectoriesInput,
        ListWorkspaceDirectoriesOutput,
    )
    from cloche_contract._gen.models.management.squash_layerstacks import (
        SquashLayerstacksInput,
        SquashLayerstacksOutput,
    )
    from cloche_contract.kernel.toolset import ToolCall


class ManagementTools(Protocol):
    """Create, list and remove sandboxes in a Docker Engine that share one project."""

    async def list_docker_images(self, request: ListDockerImagesInput, call: ToolCall) -> ListDockerImagesOutput:
        """List every local Docker image reference, including untagged image ids that can create a sandbox."""
        ...

    async def list_workspace_directories(
        self, request: ListWorkspaceDirectoriesInput, call: ToolCall
    ) -> ListWorkspaceDirectoriesOutput:
        """List the roots below which a workspace may lie when path is left out, or up to 500 directories directly in a directory below one of them."""
        ...

    async def create_sandbox(self, request: CreateSandboxInput, call: ToolCall) -> CreateSandboxOutput:
        """Create a host-side record and a sandbox in the Docker Engine, start its agent and wait until it is ready."""
        ...

    async def list_sandboxes(self, request: ListSandboxesInput, call: ToolCall) -> ListSandboxesOutput:
        """List the sandbox records that the manager knows, with lifecycle state and configured endpoints."""
        ...

    async def inspect_sandbox(self, request: InspectSandboxInput, call: ToolCall) -> InspectSandboxOutput:
        """Inspect one sandbox record: lifecycle state, workspace root and configured endpoints."""
        ...

    async def destroy_sandbox(self, request: DestroySandboxInput, call: ToolCall) -> DestroySandboxOutput:
        """Stop the agent of a sandbox, remove its container and volume, then its record."""
        ...

    async def squash_layerstacks(self, request: SquashLayerstacksInput, call: ToolCall) -> SquashLayerstacksOutput:
        """Squash every squashable run of layers of a sandbox into one equivalent layer each, and move live workspace sessions onto them."""
        ...

    async def export_changes(self, request: ExportChangesInput, call: ToolCall) -> ExportChangesOutput:
        """Fold every published layer above the base into one set of changes, check it, and apply it to a directory of this machine (dir) or write it as an archive (tar, tar-zst)."""
        ...
