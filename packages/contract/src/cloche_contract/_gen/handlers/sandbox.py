"""One method per sandbox tool. Generated from toolsets/sandbox.json; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cloche_contract._gen.models.sandbox.cancel_task import CancelTaskInput, CancelTaskOutput
    from cloche_contract._gen.models.sandbox.create_sandbox import CreateSandboxInput, CreateSandboxOutput
    from cloche_contract._gen.models.sandbox.download_file import DownloadFileInput, DownloadFileOutput
    from cloche_contract._gen.models.sandbox.get_sandbox import GetSandboxInput, GetSandboxOutput
    from cloche_contract._gen.models.sandbox.get_task import GetTaskInput, GetTaskOutput
    from cloche_contract._gen.models.sandbox.kill_sandbox import KillSandboxInput, KillSandboxOutput
    from cloche_contract._gen.models.sandbox.list_files import ListFilesInput, ListFilesOutput
    from cloche_contract._gen.models.sandbox.list_sandboxes import ListSandboxesInput, ListSandboxesOutput
    from cloche_contract._gen.models.sandbox.read_file import ReadFileInput, ReadFileOutput
    from cloche_contract._gen.models.sandbox.run_code import RunCodeInput, RunCodeOutput
    from cloche_contract._gen.models.sandbox.run_command import RunCommandInput, RunCommandOutput
    from cloche_contract._gen.models.sandbox.set_sandbox_timeout import SetSandboxTimeoutInput, SetSandboxTimeoutOutput
    from cloche_contract._gen.models.sandbox.start_task import StartTaskInput, StartTaskOutput
    from cloche_contract._gen.models.sandbox.upload_file import UploadFileInput, UploadFileOutput
    from cloche_contract._gen.models.sandbox.write_file import WriteFileInput, WriteFileOutput
    from cloche_contract.kernel.toolset import ToolCall


class SandboxTools(Protocol):
    """Create sandboxes, run code and commands in them, and work on their files."""

    async def create_sandbox(self, request: CreateSandboxInput, call: ToolCall) -> CreateSandboxOutput:
        """Create a sandbox and make it the default of this session."""
        ...

    async def list_sandboxes(self, request: ListSandboxesInput, call: ToolCall) -> ListSandboxesOutput:
        """List the sandboxes that this account can see, one page at a time."""
        ...

    async def get_sandbox(self, request: GetSandboxInput, call: ToolCall) -> GetSandboxOutput:
        """Show the current state of a sandbox: template, status, region, start, end and resources."""
        ...

    async def set_sandbox_timeout(self, request: SetSandboxTimeoutInput, call: ToolCall) -> SetSandboxTimeoutOutput:
        """Set how long a sandbox lives, counted from now: 1 to 86400 seconds."""
        ...

    async def run_code(self, request: RunCodeInput, call: ToolCall) -> RunCodeOutput:
        """Run code in the sandbox, by default Python in an interpreter that keeps its variables between calls."""
        ...

    async def run_command(self, request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
        """Run one shell command (sh -c) in the sandbox, in a fresh shell each time."""
        ...

    async def read_file(self, request: ReadFileInput, call: ToolCall) -> ReadFileOutput:
        """Read a file of the sandbox as text, at most 4 MiB."""
        ...

    async def write_file(self, request: WriteFileInput, call: ToolCall) -> WriteFileOutput:
        """Create or replace a file in the sandbox; missing directories are made."""
        ...

    async def list_files(self, request: ListFilesInput, call: ToolCall) -> ListFilesOutput:
        """List the files and directories of one directory in the sandbox, sorted by name, at most 1000 entries."""
        ...

    async def kill_sandbox(self, request: KillSandboxInput, call: ToolCall) -> KillSandboxOutput:
        """Destroy a sandbox and everything in it."""
        ...

    async def start_task(self, request: StartTaskInput, call: ToolCall) -> StartTaskOutput:
        """Start one shell command (sh -c) in the background and return at once with a task_id."""
        ...

    async def get_task(self, request: GetTaskInput, call: ToolCall) -> GetTaskOutput:
        """Read the state of a background task and a part of its output."""
        ...

    async def cancel_task(self, request: CancelTaskInput, call: ToolCall) -> CancelTaskOutput:
        """End a background task and everything that it started: SIGTERM, then SIGKILL after a second."""
        ...

    async def upload_file(self, request: UploadFileInput, call: ToolCall) -> UploadFileOutput:
        """Write a file of the sandbox from base64, at most 1 MiB (1048576 bytes) per call."""
        ...

    async def download_file(self, request: DownloadFileInput, call: ToolCall) -> DownloadFileOutput:
        """Read a file of the sandbox as base64, at most 1 MiB (1048576 bytes) per call, with its size and sha256."""
        ...
