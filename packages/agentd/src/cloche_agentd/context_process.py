"""Turns a fork of init into an interpreter context: own session, own descriptors, own randomness, own environment."""

from __future__ import annotations

import builtins
import os
import resource
import signal
import site
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final, NoReturn, Protocol, cast

from . import guest_calls, streams
from .config import InitProfile
from .control import BlockingControl
from .interpreter import Interpreter

_CONTROL_FD: Final = 3
_MOST_FDS: Final = 1 << 20


def enter_context_process(fds: Sequence[int], null: int, env: Mapping[str, str], profile: InitProfile) -> NoReturn:
    """Serve executions in this freshly forked process until the keeper closes the control channel.

    Args:
        fds: control channel, standard output, standard error.
        null: a descriptor of /dev/null for standard input.
    """
    status = 0
    try:
        os.setsid()
        _reset_signals()
        control = _take_descriptors(fds, null)
        if profile.die_with_parent:
            guest_calls.die_with_parent(signal.SIGKILL)
        guest_calls.set_dumpable()
        if profile.prepare_context is not None:
            profile.prepare_context()
        os.environ.clear()
        os.environ.update(env)
        reseed()
        streams.renew()
        namespace = _make_main(profile)
        os.register_at_fork(after_in_child=control.close)
        Interpreter(control, namespace, leaves_cwd=profile.leaves_cwd).serve()
    except BaseException:  # noqa: BLE001 - a process entry point: nothing may unwind into init's stack
        status = 70
    os._exit(status)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_descriptors(fds: Sequence[int], null: int) -> BlockingControl:
    """Put the four descriptors in place and close every other one."""
    control, stdout, stderr = (os.dup(fd) for fd in fds)
    high = [_above(fd) for fd in (null, stdout, stderr, control)]
    for target, fd in enumerate(high):
        os.dup2(fd, target, inheritable=target != _CONTROL_FD)
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(_CONTROL_FD + 1, min(soft if soft > 0 else _MOST_FDS, _MOST_FDS))
    return BlockingControl(socket.socket(fileno=_CONTROL_FD))


def _above(fd: int) -> int:
    """Return a duplicate that no target number can overwrite."""
    taken: list[int] = []
    while fd <= _CONTROL_FD:
        taken.append(fd)
        fd = os.dup(fd)
    return fd


class _Seedable(Protocol):
    def seed(self) -> None: ...


def reseed() -> None:
    """Give this fork its own random numbers: forks otherwise repeat init's sequence."""
    for name in ("random", "numpy.random"):
        module = sys.modules.get(name)
        if module is not None:
            cast("_Seedable", module).seed()  # both modules have seed() without arguments


def _make_main(profile: InitProfile) -> dict[str, object]:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.argv = [""]
    paths = [path for path in profile.import_paths if path not in sys.path]
    sys.path[:] = ["", *sys.path, *paths]
    # `-S` left out what the site module adds to a Python prompt.
    add: Callable[[], None]
    for add in (site.setquit, site.setcopyright, site.sethelper):
        add()
    return main.__dict__
