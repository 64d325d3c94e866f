"""The synchronous SDK: the same objects, each call run on one event loop in a thread of its own.

Generated from these modules of the SDK: commands, contexts, files, sandbox, tasks, terminals, transfers, watching. Do not edit.
Callbacks run in that thread; they must not call back into these objects.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import ParamSpec, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from cloche_contract.lifecycle import SandboxMetadata, SandboxStatus
from cloche_contract.provider import DiffResult
from cloche_sdk.commands import DEFAULT_TIMEOUT_S, AsyncCommandHandle, AsyncCommands
from cloche_sdk.contexts import AsyncContexts
from cloche_sdk.endpoint import Endpoint
from cloche_sdk.files import LIST_LIMIT, READ_LIMIT_BYTES, AsyncFiles
from cloche_sdk.metrics import Metrics
from cloche_sdk.output import OutputCallback
from cloche_sdk.providers import Doors
from cloche_sdk.results import (
    CodeContext,
    CommandResult,
    Execution,
    FileChange,
    FileEntry,
    FileListing,
    ProcessInfo,
    WriteResult,
)
from cloche_sdk.sandbox import AsyncSandbox
from cloche_sdk.tasks import TASK_PAGE_BYTES, TASK_TIMEOUT_S, AsyncTasks, TaskInfo, TaskReport
from cloche_sdk.terminals import AsyncPty, AsyncTerminal, TerminalCallback
from cloche_sdk.transfers import PART_BYTES, AsyncTransfers, FilePart, UploadedPart
from cloche_sdk.watching import AsyncWatch, ChangeCallback

__all__ = (
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
)

_P = ParamSpec("_P")
_T = TypeVar("_T")
_STOP_BOUND_S = 6.0


class _Portal:
    """Starts the loop at the first call; a forked child starts one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._pid = 0

    def call(self, function: Callable[_P, Awaitable[_T]], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run to the end. An interrupt here cancels what runs there, however early it comes."""
        scopes: list[anyio.CancelScope] = []
        abandoned = threading.Event()

        async def guarded() -> _T:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                if abandoned.is_set():
                    scope.cancel()
                try:
                    return await function(*args, **kwargs)
                finally:
                    scopes.clear()
            raise CancelledError

        portal = self._running()
        try:
            return portal.start_task_soon(guarded).result()
        except BaseException:
            abandoned.set()
            for scope in list(scopes):
                portal.start_task_soon(scope.cancel)
            raise

    def _running(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None or self._pid != os.getpid():
                ready: Future[BlockingPortal] = Future()
                thread = threading.Thread(target=_serve, args=(ready,), name="cloche-sync", daemon=True)
                thread.start()
                self._portal, self._pid = ready.result(), os.getpid()
                atexit.register(_stop, self._portal, thread, self._pid)
            return self._portal


def _serve(ready: Future[BlockingPortal]) -> None:
    async def stay() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    anyio.run(stay)


def _stop(portal: BlockingPortal, thread: threading.Thread, pid: int) -> None:
    if pid == os.getpid() and thread.is_alive():
        portal.start_task_soon(portal.stop, True)
        thread.join(_STOP_BOUND_S)


_PORTAL = _Portal()


class CommandHandle:
    """A command that runs. As a context manager it lets go of it at the end."""

    def __init__(self, wrapped: AsyncCommandHandle) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    @property
    def pid(self) -> int:
        """Its process id inside the sandbox."""
        return self._wrapped.pid

    @property
    def offset(self) -> int:
        """How much of its output has arrived, in bytes of both streams; `connect` takes it up from there."""
        return self._wrapped.offset

    def wait(self) -> CommandResult:
        """Wait for its end.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            SandboxLost: the sandbox ended; where output is known, `result` holds it.
            ProcessNotFound: the connection was lost, and how the command ended is no longer known.
        """
        return _PORTAL.call(self._wrapped.wait)

    def send_stdin(self, data: str | bytes) -> None:
        """Write to its input. Returns when all of it is taken; a command that does not read is waited for.

        Raises:
            ProcessNotFound: it has ended.
            InvalidArgument: it was started without `stdin`, or closed its input.
        """
        _PORTAL.call(self._wrapped.send_stdin, data)

    def close_stdin(self) -> None:
        """Let it read the end of its input, after what was written."""
        _PORTAL.call(self._wrapped.close_stdin)

    def interrupt(self) -> bool:
        """Interrupt it and what it started, as Ctrl+C would; False when it has ended already."""
        return _PORTAL.call(self._wrapped.interrupt)

    def kill(self) -> bool:
        """Kill it and everything that it started; False when it has ended already."""
        return _PORTAL.call(self._wrapped.kill)

    def disconnect(self) -> None:
        """Let go of it; it goes on, and the agent keeps its output for whoever connects to it."""
        _PORTAL.call(self._wrapped.disconnect)

    def __enter__(self) -> CommandHandle:
        """Use it in a with block."""
        _PORTAL.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As the asynchronous one does at the end of its block."""
        _PORTAL.call(self._wrapped.__aexit__, exc_type, exc, traceback)


class Commands:
    """Runs shell commands in one sandbox; each starts in a shell of its own."""

    def __init__(self, wrapped: AsyncCommands) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def run(
        self,
        command: str,
        *,
        stdin: str | bytes | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """Run a command to its end. A non-zero exit code is data, not an error.

        Args:
            stdin: what it reads; it then reads the end of its input. Left out, its input is empty.
            cwd: working directory; the template's when left out.
            timeout: seconds until the command and everything that it started is killed.
            user: `root`, where the sandbox has one; the default user when left out.
            clean: keep output as a terminal would show it: without colours, and of a progress bar its last state.
            output_limit: bytes that it may print in all before it is ended, with stop reason `output_limit`; 0 is no
                limit. Left out: ABX_OUTPUT_LIMIT (256 MiB), or none where a callback takes the output.
            on_stdout, on_stderr: called with each piece of output as it comes, uncapped and as it was written.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        return _PORTAL.call(
            self._wrapped.run,
            command,
            stdin=stdin,
            cwd=cwd,
            envs=envs,
            timeout=timeout,
            user=user,
            clean=clean,
            output_limit=output_limit,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )

    def execute(
        self,
        command: str,
        *,
        stdin: str | bytes | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandResult:
        """As `run`, but a timeout or a lost sandbox is data too: `stop_reason` tells."""
        return _PORTAL.call(
            self._wrapped.execute,
            command,
            stdin=stdin,
            cwd=cwd,
            envs=envs,
            timeout=timeout,
            user=user,
            clean=clean,
            output_limit=output_limit,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )

    def start(
        self,
        command: str,
        *,
        stdin: bool = False,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = DEFAULT_TIMEOUT_S,
        user: str | None = None,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandHandle:
        """Start a command and return while it runs; `wait` on the handle collects its output.

        The command is killed after `timeout` seconds, whether or not anybody waits. A connection that is lost
        does not end it: `wait` connects again and goes on where it was.

        Args:
            stdin: keep its input open, for `send_stdin`; else it is empty.
            output_limit: as for `run`.

        Raises:
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        return CommandHandle(
            _PORTAL.call(
                self._wrapped.start,
                command,
                stdin=stdin,
                cwd=cwd,
                envs=envs,
                timeout=timeout,
                user=user,
                output_limit=output_limit,
                on_stdout=on_stdout,
                on_stderr=on_stderr,
            )
        )

    def connect(
        self,
        pid: int,
        *,
        offset: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> CommandHandle:
        """Follow a command that runs, also one that another process started, or learn how it ended.

        Args:
            offset: where its output is taken up: the `offset` of an earlier handle, 0 for all of it. Of long output
                the beginning and the end are kept; `skipped_bytes` of the result tells. Left out: only what comes.

        Raises:
            ProcessNotFound: there is no such command, or it ended long ago.
        """
        return CommandHandle(
            _PORTAL.call(self._wrapped.connect, pid, offset=offset, on_stdout=on_stdout, on_stderr=on_stderr)
        )

    def list(self) -> tuple[ProcessInfo, ...]:
        """What the agent started and still runs."""
        return _PORTAL.call(self._wrapped.list)

    def kill(self, pid: int) -> bool:
        """Kill a process and everything that it started; False when there is no such process."""
        return _PORTAL.call(self._wrapped.kill, pid)

    def send_stdin(self, pid: int, data: str | bytes) -> None:
        """Write to the input of a command that was started with `stdin`.

        Raises:
            ProcessNotFound: it has ended.
            InvalidArgument: its input is not open.
        """
        _PORTAL.call(self._wrapped.send_stdin, pid, data)

    def close_stdin(self, pid: int) -> None:
        """Let a command read the end of its input."""
        _PORTAL.call(self._wrapped.close_stdin, pid)


class Contexts:
    """Makes and manages the interpreters of one sandbox.

    Each has a process, a working directory and variables of its own, and runs one piece of code at a time. Those that
    `run_code` uses without a context are there too; their ids are the names of their languages.
    """

    def __init__(self, wrapped: AsyncContexts) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def create(self, language: str = "python", *, cwd: str | None = None) -> CodeContext:
        """Make an interpreter, for `run_code(…, context=…)`.

        Args:
            language: one that keeps its variables: python, and javascript or typescript where the template has them.
            cwd: its working directory; the template's when left out.

        Raises:
            UnsupportedLanguage: the template has none for it that keeps its variables.
            CwdNotFound: there is no such directory.
            ContextLimit: the sandbox has as many as it may have.
        """
        return _PORTAL.call(self._wrapped.create, language, cwd=cwd)

    def list(self) -> tuple[CodeContext, ...]:
        """Every interpreter of the sandbox."""
        return _PORTAL.call(self._wrapped.list)

    def restart(self, context: CodeContext | str) -> None:
        """End an interpreter and what it runs; the next code in it finds a fresh one.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        _PORTAL.call(self._wrapped.restart, context)

    def remove(self, context: CodeContext | str) -> None:
        """End an interpreter and what it runs. Those of the languages come back when they are used.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        _PORTAL.call(self._wrapped.remove, context)

    def interrupt(self, context: CodeContext | str) -> bool:
        """Interrupt what an interpreter runs, as Ctrl+C would; its variables are kept where it takes that.

        Returns:
            Whether something ran. That call of `run_code` ends with stop reason `cancelled`.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        return _PORTAL.call(self._wrapped.interrupt, context)


class Files:
    """Reads and writes the files of one sandbox. Paths are absolute, or relative to the user's home."""

    def __init__(self, wrapped: AsyncFiles) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def read(self, path: str, *, encoding: str = "utf-8", max_bytes: int = READ_LIMIT_BYTES) -> str:
        """Read a file as text.

        Raises:
            NotText: it is not text in that encoding.
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
            FileTooLarge: it has more than `max_bytes`.
        """
        return _PORTAL.call(self._wrapped.read, path, encoding=encoding, max_bytes=max_bytes)

    def read_bytes(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        """Read a file as bytes. A file that is too large is refused before it is read.

        Raises:
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
            FileTooLarge: it has more than `max_bytes`.
        """
        return _PORTAL.call(self._wrapped.read_bytes, path, max_bytes=max_bytes)

    def write(
        self, path: str, data: str | bytes, *, mode: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Create or replace a file, whole or not at all.

        Args:
            data: text, written as UTF-8, or bytes.
            mode: octal permission bits such as `755`; an existing file keeps its own when left out.
            metadata: what is kept with the file until it is written again: names of lower-case letters, digits and
                `._-`, values of printable ASCII. `get_info` and `list` tell it.

        Raises:
            InvalidArgument: metadata of another form; nothing was written.
            FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be written.
            DiskFull, FileTooLarge: there is no room.
        """
        return _PORTAL.call(self._wrapped.write, path, data, mode=mode, metadata=metadata)

    def list(self, path: str = "/", *, depth: int = 1, limit: int = LIST_LIMIT) -> FileListing:
        """The entries of a directory, sorted by path; at most `limit` of them, and how many there are.

        Args:
            depth: how far below the directory to look; 1 is its own entries.

        Raises:
            FileNotFound, FileNotDirectory, FilePermissionDenied: it cannot be listed.
        """
        return _PORTAL.call(self._wrapped.list, path, depth=depth, limit=limit)

    def get_info(self, path: str) -> FileEntry:
        """Describe one path.

        Raises:
            FileNotFound, FilePermissionDenied: it cannot be told.
        """
        return _PORTAL.call(self._wrapped.get_info, path)

    def exists(self, path: str) -> bool:
        """Whether there is anything at that path."""
        return _PORTAL.call(self._wrapped.exists, path)

    def make_dir(self, path: str) -> bool:
        """Make a directory and its parents; False when it is there already."""
        return _PORTAL.call(self._wrapped.make_dir, path)

    def remove(self, path: str) -> bool:
        """Remove a file, or a directory with all it holds; False when there is none."""
        return _PORTAL.call(self._wrapped.remove, path)

    def rename(self, source: str, destination: str) -> FileEntry:
        """Move a file or directory.

        Raises:
            FileNotFound: there is no source.
        """
        return _PORTAL.call(self._wrapped.rename, source, destination)

    def watch(self, path: str, *, recursive: bool = False) -> Watch:
        """Watch a directory; returns when every change from now on is told.

        Args:
            recursive: whether what lies below its sub-directories is told too, new ones included.

        Raises:
            FileNotFound, FileNotDirectory, FilePermissionDenied: it cannot be watched.
            UnsupportedOperation: too much is watched, or it lies on a network file system.
        """
        return Watch(_PORTAL.call(self._wrapped.watch, path, recursive=recursive))


class Pty:
    """Makes terminals in one sandbox and finds those that are there."""

    def __init__(self, wrapped: AsyncPty) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def create(
        self,
        command: str | None = None,
        *,
        cols: int = 80,
        rows: int = 24,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int | None = None,
        user: str | None = None,
        output_limit: int | None = None,
        on_data: TerminalCallback | None = None,
    ) -> Terminal:
        """Start a shell, or a command, on a terminal of its own.

        Args:
            command: a line for `sh -c`; an interactive login shell when left out.
            cols, rows: the size of the terminal, 1 to 65535 each.
            envs: variables on top of TERM, LANG and LC_ALL.
            timeout: seconds until it is killed; left out, it lives as long as the sandbox.
            user: `root`, where the sandbox has one; the default user when left out.
            output_limit: bytes that may appear in all before it is ended, with stop reason `output_limit`; left out, as
                for all output that is taken piece by piece, there is no limit.
            on_data: called with each piece that appears, by `read` and `wait`.

        Raises:
            InvalidArgument: the size is out of range.
            CwdNotFound, UnsupportedUser, CommandFailedToStart: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.

        Source: pty(7); agent-protocol, part 2.2.
        """
        return Terminal(
            _PORTAL.call(
                self._wrapped.create,
                command,
                cols=cols,
                rows=rows,
                cwd=cwd,
                envs=envs,
                timeout=timeout,
                user=user,
                output_limit=output_limit,
                on_data=on_data,
            )
        )

    def connect(self, pid: int, *, offset: int | None = None, on_data: TerminalCallback | None = None) -> Terminal:
        """Follow a terminal that is there, from now on or from a position of its output.

        Args:
            offset: the `offset` of an earlier handle, 0 for all that is kept. Left out: only what comes.

        Raises:
            ProcessNotFound: there is no such terminal, or it ended long ago.
        """
        return Terminal(_PORTAL.call(self._wrapped.connect, pid, offset=offset, on_data=on_data))

    def kill(self, pid: int) -> bool:
        """Kill what runs on a terminal, and everything that it started; False when there is none."""
        return _PORTAL.call(self._wrapped.kill, pid)


class Tasks:
    """Starts, reads and cancels background tasks of one sandbox."""

    def __init__(self, wrapped: AsyncTasks) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = TASK_TIMEOUT_S,
        output_limit: int | None = None,
    ) -> TaskInfo:
        """Start a shell command in the background and return at once.

        It runs until it ends, until it is cancelled, or for `timeout` seconds; everything that it started ends with
        it. Where the answer is lost, the state is `unknown`: the task may run. It is never submitted twice.

        Args:
            output_limit: bytes that it may print in all before it is ended, with stop reason `output_limit`; 0 is no
                limit. Left out: ABX_OUTPUT_LIMIT (256 MiB).

        Raises:
            CwdNotFound, CommandFailedToStart, TaskLimit: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        return _PORTAL.call(
            self._wrapped.start, command, cwd=cwd, envs=envs, timeout=timeout, output_limit=output_limit
        )

    def get(
        self,
        task_id: str,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        limit: int = TASK_PAGE_BYTES,
        wait: int = 0,
        hide: Sequence[str] = (),
        clean: bool = False,
    ) -> TaskReport:
        """Read the state of a task and a part of its output.

        Args:
            stdout_offset, stderr_offset: where to begin, in bytes; `next_offset` of the report before.
            limit: bytes of each stream at most.
            wait: seconds to wait, at most, for its end or for output beyond the offsets.
            hide: texts that are replaced in the output.
            clean: as a terminal would show it: without colours, and of a progress bar its last state. `limit` then
                counts what is shown, and `next_offset` goes on counting the bytes of the stream.

        Raises:
            TaskNotFound: there is none of that id.
        """
        return _PORTAL.call(
            self._wrapped.get,
            task_id,
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
            limit=limit,
            wait=wait,
            hide=hide,
            clean=clean,
        )

    def cancel(
        self,
        task_id: str,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        limit: int = TASK_PAGE_BYTES,
        hide: Sequence[str] = (),
        clean: bool = False,
    ) -> TaskReport:
        """End a task and everything that it started, first by SIGTERM and then by SIGKILL.

        Returns when it is gone; one that has ended is left as it is.

        Raises:
            TaskNotFound: there is none of that id.
        """
        return _PORTAL.call(
            self._wrapped.cancel,
            task_id,
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
            limit=limit,
            hide=hide,
            clean=clean,
        )

    def list(self) -> tuple[TaskInfo, ...]:
        """Every task that the sandbox still knows, oldest first."""
        return _PORTAL.call(self._wrapped.list)


class Terminal:
    """A terminal and what runs on it. As a context manager it lets go of it at the end."""

    def __init__(self, wrapped: AsyncTerminal) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    @property
    def pid(self) -> int:
        """The process id, inside the sandbox, of what runs on it."""
        return self._wrapped.pid

    @property
    def offset(self) -> int:
        """How much has appeared and arrived, in bytes; `connect` takes it up from there."""
        return self._wrapped.offset

    def send(self, data: str | bytes) -> None:
        """Type into it. A program that does not read is waited for.

        Raises:
            ProcessNotFound: what ran on it has ended.
        """
        _PORTAL.call(self._wrapped.send, data)

    def resize(self, cols: int, rows: int) -> None:
        """Change its size; the program in the foreground is told.

        Raises:
            InvalidArgument: the size is out of range.
            ProcessNotFound: what ran on it has ended.
        """
        _PORTAL.call(self._wrapped.resize, cols, rows)

    def read(self) -> bytes:
        """Wait for the next piece that appears; empty when what ran on it has ended.

        Cancelled while it waits, it lets go of the terminal: `connect` with its `offset` goes on.

        Raises:
            CommandTimeout, SandboxLost, SandboxExpired: it was stopped, or the sandbox is gone.
        """
        return _PORTAL.call(self._wrapped.read)

    def wait(self) -> CommandResult:
        """Wait for the end of what runs on it; the result has what appeared, as `stdout`.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            SandboxLost: the sandbox ended; where output is known, `result` holds it.
        """
        return _PORTAL.call(self._wrapped.wait)

    def kill(self) -> bool:
        """Kill what runs on it, and everything that it started; False when it has ended already."""
        return _PORTAL.call(self._wrapped.kill)

    def disconnect(self) -> None:
        """Let go of it. What runs on it goes on."""
        _PORTAL.call(self._wrapped.disconnect)

    def __enter__(self) -> Terminal:
        """Use it in a with block."""
        _PORTAL.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As the asynchronous one does at the end of its block."""
        _PORTAL.call(self._wrapped.__aexit__, exc_type, exc, traceback)


class Transfers:
    """Moves files of one sandbox in parts. Paths are absolute, or relative to the user's home."""

    def __init__(self, wrapped: AsyncTransfers) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def download(self, path: str, *, offset: int = 0, length: int = PART_BYTES) -> FilePart:
        """Read a part of a file; beyond its end there is nothing.

        Raises:
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
        """
        return _PORTAL.call(self._wrapped.download, path, offset=offset, length=length)

    def download_whole(self, path: str, *, max_bytes: int = PART_BYTES) -> FilePart:
        """Read a whole file, or nothing of it.

        Raises:
            FileTooLarge: it has more than `max_bytes`; nothing of it was read.
        """
        return _PORTAL.call(self._wrapped.download_whole, path, max_bytes=max_bytes)

    def upload(
        self,
        path: str,
        data: bytes,
        *,
        mode: str | None = None,
        transfer_id: str | None = None,
        offset: int = 0,
        last: bool = True,
    ) -> UploadedPart:
        """Write a file, or a part of one; the file is replaced as a whole when the last part is there.

        Args:
            mode: octal permission bits such as `755`; an existing file keeps its own when left out.
            transfer_id: of the part before; left out to begin.
            offset: where this part begins, which is the size so far.
            last: whether the file is complete with this part.

        Raises:
            TransferNotFound: it never began, is complete, or was idle for ten minutes.
            TransferConflict: the part does not follow what is there; `details` has the offset that does.
            FileIsDirectory, FilePermissionDenied, FileSpecial, DiskFull: it cannot be written.
        """
        return _PORTAL.call(
            self._wrapped.upload, path, data, mode=mode, transfer_id=transfer_id, offset=offset, last=last
        )


class Watch:
    """A directory that is watched from the moment that this is there. As a context manager it ends with its block.

    Changes wait until they are asked for. Where they were more than is kept, or a connection was lost, a change
    of type `overflow` says so: look at the directory then.
    """

    def __init__(self, wrapped: AsyncWatch) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped

    def next(self) -> FileChange:
        """Wait for the next change. Cancelled while it waits, the watch is over.

        Raises:
            SandboxLost, SandboxExpired: the sandbox is gone.
            FileNotFound: the connection was lost, and the directory is gone since.
        """
        return _PORTAL.call(self._wrapped.next)

    def follow(self, on_change: ChangeCallback, *, timeout: float | None = None) -> bool:
        """Call `on_change` with each change until it returns False; the watch is over then.

        Args:
            timeout: seconds after which it ends anyway; left out, none.

        Returns:
            Whether the callback ended it, and not the time.

        Raises:
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        return _PORTAL.call(self._wrapped.follow, on_change, timeout=timeout)

    def close(self) -> None:
        """Watch no more."""
        _PORTAL.call(self._wrapped.close)

    def __enter__(self) -> Watch:
        """Use it in a with block."""
        _PORTAL.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As the asynchronous one does at the end of its block."""
        _PORTAL.call(self._wrapped.__aexit__, exc_type, exc, traceback)


class Sandbox:
    """An isolated machine: run commands and code in it, and work on its files.

    Make one with `create`, reach an existing one with `connect`. `close` lets go of it and
    leaves it running; `kill` destroys it. As a context manager it destroys what `create`
    made and lets go of what `connect` reached.
    """

    def __init__(self, wrapped: AsyncSandbox) -> None:
        """Wrap an asynchronous object whose calls ran on the loop of this module."""
        self._wrapped = wrapped
        self.commands = Commands(wrapped.commands)
        self.contexts = Contexts(wrapped.contexts)
        self.files = Files(wrapped.files)
        self.tasks = Tasks(wrapped.tasks)
        self.pty = Pty(wrapped.pty)
        self.transfers = Transfers(wrapped.transfers)

    @classmethod
    def create(
        cls,
        template: str | None = None,
        *,
        timeout: int = 300,
        envs: Mapping[str, str] | None = None,
        region: str | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        egress: Sequence[str] | None = None,
        listen: bool = False,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> Sandbox:
        """Make a sandbox.

        Args:
            template: what it starts with; ABX_DEFAULT_TEMPLATE or `base` when left out.
            timeout: its lifetime from now, 1 to 86400 seconds.
            envs: environment variables of everything that runs in it.
            region, cpu, memory: left out, the provider decides; memory is in MB.
            egress: what it may reach: hosts, `*.` hosts, addresses and networks, each with `:port` or for ports
                80 and 443. Empty: nothing, until `update_network`. Left out: what ABX_LOCAL_EGRESS lists.
            listen: answer on a TCP port of this machine's loopback address too, for clients of E2B; see `endpoint`.
            metadata: labels that the provider keeps.
            idempotency_key: the same key with the same arguments gives the same sandbox.
            provider, api_key, base_url: instead of what is configured.
            sandbox_domain: accepted for compatibility, not used.

        Raises:
            TemplateNotFound, QuotaExceeded, UnsupportedLimit, BackendUnavailable: none was made.
            ProviderUnavailable, ProviderTimeout, ProviderFailed: the platform failed.

        Source: seed-001, create_sandbox; decisions D20, D22, D23.
        """
        return cls(
            _PORTAL.call(
                AsyncSandbox.create,
                template,
                timeout=timeout,
                envs=envs,
                region=region,
                cpu=cpu,
                memory=memory,
                egress=egress,
                listen=listen,
                metadata=metadata,
                idempotency_key=idempotency_key,
                provider=provider,
                api_key=api_key,
                base_url=base_url,
                sandbox_domain=sandbox_domain,
                doors=doors,
            )
        )

    @classmethod
    def connect(
        cls,
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> Sandbox:
        """Reach a sandbox by its id, plain or as `provider:id`; a paused one is resumed.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
        """
        return cls(
            _PORTAL.call(
                AsyncSandbox.connect,
                sandbox_id,
                region=region,
                provider=provider,
                api_key=api_key,
                base_url=base_url,
                sandbox_domain=sandbox_domain,
                doors=doors,
            )
        )

    @staticmethod
    def list(
        status: SandboxStatus | None = None,
        limit: int = 100,
        offset: int = 0,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> tuple[SandboxMetadata, ...]:
        """One page of the sandboxes that this account can see, newest first.

        Source: seed-000, "Discover and inspect".
        """
        return _PORTAL.call(
            AsyncSandbox.list,
            status,
            limit,
            offset,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def get_info_by_id(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> SandboxMetadata:
        """Current metadata of a sandbox, by its id, without connecting to it or resuming it.

        Args:
            sandbox_domain: accepted for compatibility and intentionally unused: only the
                provider's own address is used, and no client of the sandbox is made.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.

        Source: seed-000, "Implementation and verification".
        """
        return _PORTAL.call(
            AsyncSandbox.get_info_by_id,
            sandbox_id,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def set_timeout_by_id(
        sandbox_id: str,
        timeout: int,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """Let a sandbox live for `timeout` seconds from now, by its id, without connecting to it.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.

        Source: seed-000, "Create and extend".
        """
        _PORTAL.call(
            AsyncSandbox.set_timeout_by_id,
            sandbox_id,
            timeout,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def kill_by_id(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """Destroy a sandbox by its id, without connecting to it.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
        """
        _PORTAL.call(
            AsyncSandbox.kill_by_id,
            sandbox_id,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def get_info_by_id_sync(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> SandboxMetadata:
        """`get_info_by_id` for callers without an event loop."""
        return AsyncSandbox.get_info_by_id_sync(
            sandbox_id,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def set_timeout_by_id_sync(
        sandbox_id: str,
        timeout: int,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """`set_timeout_by_id` for callers without an event loop."""
        AsyncSandbox.set_timeout_by_id_sync(
            sandbox_id,
            timeout,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @staticmethod
    def kill_by_id_sync(
        sandbox_id: str,
        *,
        region: str | None = None,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sandbox_domain: str | None = None,
        doors: Doors | None = None,
    ) -> None:
        """`kill_by_id` for callers without an event loop."""
        AsyncSandbox.kill_by_id_sync(
            sandbox_id,
            region=region,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            sandbox_domain=sandbox_domain,
            doors=doors,
        )

    @property
    def sandbox_id(self) -> str:
        """Its id, without the provider."""
        return self._wrapped.sandbox_id

    @property
    def provider(self) -> str:
        """The id of its provider."""
        return self._wrapped.provider

    @property
    def info(self) -> SandboxMetadata:
        """Its metadata as of the last create, connect or `refresh_info`."""
        return self._wrapped.info

    @property
    def url(self) -> str:
        """Its address, without a token; `provider:id` where it has none."""
        return self._wrapped.url

    def endpoint(self) -> Endpoint:
        """Where a client of E2B's protocol reaches it: address, token and version.

        Raises:
            UnsupportedOperation: it has no address of its own; `create` with `listen` gives it one.
            SandboxLost, SandboxExpired: it is gone.
        """
        return _PORTAL.call(self._wrapped.endpoint)

    def run_code(
        self,
        code: str,
        language: str | None = None,
        *,
        context: CodeContext | str | None = None,
        timeout: int = 30,
        envs: Mapping[str, str] | None = None,
        clean: bool = False,
        output_limit: int | None = None,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
    ) -> Execution:
        """Run code; Python keeps its variables from call to call.

        Args:
            language: python, javascript, typescript, shell or r; python when neither it nor a context is given.
            context: an interpreter of `contexts`, with variables of its own.
            envs: environment variables for this call alone.
            timeout: seconds until the code is interrupted, and 2 s later killed.
            clean: keep output as a terminal would show it: without colours, and of a progress bar its last state.
            output_limit: bytes that it may print in all before it is interrupted, with stop reason `output_limit`; 0 is
                no limit. Left out: ABX_OUTPUT_LIMIT (256 MiB), or none where a callback takes the output.
            on_stdout, on_stderr: called with each piece of output as it comes, uncapped.

        Raises:
            CommandTimeout: it took too long; `result` holds what there is.
            UnsupportedLanguage: the template cannot run it.
            ContextNotFound: there is no such interpreter.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        return _PORTAL.call(
            self._wrapped.run_code,
            code,
            language,
            context=context,
            timeout=timeout,
            envs=envs,
            clean=clean,
            output_limit=output_limit,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )

    def get_metrics(self) -> Metrics:
        """What it uses of processor, memory and disk, now."""
        return _PORTAL.call(self._wrapped.get_metrics)

    def set_timeout(self, timeout: int) -> None:
        """Let the sandbox live for `timeout` seconds from now."""
        _PORTAL.call(self._wrapped.set_timeout, timeout)

    def pause(self) -> bool:
        """Stop the sandbox and keep everything in it; False where it was paused already.

        Until `resume`, or `connect` by its id, every use of it fails with `SandboxPaused`.

        Raises:
            UnsupportedOperation: its provider cannot pause.
        """
        return _PORTAL.call(self._wrapped.pause)

    def resume(self, timeout: int = 300) -> None:
        """Let a paused sandbox go on, and live for `timeout` seconds from now; one that runs only gets the lifetime.

        Raises:
            UnsupportedOperation: its provider cannot pause.
        """
        _PORTAL.call(self._wrapped.resume, timeout)

    def update_network(self, *, allow: Sequence[str] = (), remove: Sequence[str] = ()) -> tuple[str, ...]:
        """Change what the sandbox may reach, at once; returns the rules in force.

        Connections that lose their rule are cut.

        Raises:
            InvalidArgument: a rule is malformed, or one to remove is not in force; nothing changed.
            UnsupportedOperation: it was made without a network, or its provider has no allowlists.
        """
        return _PORTAL.call(self._wrapped.update_network, allow=allow, remove=remove)

    def diff(self, limit: int = 1000, after: str | None = None) -> DiffResult:
        """What was added, modified and deleted inside, compared with the template; in the order of the paths.

        Args:
            limit: how many changes at most, 1 to 10000; the sums are of all.
            after: the `next` of the page before.

        Raises:
            UnsupportedOperation: its provider cannot tell.
        """
        return _PORTAL.call(self._wrapped.diff, limit, after)

    def refresh_info(self) -> SandboxMetadata:
        """Ask for current metadata; neither connects nor renews."""
        return _PORTAL.call(self._wrapped.refresh_info)

    def is_running(self) -> bool:
        """Whether the sandbox answers."""
        return _PORTAL.call(self._wrapped.is_running)

    def kill(self) -> None:
        """Destroy the sandbox and everything in it.

        Raises:
            SandboxNotFound: it was already gone.
        """
        _PORTAL.call(self._wrapped.kill)

    def close(self) -> None:
        """Let go of the sandbox; it lives on until its lifetime is over."""
        _PORTAL.call(self._wrapped.close)

    def __enter__(self) -> Sandbox:
        """Use it in a with block."""
        _PORTAL.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As the asynchronous one does at the end of its block."""
        _PORTAL.call(self._wrapped.__aexit__, exc_type, exc, traceback)
