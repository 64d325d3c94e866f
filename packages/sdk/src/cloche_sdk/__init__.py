"""Sandboxes for AI agents: run commands and code in isolated machines, and work on their files.

```python
from cloche_sdk import Sandbox

with Sandbox.create() as sandbox:
    print(sandbox.run_code("print(6 * 7)").stdout)
```

Names are imported when they are first used, so that importing the package costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._gen.sync import CommandHandle, Commands, Contexts, Files, Pty, Sandbox, Tasks, Terminal, Transfers, Watch
    from .commands import AsyncCommandHandle, AsyncCommands
    from .config import Settings, load_settings
    from .contexts import AsyncContexts
    from .endings import CommandInterrupted, CommandTimeout
    from .endpoint import Endpoint
    from .files import AsyncFiles
    from .metrics import Metrics
    from .providers import Doors, ProviderPool
    from .results import (
        CodeContext,
        CodeError,
        CodeResult,
        CommandResult,
        Denial,
        Execution,
        FileChange,
        FileEntry,
        FileListing,
        OutputFile,
        ProcessInfo,
        WriteResult,
    )
    from .sandbox import AsyncSandbox
    from .session import SandboxSession
    from .task_text import TaskText
    from .tasks import AsyncTasks, TaskInfo, TaskReport
    from .terminals import AsyncPty, AsyncTerminal
    from .transfers import AsyncTransfers, FilePart, UploadedPart
    from .unpublished import Unpublished
    from .watching import AsyncWatch

__all__ = [
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncContexts",
    "AsyncFiles",
    "AsyncPty",
    "AsyncSandbox",
    "AsyncTasks",
    "AsyncTerminal",
    "AsyncTransfers",
    "AsyncWatch",
    "CodeContext",
    "CodeError",
    "CodeResult",
    "CommandHandle",
    "CommandInterrupted",
    "CommandResult",
    "CommandTimeout",
    "Commands",
    "Contexts",
    "Denial",
    "Doors",
    "Endpoint",
    "Execution",
    "FileChange",
    "FileEntry",
    "FileListing",
    "FilePart",
    "Files",
    "Metrics",
    "OutputFile",
    "ProcessInfo",
    "ProviderPool",
    "Pty",
    "Sandbox",
    "SandboxSession",
    "Settings",
    "TaskInfo",
    "TaskReport",
    "TaskText",
    "Tasks",
    "Terminal",
    "Transfers",
    "Unpublished",
    "UploadedPart",
    "Watch",
    "WriteResult",
    "load_settings",
]

_MODULES = {
    "_gen.sync": (
        "CommandHandle",
        "Commands",
        "Contexts",
        "Files",
        "Pty",
        "Sandbox",
        "Tasks",
        "Terminal",
        "Transfers",
        "Watch",
    ),
    "commands": ("AsyncCommandHandle", "AsyncCommands"),
    "config": ("Settings", "load_settings"),
    "contexts": ("AsyncContexts",),
    "endings": ("CommandInterrupted", "CommandTimeout"),
    "endpoint": ("Endpoint",),
    "files": ("AsyncFiles",),
    "metrics": ("Metrics",),
    "providers": ("Doors", "ProviderPool"),
    "results": (
        "CodeContext",
        "CodeError",
        "CodeResult",
        "CommandResult",
        "Denial",
        "Execution",
        "FileChange",
        "FileEntry",
        "FileListing",
        "OutputFile",
        "ProcessInfo",
        "WriteResult",
    ),
    "sandbox": ("AsyncSandbox",),
    "session": ("SandboxSession",),
    "task_text": ("TaskText",),
    "tasks": ("AsyncTasks", "TaskInfo", "TaskReport"),
    "terminals": ("AsyncPty", "AsyncTerminal"),
    "transfers": ("AsyncTransfers", "FilePart", "UploadedPart"),
    "unpublished": ("Unpublished",),
    "watching": ("AsyncWatch",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
