"""Where the models of each tool are, so that they are imported at its first call. Generated; do not edit."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from cloche_contract.kernel.registry import Entry

CONTRACT_VERSION: Final = "0.1.0"
ManagementToolName: TypeAlias = Literal[
    "list_docker_images",
    "list_workspace_directories",
    "create_sandbox",
    "list_sandboxes",
    "inspect_sandbox",
    "destroy_sandbox",
    "squash_layerstacks",
    "export_changes",
]
SandboxToolName: TypeAlias = Literal[
    "create_sandbox",
    "list_sandboxes",
    "get_sandbox",
    "set_sandbox_timeout",
    "run_code",
    "run_command",
    "read_file",
    "write_file",
    "list_files",
    "kill_sandbox",
    "start_task",
    "get_task",
    "cancel_task",
    "upload_file",
    "download_file",
]

DISPATCH: Final[Mapping[str, Mapping[str, Entry]]] = {
    "management": {
        "list_docker_images": Entry(
            "cloche_contract._gen.models.management.list_docker_images",
            "ListDockerImagesInput",
            "ListDockerImagesOutput",
        ),
        "list_workspace_directories": Entry(
            "cloche_contract._gen.models.management.list_workspace_directories",
            "ListWorkspaceDirectoriesInput",
            "ListWorkspaceDirectoriesOutput",
        ),
        "create_sandbox": Entry(
            "cloche_contract._gen.models.management.create_sandbox", "CreateSandboxInput", "CreateSandboxOutput"
        ),
        "list_sandboxes": Entry(
            "cloche_contract._gen.models.management.list_sandboxes", "ListSandboxesInput", "ListSandboxesOutput"
        ),
        "inspect_sandbox": Entry(
            "cloche_contract._gen.models.management.inspect_sandbox", "InspectSandboxInput", "InspectSandboxOutput"
        ),
        "destroy_sandbox": Entry(
            "cloche_contract._gen.models.management.destroy_sandbox", "DestroySandboxInput", "DestroySandboxOutput"
        ),
        "squash_layerstacks": Entry(
            "cloche_contract._gen.models.management.squash_layerstacks",
            "SquashLayerstacksInput",
            "SquashLayerstacksOutput",
        ),
        "export_changes": Entry(
            "cloche_contract._gen.models.management.export_changes", "ExportChangesInput", "ExportChangesOutput"
        ),
    },
    "sandbox": {
        "create_sandbox": Entry(
            "cloche_contract._gen.models.sandbox.create_sandbox", "CreateSandboxInput", "CreateSandboxOutput"
        ),
        "list_sandboxes": Entry(
            "cloche_contract._gen.models.sandbox.list_sandboxes", "ListSandboxesInput", "ListSandboxesOutput"
        ),
        "get_sandbox": Entry("cloche_contract._gen.models.sandbox.get_sandbox", "GetSandboxInput", "GetSandboxOutput"),
        "set_sandbox_timeout": Entry(
            "cloche_contract._gen.models.sandbox.set_sandbox_timeout",
            "SetSandboxTimeoutInput",
            "SetSandboxTimeoutOutput",
        ),
        "run_code": Entry("cloche_contract._gen.models.sandbox.run_code", "RunCodeInput", "RunCodeOutput"),
        "run_command": Entry("cloche_contract._gen.models.sandbox.run_command", "RunCommandInput", "RunCommandOutput"),
        "read_file": Entry("cloche_contract._gen.models.sandbox.read_file", "ReadFileInput", "ReadFileOutput"),
        "write_file": Entry("cloche_contract._gen.models.sandbox.write_file", "WriteFileInput", "WriteFileOutput"),
        "list_files": Entry("cloche_contract._gen.models.sandbox.list_files", "ListFilesInput", "ListFilesOutput"),
        "kill_sandbox": Entry(
            "cloche_contract._gen.models.sandbox.kill_sandbox", "KillSandboxInput", "KillSandboxOutput"
        ),
        "start_task": Entry("cloche_contract._gen.models.sandbox.start_task", "StartTaskInput", "StartTaskOutput"),
        "get_task": Entry("cloche_contract._gen.models.sandbox.get_task", "GetTaskInput", "GetTaskOutput"),
        "cancel_task": Entry("cloche_contract._gen.models.sandbox.cancel_task", "CancelTaskInput", "CancelTaskOutput"),
        "upload_file": Entry("cloche_contract._gen.models.sandbox.upload_file", "UploadFileInput", "UploadFileOutput"),
        "download_file": Entry(
            "cloche_contract._gen.models.sandbox.download_file", "DownloadFileInput", "DownloadFileOutput"
        ),
    },
}
