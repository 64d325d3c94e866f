"""The Python session of a context: runs code as a prompt would, and tells results, errors and exit codes."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import linecache
import os
import signal
import sys
from collections import deque
from collections.abc import Coroutine, Generator
from types import CodeType, FrameType
from typing import Final, cast

from . import limits, outcome, streams
from .control import BlockingControl, Header
from .display import Displays
from .figures import Figures
from .notebook_names import NotebookNames
from .shellisms import without_shellisms

_FLAGS: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_CO_COROUTINE: Final = 0x80


class Interpreter:
    """One namespace that lives as long as its process. Executions come one at a time."""

    def __init__(self, control: BlockingControl, namespace: dict[str, object], *, leaves_cwd: bool = False) -> None:
        self._control = control
        self._namespace = namespace
        self._pid = os.getpid()
        self._count = 0
        self._executing = False
        self._sources: deque[tuple[str, int]] = deque()
        self._source_chars = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._displays = Displays(control.send_in_order)
        self._figures = Figures(self._displays)
        builtins.__dict__["display"] = self._displays.display
        namespace["display"] = self._displays.display
        NotebookNames(self._displays.display).install()
        signal.signal(signal.SIGINT, self._interrupt)
        self._cwd = ""
        self._leaves_cwd = leaves_cwd
        self._leave_cwd()

    def serve(self) -> None:
        """Run what the keeper asks for until it closes the channel."""
        while (request := self._control.receive()) is not None:
            if "environment" in request:
                # From here on it is somebody's: what was rehearsed does not count.
                self._count = 0
                os.environ.update(cast("dict[str, str]", request["environment"]))
            else:
                self._return_to_cwd()
                done = self._run(request)
                self._leave_cwd()
                self._control.send(done)

    def _leave_cwd(self) -> None:
        """Let go of the working directory between executions, where it may be exchanged meanwhile."""
        if self._leaves_cwd:
            with contextlib.suppress(OSError):
                self._cwd = os.getcwd()
            os.chdir("/")

    def _return_to_cwd(self) -> None:
        """Be where the last execution ended, or in the nearest folder above that is still there."""
        while self._cwd:
            try:
                os.chdir(self._cwd)
            except OSError:
                self._cwd = os.path.dirname(self._cwd) if self._cwd != "/" else ""
            else:
                return

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        # Outside an execution a late interrupt means nothing; raising would end the session.
        if self._executing:
            self._control.interrupt()

    def _run(self, request: Header) -> Header:
        code = cast("str", request["code"])  # written by the keeper
        self._count += 1
        self._displays.begin(request, self._count)
        streams.mend()
        envs = cast("dict[str, str]", request.get("envs") or {})
        end = outcome.End()
        try:
            with _environment(envs):
                self._executing = True
                try:
                    self._execute(code)
                finally:
                    self._executing = False
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            end = outcome.of_exception(error)
        self._leave_if_forked(end.exit_code)
        try:
            self._executing = True
            self._figures.flush()
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            end = end if end.error is not None else outcome.of_exception(error)
        finally:
            self._executing = False
        _say_farewell(end)
        return {"t": "done", "exit_code": end.exit_code, "error": end.error, "memory": end.memory}

    def _execute(self, code: str) -> None:
        code = without_shellisms(code)
        filename = self._remember(code)
        self._figures.prepare()
        tree = ast.parse(code, filename)
        last = _take_last_expression(tree, code)
        if tree.body:
            self._evaluate(compile(tree, filename, "exec", _FLAGS, dont_inherit=True))
        if last is not None:
            value = self._evaluate(compile(last, filename, "eval", _FLAGS, dont_inherit=True))
            if value is not None:
                self._namespace["_"] = value
                self._displays.show(value, main=True)

    def _remember(self, code: str) -> str:
        """Keep code for tracebacks under the name that is returned. What was sent long ago is forgotten again."""
        filename = f"<execution {self._count}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        self._sources.append((filename, len(code)))
        self._source_chars += len(code)
        while len(self._sources) > limits.SOURCES or self._source_chars > max(limits.SOURCE_CHARS, len(code)):
            oldest, size = self._sources.popleft()
            self._source_chars -= size
            linecache.cache.pop(oldest, None)
        return filename

    def _evaluate(self, code: CodeType) -> object:
        value: object = eval(code, self._namespace)
        if code.co_flags & _CO_COROUTINE:
            return self._await(cast("Coroutine[object, object, object]", value))
        return value

    def _await(self, coroutine: Coroutine[object, object, object]) -> object:
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                self._loop.call_later(0.2, self._loop.stop)
                self._loop.run_forever()
            raise

    def _leave_if_forked(self, exit_code: int) -> None:
        """End a child that user code forked and that came back here: it must not answer in its parent's name."""
        if os.getpid() != self._pid:
            _say_farewell(outcome.End())
            os._exit(exit_code)


def _take_last_expression(tree: ast.Module, code: str) -> ast.Expression | None:
    """Remove and return a closing expression whose value is shown; a semicolon after it hides the value."""
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return None
    last = tree.body[-1]
    line = code.splitlines()[(last.end_lineno or 1) - 1].encode()
    if line[last.end_col_offset or 0 :].lstrip().startswith(b";"):
        return None
    tree.body.pop()
    return ast.Expression(last.value)


@contextlib.contextmanager
def _environment(envs: dict[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in envs}
    os.environ.update(envs)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _say_farewell(end: outcome.End) -> None:
    if end.message:
        with contextlib.suppress(Exception):
            sys.stderr.write(end.message + "\n")
    streams.flush()
