"""The functions that forks run, moved together: a fork copies each page that it writes to, and Python writes to a
function and its code whenever it calls it. Spread among all that is never called, they would be on a page each.
"""

import gc
import mmap
import os
import sys
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType

# Which process runs a function: ours, a fork, or one that was not watched.
_HERE, _IN_A_FORK, _UNWATCHED = 1, 2, 4
_KEPT = ("__kwdefaults__", "__qualname__", "__module__", "__doc__", "__type_params__")
# Of these, functions are replaced as well. Elsewhere somebody may ask whether one is the very same: enum and typing do.
_OURS = ("cloche_agentd", "cloche_local")
_OTHERS = ("asyncio", "contextlib", "ctypes", "hmac", "json", "posixpath", "selectors", "signal", "socket", "weakref")
# Read from 3.14 on, annotations would be evaluated.
_ANNOTATED = "__annotate__" if sys.version_info >= (3, 14) else "__annotations__"


class Gathering:
    """Finds out which functions run, here and in forks, and puts copies of them that lie together in their place."""

    def __init__(self, modules: Collection[str]) -> None:
        """Look at what there is.

        Args:
            modules: of these every function counts as run.
        """
        # What is frozen is not told.
        gc.unfreeze()
        self._modules = modules
        self._functions = [found for found in gc.get_objects() if isinstance(found, FunctionType)]
        self._numbers: dict[int, int] = {}
        for function in self._functions:
            self._count(function.__code__)
        # Shared with the forks, which can tell nothing but numbers of functions. Closed before anybody else's fork.
        self._ran = mmap.mmap(-1, max(len(self._numbers), 1))

    def __enter__(self) -> "Gathering":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ran.close()

    def _count(self, code: CodeType) -> None:
        if id(code) not in self._numbers:
            self._numbers[id(code)] = len(self._numbers)
            for const in code.co_consts:
                if isinstance(const, CodeType):
                    self._count(const)

    def watch(self, work: Callable[[], None]) -> None:
        """Note what runs during `work`, also in processes that it forks."""
        numbers, ran, ours = self._numbers, self._ran, os.getpid()

        def note(frame: FrameType, event: str, _argument: object) -> None:
            number = numbers.get(id(frame.f_code)) if event == "call" else None
            if number is not None:
                ran[number] |= _HERE if os.getpid() == ours else _IN_A_FORK

        sys.setprofile(note)
        try:
            work()
        finally:
            sys.setprofile(None)

    def move(self) -> int:
        """Put copies in the place of what ran; returns how many functions that are."""
        wanted = [(self._who(function), function) for function in self._functions]
        # What only forks of forks run is not between what a keeper runs.
        moving = [function for who, function in sorted(wanted, key=lambda pair: pair[0]) if who]
        # None is freed before all are copied: the copies would go where the first was.
        before = [function.__code__ for function in moving]
        codes: dict[int, CodeType] = {}
        for function, code in zip(moving, before, strict=True):
            function.__code__ = _copy_code(code, codes)
        copies = {id(function): _copy_function(function) for function in moving if _may_be_replaced(function)}
        for owner, name, found in list(_named()):
            copy = copies.get(id(found))
            if copy is not None:
                setattr(owner, name, copy)
        # What Python remembers of names that nobody asks for any more, each fork would forget. It has no public name.
        sys._clear_type_cache()  # pyright: ignore[reportPrivateUsage]
        return len(moving)

    def _who(self, function: FunctionType) -> int:
        who = self._ran[self._numbers[id(function.__code__)]]
        return who or (_UNWATCHED if function.__module__ in self._modules else 0)


def _may_be_replaced(function: FunctionType) -> bool:
    package = str(function.__module__).partition(".")[0]
    return package in _OURS or (package in _OTHERS and not function.__name__.startswith("__"))


def _copy_code(code: CodeType, copies: dict[int, CodeType]) -> CodeType:
    if id(code) not in copies:
        consts = tuple(_copy_code(each, copies) if isinstance(each, CodeType) else each for each in code.co_consts)
        copy = code.replace(co_consts=consts)
        # Several functions share one; the copy is its own, should it be met again.
        copies[id(code)] = copies[id(copy)] = copy
    return copies[id(code)]


def _copy_function(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    for name in (*_KEPT, _ANNOTATED):
        if hasattr(function, name):
            setattr(copy, name, getattr(function, name))
    if vars(function):
        vars(copy).update(vars(function))
    return copy


def _named() -> Iterator[tuple[ModuleType | type, str, object]]:
    """Every function by the name that a module or class has for it."""
    for owner in gc.get_objects():
        if isinstance(owner, (ModuleType, type)):
            for name, found in vars(owner).items():
                if isinstance(found, FunctionType):
                    yield owner, name, found
