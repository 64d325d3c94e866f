"""Init: starts commands, forks interpreters, reaps everything, kills trees. Single-threaded; fit to be pid 1.

Every restriction of the sandbox holds in this process already, and what it starts inherits it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
from collections.abc import Mapping
from typing import Final, NoReturn, cast

from . import context_process, guest_calls, link
from .config import DEFAULT_PATH, InitProfile
from .killtree import Tree, everything_below, kill_tree

_RESET_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGTERM)


_SHELL: Final = "/bin/bash"
_Actions = list[tuple[int, int, int] | tuple[int, int, str, int, int]]


def run_init(link_socket: socket.socket, profile: InitProfile) -> NoReturn:
    """Serve the keeper until its end of the link closes, then kill everything and exit.

    Descriptors 0, 1 and 2 must be open (on /dev/null); every other one that is inherited should be closed or
    close-on-exec already.
    """
    status = 0
    try:
        Init(link_socket, profile).run()
    except BaseException:  # noqa: BLE001 - a process entry point
        status = 70
    os._exit(status)


class Init:
    """The loop and its children."""

    def __init__(self, link_socket: socket.socket, profile: InitProfile) -> None:
        self._link = link_socket
        self._profile = profile
        self._children: set[int] = set()
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        """Serve until the keeper is gone, then kill everything."""
        try:
            self.serve()
        finally:
            kill_tree(everything_below(os.getpid(), frozenset()), self._reap)

    def serve(self) -> None:
        """Serve until the keeper is gone."""
        if os.getpid() != 1:
            guest_calls.adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        # What exists now is shared with every context; collecting it there would only copy its pages.
        gc.freeze()
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while self._serve(poll):
            pass

    def _serve(self, poll: select.poll) -> bool:
        for fd, _event in poll.poll():
            if fd == self._wake_read:
                self._drain_wakeups()
                self._reap()
            else:
                received = link.receive(self._link)
                if received is None:
                    return False
                self._obey(*received)
        return True

    def _drain_wakeups(self) -> None:
        try:
            while os.read(self._wake_read, 512):
                pass
        except BlockingIOError:
            return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._children:
                self._children.discard(pid)
                link.answer(self._link, {"pid": pid, "status": status})

    def _obey(self, request: link.Message, fds: list[int]) -> None:
        number = cast("int", request["id"])  # the keeper writes it
        try:
            reply = self._do(request, fds)
        except OSError as error:
            reply = {"errno": error.errno or 0, "what": "start"}
        finally:
            for fd in fds:
                os.close(fd)
        link.answer(self._link, {**reply, "id": number})

    def _do(self, request: link.Message, fds: list[int]) -> dict[str, object]:
        match request["op"]:
            case "spawn":
                return self._spawn(request, fds)
            case "fork":
                return self._fork(request, fds)
            case "signal":
                return _signal(request)
            case "kill":
                return self._kill(request)
            case _:
                return {"errno": 0, "what": "op"}

    # -- children -----------------------------------------------------------------------------------------------

    def _spawn(self, request: link.Message, fds: list[int]) -> dict[str, object]:
        argv = cast("list[str]", request["argv"])
        env = cast("dict[str, str]", request["env"])
        wrong = _enter(request)
        if wrong is not None:
            return wrong
        terminal = cast("str | None", request.get("terminal"))
        try:
            program = _find_program(argv[0], env)
            if terminal is not None and program == _SHELL and not os.path.exists(program):
                # What E2B clients ask for; a rootfs may have nothing but sh.
                program = "/bin/sh"
            pid = os.posix_spawn(
                program,
                argv,
                env,
                file_actions=self._file_actions(request, fds),
                setsid=True,
                setsigmask=(),
                setsigdef=_RESET_SIGNALS,
            )
        finally:
            os.chdir("/")
        self._children.add(pid)
        return {"pid": pid}

    def _file_actions(self, request: link.Message, fds: list[int]) -> _Actions:
        terminal = cast("str | None", request.get("terminal"))
        if terminal is not None:
            return _terminal_actions(terminal)
        if request.get("control") is True:
            # An interpreter, with its control channel last: no source is overwritten before it is used, because
            # descriptors 0 to 2 are open here and each later one is a target at most once.
            streams = (self._null, fds[1], fds[2], fds[0])
        else:
            streams = fds if len(fds) == 3 else (self._null, *fds)
        return [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(streams)]

    def _fork(self, request: link.Message, fds: list[int]) -> dict[str, object]:
        wrong = _enter(request)
        if wrong is not None:
            return wrong
        pid = guest_calls.fork() if self._profile.bare_fork else os.fork()
        if pid == 0:
            env = cast("dict[str, str]", request["env"])
            context_process.enter_context_process(fds, self._null, env, self._profile)
        os.chdir("/")
        self._children.add(pid)
        return {"pid": pid}

    def _kill(self, request: link.Message) -> dict[str, object]:
        leader = cast("int", request["leader"])
        since = cast("int", request.get("since", 0))
        spare = {os.getpid(), 1}
        if request.get("spare_leader"):
            spare.add(leader)
        if leader == 0:
            tree = everything_below(os.getpid(), frozenset(spare))
        else:
            tree = Tree(leader, cast("str | None", request.get("marker")), frozenset(spare), since)
        return {"left": kill_tree(tree, self._reap)}


def _terminal_actions(path: str) -> _Actions:
    # The child leads a new session by then (setsid comes before file actions): the first terminal that it opens
    # becomes its controlling one.
    opened = (os.POSIX_SPAWN_OPEN, 0, path, os.O_RDWR, 0)
    return [opened, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]


def _enter(request: link.Message) -> dict[str, object] | None:
    """Change to the request's folder; its fallbacks are tried in order. Return the refusal, if any."""
    error: OSError | None = None
    for cwd in cast("list[str]", request["cwd"]):
        try:
            os.chdir(cwd)
        except OSError as failed:
            error = error or failed
        else:
            return None
    return {"errno": error.errno if error else 0, "what": "cwd"}


def _find_program(program: str, env: Mapping[str, str]) -> str:
    """Look a program up on the PATH of its own environment."""
    if "/" in program:
        return program
    for folder in env.get("PATH", DEFAULT_PATH).split(":"):
        candidate = os.path.join(folder or ".", program)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(2, "no such program")


def _signal(request: link.Message) -> dict[str, object]:
    pid = cast("int", request["pid"])
    number = cast("int", request["signal"])
    try:
        if request.get("group"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return {"found": False}
    return {"found": True}
