"""What the sandbox tools take and return. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.handlers.sandbox import SandboxTools as SandboxTools
    from cloche_contract._gen.models.sandbox.cancel_task import CancelTaskInput as CancelTaskInput
    from cloche_contract._gen.models.sandbox.cancel_task import CancelTaskOutput as CancelTaskOutput
    from cloche_contract._gen.models.sandbox.create_sandbox import CreateSandboxInput as CreateSandboxInput
    from cloche_contract._gen.models.sandbox.create_sandbox import CreateSandboxOutput as CreateSandboxOutput
    from cloche_contract._gen.models.sandbox.download_file import DownloadFileInput as DownloadFileInput
    from cloche_contract._gen.models.sandbox.download_file import DownloadFileOutput as DownloadFileOutput
    from cloche_contract._gen.models.sandbox.get_sandbox import GetSandboxInput as GetSandboxInput
    from cloche_contract._gen.models.sandbox.get_sandbox import GetSandboxOutput as GetSandboxOutput
    from cloche_contract._gen.models.sandbox.get_task import GetTaskInput as GetTaskInput
    from cloche_contract._gen.models.sandbox.get_task import GetTaskOutput as GetTaskOutput
    from cloche_contract._gen.models.sandbox.kill_sandbox import KillSandboxInput as KillSandboxInput
    from cloche_contract._gen.models.sandbox.kill_sandbox import KillSandboxOutput as KillSandboxOutput
    from cloche_contract._gen.models.sandbox.list_files import ListFilesInput as ListFilesInput
    from cloche_contract._gen.models.sandbox.list_files import ListFilesOutput as ListFilesOutput
    from cloche_contract._gen.models.sandbox.list_sandboxes import ListSandboxesInput as ListSandboxesInput
    from cloche_contract._gen.models.sandbox.list_sandboxes import ListSandboxesOutput as ListSandboxesOutput
    from cloche_contract._gen.models.sandbox.read_file import ReadFileInput as ReadFileInput
    from cloche_contract._gen.models.sandbox.read_file import ReadFileOutput as ReadFileOutput
    from cloche_contract._gen.models.sandbox.run_code import RunCodeInput as RunCodeInput
    from cloche_contract._gen.models.sandbox.run_code import RunCodeOutput as RunCodeOutput
    from cloche_contract._gen.models.sandbox.run_command import RunCommandInput as RunCommandInput
    from cloche_contract._gen.models.sandbox.run_command import RunCommandOutput as RunCommandOutput
    from cloche_contract._gen.models.sandbox.set_sandbox_timeout import SetSandboxTimeoutInput as SetSandboxTimeoutInput
    from cloche_contract._gen.models.sandbox.set_sandbox_timeout import (
        SetSandboxTimeoutOutput as SetSandboxTimeoutOutput,
    )
    from cloche_contract._gen.models.sandbox.start_task import StartTaskInput as StartTaskInput
    from cloche_contract._gen.models.sandbox.start_task import StartTaskOutput as StartTaskOutput
    from cloche_contract._gen.models.sandbox.upload_file import UploadFileInput as UploadFileInput
    from cloche_contract._gen.models.sandbox.upload_file import UploadFileOutput as UploadFileOutput
    from cloche_contract._gen.models.sandbox.write_file import WriteFileInput as WriteFileInput
    from cloche_contract._gen.models.sandbox.write_file import WriteFileOutput as WriteFileOutput
    from cloche_contract._gen.registry import SandboxToolName as SandboxToolName

_WHERE = {
    "CancelTaskInput": "cloche_contract._gen.models.sandbox.cancel_task",
    "CancelTaskOutput": "cloche_contract._gen.models.sandbox.cancel_task",
    "CreateSandboxInput": "cloche_contract._gen.models.sandbox.create_sandbox",
    "CreateSandboxOutput": "cloche_contract._gen.models.sandbox.create_sandbox",
    "DownloadFileInput": "cloche_contract._gen.models.sandbox.download_file",
    "DownloadFileOutput": "cloche_contract._gen.models.sandbox.download_file",
    "GetSandboxInput": "cloche_contract._gen.models.sandbox.get_sandbox",
    "GetSandboxOutput": "cloche_contract._gen.models.sandbox.get_sandbox",
    "GetTaskInput": "cloche_contract._gen.models.sandbox.get_task",
    "GetTaskOutput": "cloche_contract._gen.models.sandbox.get_task",
    "KillSandboxInput": "cloche_contract._gen.models.sandbox.kill_sandbox",
    "KillSandboxOutput": "cloche_contract._gen.models.sandbox.kill_sandbox",
    "ListFilesInput": "cloche_contract._gen.models.sandbox.list_files",
    "ListFilesOutput": "cloche_contract._gen.models.sandbox.list_files",
    "ListSandboxesInput": "cloche_contract._gen.models.sandbox.list_sandboxes",
    "ListSandboxesOutput": "cloche_contract._gen.models.sandbox.list_sandboxes",
    "ReadFileInput": "cloche_contract._gen.models.sandbox.read_file",
    "ReadFileOutput": "cloche_contract._gen.models.sandbox.read_file",
    "RunCodeInput": "cloche_contract._gen.models.sandbox.run_code",
    "RunCodeOutput": "cloche_contract._gen.models.sandbox.run_code",
    "RunCommandInput": "cloche_contract._gen.models.sandbox.run_command",
    "RunCommandOutput": "cloche_contract._gen.models.sandbox.run_command",
    "SandboxToolName": "cloche_contract._gen.registry",
    "SandboxTools": "cloche_contract._gen.handlers.sandbox",
    "SetSandboxTimeoutInput": "cloche_contract._gen.models.sandbox.set_sandbox_timeout",
    "SetSandboxTimeoutOutput": "cloche_contract._gen.models.sandbox.set_sandbox_timeout",
    "StartTaskInput": "cloche_contract._gen.models.sandbox.start_task",
    "StartTaskOutput": "cloche_contract._gen.models.sandbox.start_task",
    "UploadFileInput": "cloche_contract._gen.models.sandbox.upload_file",
    "UploadFileOutput": "cloche_contract._gen.models.sandbox.upload_file",
    "WriteFileInput": "cloche_contract._gen.models.sandbox.write_file",
    "WriteFileOutput": "cloche_contract._gen.models.sandbox.write_file",
}

__all__ = [
    "CancelTaskInput",
    "CancelTaskOutput",
    "CreateSandboxInput",
    "CreateSandboxOutput",
    "DownloadFileInput",
    "DownloadFileOutput",
    "GetSandboxInput",
    "GetSandboxOutput",
    "GetTaskInput",
    "GetTaskOutput",
    "KillSandboxInput",
    "KillSandboxOutput",
    "ListFilesInput",
    "ListFilesOutput",
    "ListSandboxesInput",
    "ListSandboxesOutput",
    "ReadFileInput",
    "ReadFileOutput",
    "RunCodeInput",
    "RunCodeOutput",
    "RunCommandInput",
    "RunCommandOutput",
    "SandboxToolName",
    "SandboxTools",
    "SetSandboxTimeoutInput",
    "SetSandboxTimeoutOutput",
    "StartTaskInput",
    "StartTaskOutput",
    "UploadFileInput",
    "UploadFileOutput",
    "WriteFileInput",
    "WriteFileOutput",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
