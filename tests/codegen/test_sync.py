"""The synchronous SDK is the asynchronous one: same signatures, one loop, and an end that does not hang."""

from __future__ import annotations

import ast
import inspect
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from cloche_codegen.emit import sync
from cloche_codegen.load import SchemaError
from cloche_sdk.commands import AsyncCommands
from cloche_sdk.files import AsyncFiles
from cloche_sdk.sandbox import AsyncSandbox
from cloche_sdk.tasks import AsyncTasks
from cloche_sdk.transfers import AsyncTransfers

PAIRS = ("Sandbox", "Commands", "Files", "CommandHandle", "Tasks", "Transfers")
SOURCES = {
    "Sandbox": AsyncSandbox,
    "Commands": AsyncCommands,
    "Files": AsyncFiles,
    "Tasks": AsyncTasks,
    "Transfers": AsyncTransfers,
}


def _facade(name: str) -> Any:
    module: Any = __import__("cloche_sdk._gen.sync", fromlist=[name])
    return getattr(module, name)


def _public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_public_method_is_there_with_the_same_parameters(name: str) -> None:
    """Decision D4: signatures copied."""
    facade, source = _facade(name), SOURCES[name]
    missing = sorted(set(_public(source)) - set(_public(facade)))
    assert missing == {"Sandbox": ["connect_in", "create_in", "link"]}.get(name, [])
    for method, made in _public(facade).items():
        if callable(made) and method in _public(source):
            copied, original = inspect.signature(made), inspect.signature(getattr(source, method))
            assert list(copied.parameters.values()) == list(original.parameters.values())
            assert made.__doc__ == getattr(source, method).__doc__
            assert not inspect.iscoroutinefunction(made)


class Endless:
    """Stands for a command that never ends."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.threads: list[int] = []

    async def list(self) -> tuple[int, ...]:
        self.threads.append(threading.get_ident())
        return (1,)

    async def kill(self, pid: int) -> bool:
        # The person at the terminal presses Ctrl-C while the call runs.
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        return False


def test_all_calls_run_on_one_loop_in_one_thread() -> None:
    wrapped = Endless()
    first, second = _facade("Commands")(wrapped), _facade("Commands")(wrapped)
    assert first.list() == second.list() == (1,)
    assert len(set(wrapped.threads)) == 1
    assert threading.get_ident() not in wrapped.threads


def test_an_interrupt_cancels_the_call() -> None:
    """What the caller stops must not go on behind his back."""
    wrapped = Endless()
    commands = _facade("Commands")(wrapped)
    with pytest.raises(KeyboardInterrupt):
        commands.kill(7)
    assert wrapped.cancelled.wait(5)


SCRIPT = """
import os, sys
from cloche_sdk._gen.sync import Commands

class Wrapped:
    async def list(self):
        return (os.getpid(),)

commands = Commands(Wrapped())
assert commands.list() == (os.getpid(),)
child = os.fork()
if child == 0:
    assert commands.list() == (os.getpid(),)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert commands.list() == (os.getpid(),)
print("done")
"""


def test_a_process_ends_without_closing_anything_and_its_forks_have_a_loop_of_their_own() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


SANDBOX = '''
from .parts import AsyncPart, AsyncGenerator
LIMIT = 5
class AsyncSandbox:
    """A sandbox."""
    def __init__(self, link):
        self.part = AsyncPart(link)
        self._hidden = AsyncPart(link)
    @classmethod
    async def create(cls, name: str = "a", *, size: int = LIMIT) -> AsyncSandbox:
        """Make one."""
    @staticmethod
    async def count(name: str) -> int:
        """Count them."""
    @property
    def id(self) -> str:
        """Its id."""
    async def stream(self) -> AsyncGenerator[str]:
        """Inner."""
    async def _private(self) -> None: ...
    async def part_of(self, other: str | None = None) -> AsyncPart:
        """A part."""
'''
PARTS = '''
class AsyncPart:
    """A part of it."""
    def __init__(self, link): ...
    async def use(self, *, deep: bool) -> None:
        """Use it.

        Raises:
            Nothing: ever.
        """
'''


def _emitted(tmp_path: Path, sandbox: str = SANDBOX) -> ast.Module:
    folder = tmp_path / sync.SDK
    folder.mkdir(parents=True)
    (folder / "sandbox.py").write_text(sandbox, encoding="utf-8")
    (folder / "parts.py").write_text(PARTS, encoding="utf-8")
    return ast.parse(sync.emit(tmp_path)["sync.py"][0])


def test_facade_is_made_of_what_the_source_shows(tmp_path: Path) -> None:
    tree = _emitted(tmp_path)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    methods = [node for node in classes["Sandbox"].body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in methods] == ["__init__", "create", "count", "id", "part_of"]
    text = {node.name: ast.unparse(node) for node in methods}
    assert "self.part = Part(wrapped.part)" in text["__init__"]
    assert "_hidden" not in text["__init__"]
    assert "return cls(_PORTAL.call(AsyncSandbox.create, name, size=size))" in text["create"]
    assert "return _PORTAL.call(AsyncSandbox.count, name)" in text["count"]
    assert "return Part(_PORTAL.call(self._wrapped.part_of, other))" in text["part_of"]
    used = ast.unparse(classes["Part"])
    assert "_PORTAL.call(self._wrapped.use, deep=deep)" in used
    imported = [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert "from cloche_sdk.sandbox import LIMIT" in imported


def test_public_method_without_a_docstring_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="count has no docstring"):
        _emitted(tmp_path, SANDBOX.replace('        """Count them."""\n', "        return 1\n"))


def test_without_an_sdk_there_is_no_facade(tmp_path: Path) -> None:
    assert cast(dict[str, object], sync.emit(tmp_path)) == {}
