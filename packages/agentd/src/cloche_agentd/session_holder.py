"""One workspace session's processes: a holder with its mounts, and below it the init that runs its commands.

The holder is outside the session's pid namespace and keeps the right to mount: it moves an idle session onto other
layers. It reads nothing but what the workspace host tells it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from . import guest_calls, overlay
from . import namespace_calls as calls
from .config import InitProfile
from .init import run_init
from .layers.door import open_folder
from .layers.store import LAYERS, SESSIONS

_MESSAGE_BYTES: Final = 64 * 1024
_READY: Final = b"+"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What happens in a session's init before it runs anything.

    Attributes:
        mount_proc: give it a /proc of its own pid namespace; called in its mount namespace, with the right to mount.
        confine: give up what user code must not have; nothing can be set up after it.
    """

    mount_proc: Callable[[], None]
    confine: Callable[[], None]


def mount_plain_proc() -> None:
    """Mount a fresh /proc, which shows this pid namespace alone (pid_namespaces(7))."""
    calls.mount("proc", "/proc", "proc", calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC)


def confine_plainly() -> None:
    """Give up every capability, for good."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    if null > 2:
        os.close(null)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls.set_no_new_privileges()
    calls.drop_capabilities()
    # Commands have our id; what is a fork of ours shows itself again.
    calls.hide_memory()


@dataclass(frozen=True, slots=True)
class Place:
    """Where the folders are, by path; opened in the holder's own mount namespace."""

    store: str
    base: str
    target: str


def hold(place: Place, control: socket.socket, how: Confinement) -> NoReturn:
    """Be the holder of a session, in a process that was forked for it.

    Everything that does not depend on the session is done at once; which one it is comes later, in a message.
    """
    status = 70
    try:
        # The host is gone: so are we, and with us init and everything in its pid namespace.
        guest_calls.die_with_parent(signal.SIGKILL)
        _close_all_but(control.fileno())
        status = _Holder(place, control, how).run()
    except OSError as error:
        with contextlib.suppress(OSError):
            control.send(_refusal(error))
    finally:
        os._exit(status)


def _refusal(error: OSError) -> bytes:
    return json.dumps({"errno": error.errno or 0, "what": str(error.filename or "")}).encode()


def _close_all_but(kept: int) -> None:
    for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
        if fd > 2 and fd != kept:
            with contextlib.suppress(OSError):
                os.close(fd)


class _Holder:
    def __init__(self, place: Place, control: socket.socket, how: Confinement) -> None:
        self._place = place
        self._control = control
        self._how = how
        self._init = -1
        self._upper = self._work = -1

    def run(self) -> int:
        calls.unshare(calls.CLONE_NEWNS | calls.CLONE_NEWIPC | calls.CLONE_NEWPID)
        # Nothing that is mounted here shows elsewhere, and the other way round (mount_namespaces(7)).
        calls.mount("none", "/", None, calls.MS_REC | calls.MS_PRIVATE)
        self._open()
        overlay.hide(self._place.store)
        self._start_init()
        self._control.send(b"{}")
        return self._serve()

    def _open(self) -> None:
        """Open what is hidden next. Paths of a mount namespace are good for mounts in it alone."""
        place = self._place
        self._own_fds = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        root = os.open(place.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._base = os.open(place.base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._layers, self._sessions = open_folder(root, LAYERS), open_folder(root, SESSIONS)
        os.close(root)

    def _start_init(self) -> None:
        self._to_init, theirs = socket.socketpair()
        self._init = os.fork()
        if self._init == 0:
            ours = (self._to_init, self._control)
            _become_init(theirs, self._how, (*(each.fileno() for each in ours), *self._fds()))
        theirs.close()
        if self._to_init.recv(1) != _READY:
            raise PermissionError(1, "init was not confined", "init")

    def _fds(self) -> tuple[int, ...]:
        return self._own_fds, self._base, self._layers, self._sessions

    def _begin(self, session_id: str, layer_ids: Sequence[str], link: int) -> None:
        """Become the holder of this session: mount it, and give init its link to the keeper."""
        self._enter(session_id, layer_ids)
        socket.send_fds(self._to_init, [_READY], [link])
        self._to_init.close()

    def _enter(self, session_id: str, layer_ids: Sequence[str]) -> None:
        """Mount these layers below what the session writes from now on."""
        for fd in (self._upper, self._work):
            if fd >= 0:
                os.close(fd)
        self._upper = self._work = -1
        session = open_folder(self._sessions, session_id)
        try:
            self._upper, self._work = open_folder(session, "upper"), open_folder(session, "work")
        finally:
            os.close(session)
        self._mount(layer_ids)

    def _mount(self, layer_ids: Sequence[str]) -> None:
        lower = [open_folder(self._layers, layer_id) for layer_id in layer_ids]
        try:
            overlay.mount_overlay(self._own_fds, [*lower, self._base], self._upper, self._work, self._place.target)
        finally:
            for fd in lower:
                os.close(fd)

    # -- what the host asks -------------------------------------------------------------------------------------

    def _serve(self) -> int:
        ended = os.pidfd_open(self._init)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(ended, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if ended in ready:
                break
            data, fds, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, 1)
            if not data or not self._obey(cast("dict[str, object]", json.loads(data)), fds):
                os.kill(self._init, signal.SIGKILL)
                break
        # Returns when everything in its pid namespace is gone.
        os.waitpid(self._init, 0)
        with contextlib.suppress(OSError):
            overlay.unmount(self._place.target)
        return 0

    def _obey(self, request: dict[str, object], fds: list[int]) -> bool:
        """Do what the host asks; False when the session shall end."""
        match request["op"]:
            case "begin":
                try:
                    self._begin(cast("str", request["session_id"]), cast("list[str]", request["layers"]), fds[0])
                except OSError as error:
                    self._control.send(_refusal(error))
                    return False
                finally:
                    os.close(fds[0])
                self._control.send(b"{}")
            case "leave":
                self._control.send(json.dumps({"left": self._leave()}).encode())
            case "enter":
                try:
                    self._enter(cast("str", request["session_id"]), cast("list[str]", request["layers"]))
                except OSError as error:
                    self._control.send(_refusal(error))
                    return False
                self._control.send(b"{}")
            case "migrate":
                self._control.send(json.dumps(self._migrate(cast("dict[str, list[str]]", request))).encode())
            case _:
                return False
        return True

    def _leave(self) -> bool:
        """Unmount, unless a process of the session has a file or folder of the workspace open."""
        try:
            overlay.unmount(self._place.target)
        except OSError:
            return False
        return True

    def _migrate(self, request: dict[str, list[str]]) -> dict[str, str]:
        """Put other layers under an idle session."""
        # /proc is the session's own: init alone, or somebody could notice.
        if [name for name in os.listdir("/proc") if name.isdigit()] != ["1"]:
            return {"disposition": "leased", "reason": "processes run in the session"}
        try:
            overlay.unmount(self._place.target)
        except OSError:
            return {"disposition": "leased", "reason": "something uses the mount"}
        try:
            self._mount(request["to"])
        except OSError:
            return self._return_to(request["from"])
        return {"disposition": "migrated"}

    def _return_to(self, layer_ids: Sequence[str]) -> dict[str, str]:
        try:
            self._mount(layer_ids)
        except OSError:
            return {"disposition": "faulty", "reason": "the layers could not be mounted again"}
        return {"disposition": "leased", "reason": "the kernel refused the mount"}


def _become_init(holder: socket.socket, how: Confinement, others: tuple[int, ...]) -> NoReturn:
    try:
        for fd in others:
            os.close(fd)
        how.mount_proc()
        how.confine()
        guest_calls.die_with_parent(signal.SIGKILL)
        holder.send(_READY)
        _, fds, _, _ = socket.recv_fds(holder, 1, 1)
        holder.close()
        link = socket.socket(fileno=fds[0])
    except (OSError, IndexError):
        os._exit(71)
    run_init(link, InitProfile(leaves_cwd=True))
