"""What SDK calls give back: plain, frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from .output import CapturedText
from .unpublished import Unpublished

__all__ = [
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
]

_EMPTY = CapturedText("", "", 0, 0)


@dataclass(frozen=True)
class Denial:
    """A destination that the network allowlist of the sandbox does not hold.

    `rule` would allow it; None where the name is listed and its address is a private one.
    """

    target: str
    rule: str | None = None


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it wrote.

    `exit_code` is the status of the process, 128 plus the signal when a signal ended it.
    `stop_reason` says why it ended: `exit`, or the limit, timeout or loss that ended it.
    `denied` lists what the network allowlist denied to the sandbox while this ran.
    `skipped_bytes` counts output that was no longer kept when the call came back for it.
    `unpublished` tells of changes of a workspace in layers that nobody else sees; None where everybody does.
    """

    exit_code: int
    stop_reason: str = "exit"
    stdout_captured: CapturedText = field(default=_EMPTY, repr=False)
    stderr_captured: CapturedText = field(default=_EMPTY, repr=False)
    denied: tuple[Denial, ...] = ()
    skipped_bytes: int = 0
    unpublished: Unpublished | None = None

    @property
    def stdout(self) -> str:
        return self.stdout_captured.text

    @property
    def stderr(self) -> str:
        return self.stderr_captured.text

    @property
    def timed_out(self) -> bool:
        return self.stop_reason == "timeout"

    @property
    def truncated(self) -> bool:
        """Whether output was left out of `stdout` or `stderr`."""
        cut = self.stdout_captured.truncated or self.stderr_captured.truncated
        return bool(self.skipped_bytes) or cut or self.stop_reason == "output_limit"

    @property
    def replaced(self) -> bool:
        """Whether bytes that are not UTF-8 were replaced by U+FFFD."""
        return self.stdout_captured.replaced or self.stderr_captured.replaced


@dataclass(frozen=True)
class CodeContext:
    """An interpreter; its variables are its own."""

    id: str
    language: str
    cwd: str


@dataclass(frozen=True)
class OutputFile:
    """A file that code left behind in its working directory."""

    name: str
    path: str
    size: int


@dataclass(frozen=True)
class CodeError:
    """The exception that ended the code, as the language reports it."""

    name: str
    value: str
    traceback: str


@dataclass(frozen=True)
class CodeResult:
    """One display of the code: the same thing in one or more media types.

    `formats` maps names such as `text`, `html`, `png` or `json` to their data; binary
    formats are Base64 text.
    """

    formats: Mapping[str, str]
    is_main_result: bool = False

    @property
    def text(self) -> str | None:
        return self.formats.get("text")

    @property
    def chart(self) -> Mapping[str, Any] | None:
        """The chart as data: its type, title, axes and elements; None where it is no chart that can be told so."""
        return self._parsed("chart")

    @property
    def data(self) -> Mapping[str, Any] | None:
        """The table as data: its columns by name; None where it is no table."""
        return self._parsed("data")

    def _parsed(self, name: str) -> Mapping[str, Any] | None:
        text = self.formats.get(name)
        found: object = None if text is None else json.loads(text)
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


@dataclass(frozen=True)
class Execution(CommandResult):
    """What `run_code` gives back: the streams, the displays and the state of the interpreter.

    `state_kept` tells whether variables are there after this call; `restarted_because`, whether
    the interpreter had died between the calls, so that this one began without them.
    """

    results: tuple[CodeResult, ...] = ()
    error: CodeError | None = None
    state_kept: bool = False
    output_files: tuple[OutputFile, ...] = ()
    results_left_out: int = 0
    restarted_because: str | None = None
    text_replaced: bool = False

    @property
    def text(self) -> str | None:
        """The text of the last expression, as an interactive session would show it."""
        return next((result.text for result in self.results if result.is_main_result), None)

    @property
    def replaced(self) -> bool:
        return self.text_replaced or super().replaced


@dataclass(frozen=True)
class ProcessInfo:
    """A process that the agent started and that still runs."""

    pid: int
    command: str
    args: tuple[str, ...] = ()
    tag: str | None = None


@dataclass(frozen=True)
class FileEntry:
    """One entry of a directory; `type` is file, directory, symlink or other.

    `size` is in bytes, `mode` the permission bits, `modified` a time in RFC 3339, `target` what a symlink points
    to, `metadata` what was written with it.
    """

    name: str
    path: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int | None = None
    owner: str | None = None
    group: str | None = None
    modified: str | None = None
    target: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class FileChange:
    """One change below a watched directory.

    `name` is relative to that directory. A renamed entry is told as `rename` by its old name and as `create` by its
    new one. `overflow` has no name: changes were missed.
    """

    name: str
    type: Literal["create", "write", "remove", "rename", "chmod", "overflow"]


@dataclass(frozen=True)
class FileListing:
    """The entries of a directory, and how many there are in all."""

    entries: tuple[FileEntry, ...]
    total: int

    @property
    def truncated(self) -> bool:
        return self.total > len(self.entries)


@dataclass(frozen=True)
class WriteResult:
    """Where a file now is, and its size in bytes."""

    path: str
    size: int
