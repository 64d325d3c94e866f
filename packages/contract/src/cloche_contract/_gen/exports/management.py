"""What the management tools take and return. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.handlers.management import ManagementTools as ManagementTools
    from cloche_contract._gen.models.management.create_sandbox import CreateSandboxInput as CreateSandboxInput
    from cloche_contract._gen.models.management.create_sandbox import CreateSandboxOutput as CreateSandboxOutput
    from cloche_contract._gen.models.management.destroy_sandbox import DestroySandboxInput as DestroySandboxInput
    from cloche_contract._gen.models.management.destroy_sandbox import DestroySandboxOutput as DestroySandboxOutput
    from cloche_contract._gen.models.management.export_changes import ExportChangesInput as ExportChangesInput
    from cloche_contract._gen.models.management.export_changes import ExportChangesOutput as ExportChangesOutput
    from cloche_contract._gen.models.management.inspect_sandbox import InspectSandboxInput as InspectSandboxInput
    from cloche_contract._gen.models.management.inspect_sandbox import InspectSandboxOutput as InspectSandboxOutput
    from cloche_contract._gen.models.management.list_docker_images import ListDockerImagesInput as ListDockerImagesInput
    from cloche_contract._gen.models.management.list_docker_images import (
        ListDockerImagesOutput as ListDockerImagesOutput,
    )
    from cloche_contract._gen.models.management.list_sandboxes import ListSandboxesInput as ListSandboxesInput
    from cloche_contract._gen.models.management.list_sandboxes import ListSandboxesOutput as ListSandboxesOutput
    from cloche_contract._gen.models.management.list_workspace_directories import (
        ListWorkspaceDirectoriesInput as ListWorkspaceDirectoriesInput,
    )
    from cloche_contract._gen.models.management.list_workspace_directories import (
        ListWorkspaceDirectoriesOutput as ListWorkspaceDirectoriesOutput,
    )
    from cloche_contract._gen.models.management.squash_layerstacks import (
        SquashLayerstacksInput as SquashLayerstacksInput,
    )
    from cloche_contract._gen.models.management.squash_layerstacks import (
        SquashLayerstacksOutput as SquashLayerstacksOutput,
    )
    from cloche_contract._gen.registry import ManagementToolName as ManagementToolName

_WHERE = {
    "CreateSandboxInput": "cloche_contract._gen.models.management.create_sandbox",
    "CreateSandboxOutput": "cloche_contract._gen.models.management.create_sandbox",
    "DestroySandboxInput": "cloche_contract._gen.models.management.destroy_sandbox",
    "DestroySandboxOutput": "cloche_contract._gen.models.management.destroy_sandbox",
    "ExportChangesInput": "cloche_contract._gen.models.management.export_changes",
    "ExportChangesOutput": "cloche_contract._gen.models.management.export_changes",
    "InspectSandboxInput": "cloche_contract._gen.models.management.inspect_sandbox",
    "InspectSandboxOutput": "cloche_contract._gen.models.management.inspect_sandbox",
    "ListDockerImagesInput": "cloche_contract._gen.models.management.list_docker_images",
    "ListDockerImagesOutput": "cloche_contract._gen.models.management.list_docker_images",
    "ListSandboxesInput": "cloche_contract._gen.models.management.list_sandboxes",
    "ListSandboxesOutput": "cloche_contract._gen.models.management.list_sandboxes",
    "ListWorkspaceDirectoriesInput": "cloche_contract._gen.models.management.list_workspace_directories",
    "ListWorkspaceDirectoriesOutput": "cloche_contract._gen.models.management.list_workspace_directories",
    "ManagementToolName": "cloche_contract._gen.registry",
    "ManagementTools": "cloche_contract._gen.handlers.management",
    "SquashLayerstacksInput": "cloche_contract._gen.models.management.squash_layerstacks",
    "SquashLayerstacksOutput": "cloche_contract._gen.models.management.squash_layerstacks",
}

__all__ = [
    "CreateSandboxInput",
    "CreateSandboxOutput",
    "DestroySandboxInput",
    "DestroySandboxOutput",
    "ExportChangesInput",
    "ExportChangesOutput",
    "InspectSandboxInput",
    "InspectSandboxOutput",
    "ListDockerImagesInput",
    "ListDockerImagesOutput",
    "ListSandboxesInput",
    "ListSandboxesOutput",
    "ListWorkspaceDirectoriesInput",
    "ListWorkspaceDirectoriesOutput",
    "ManagementToolName",
    "ManagementTools",
    "SquashLayerstacksInput",
    "SquashLayerstacksOutput",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
