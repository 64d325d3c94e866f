"""The workspace host: one process that owns the layer store and forks the holders of sessions.

It is forked before the keeper knows a secret, because the inits of sessions, and so the interpreters of user code, are
forks of it. It may mount; the keeper need not. It serves one request after the other; an export runs in a fork.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn, cast

from . import guest_calls, limits, link, overlay
from .layers import export, publish
from .layers.door import Door
from .layers.failure import LayerError, NoSpace, NoSuchSession, OverlayFailed, StoreDamaged
from .layers.plan import Plan
from .layers.squash import squash
from .layers.store import SESSION_ID, Store
from .session_holder import Confinement, Place, confine_plainly, hold, mount_plain_proc

_SHOWN_PATHS: Final = 100
_SHOWN_CHARACTERS: Final = 4096
_PIPE_BYTES: Final = 1024 * 1024
_EXPORT_BYTES: Final = 64 * 1024
_F_SETPIPE_SZ: Final = 1031


@dataclass(frozen=True, slots=True)
class WorkspaceSetup:
    """Where the layers are, and where sessions see the workspace. The store must be on a file system that overlays
    take as upper layer."""

    store: str
    base: str
    target: str
    base_root_hash: str = ""


def start_host(
    setup: WorkspaceSetup,
    *,
    confine: Callable[[], None] = confine_plainly,
    mount_proc: Callable[[], None] = mount_plain_proc,
) -> socket.socket:
    """Fork the host; return the keeper's end of its link, for `KeeperHooks.workspace`.

    Call it before anything secret is in memory, while this process has one thread. What is wrong with the store or
    with mounts is told when a session is made.

    Args:
        confine: run in each session's init, last; what user code must not have is gone after it.
        mount_proc: run in it before, with the right to mount.
    """
    ours, theirs = link.open_link()
    if os.fork() == 0:
        ours.close()
        _become_host(theirs, setup, Confinement(mount_proc, confine))
    theirs.close()
    return ours


def _become_host(ours: socket.socket, setup: WorkspaceSetup, how: Confinement) -> NoReturn:
    status = 0
    try:
        guest_calls.die_with_parent(signal.SIGKILL)
        os.setsid()
        # The keeper's listeners and link are not ours, nor should they live as long as we do.
        for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
            if fd > 2 and fd != ours.fileno():
                with contextlib.suppress(OSError):
                    os.close(fd)
        Host(ours, setup, how).run()
    except BaseException:  # noqa: BLE001 - a process entry point
        status = 70
    os._exit(status)


def _raise_descriptor_limit() -> int:
    """A folder that every layer has is open once for each of them. Return what the limit was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, limits.DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft


@dataclass(slots=True)
class _Held:
    """A session's holder."""

    pid: int
    control: socket.socket


@dataclass(slots=True)
class Host:
    """The loop and what it owns."""

    keeper: socket.socket
    setup: WorkspaceSetup
    how: Confinement
    door: Door = field(default_factory=Door)
    _store: Store | None = None
    _held: dict[str, _Held] = field(default_factory=dict[str, _Held])
    _spare: _Held | None = None
    """A holder that waits for its session."""
    _afterwards: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What nobody needs to wait for, done when the answer is out."""
    _exports: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])
    """By pidfd: process and holder of the lease."""
    _mode: str = "privileged"
    _soft_limit: int = 1024
    _poll: select.poll = field(default_factory=select.poll)

    def run(self) -> None:
        """Serve until the keeper is gone; then nothing of any session is left."""
        os.umask(0o022)
        with contextlib.suppress(OSError):
            if not overlay.privileged():
                overlay.enter_user_namespace()
                self._mode = "user_namespace"
        self._soft_limit = _raise_descriptor_limit()
        gc.collect()
        gc.freeze()
        self._poll.register(self.keeper, select.POLLIN)
        try:
            while self._serve():
                pass
        finally:
            for holder in (*self._held.values(), *([self._spare] if self._spare else [])):
                self._close(holder)

    def _serve(self) -> bool:
        for fd, _event in self._poll.poll():
            if fd in self._exports:
                self._export_ended(fd)
            elif fd == self.keeper.fileno():
                received = link.receive(self.keeper)
                if received is None:
                    return False
                self._answer(*received)
        return True

    def _answer(self, request: link.Message, fds: list[int]) -> None:
        try:
            reply = self._do(cast("dict[str, object]", request), fds)
        except LayerError as error:
            reply = {"error": error.code, "detail": error.detail}
        except OSError as error:
            reply = {"error": "internal_error", "detail": os.strerror(error.errno or 0)}
        finally:
            for fd in fds:
                with contextlib.suppress(OSError):
                    os.close(fd)
        link.answer(self.keeper, {**reply, "id": request["id"]})
        while self._afterwards:
            with contextlib.suppress(OSError, LayerError):
                self._afterwards.pop()()

    def _do(self, request: dict[str, object], fds: list[int]) -> dict[str, object]:
        session_id = cast("str", request.get("session_id", ""))
        match request["op"]:
            case "open":
                return self._open(session_id, fds)
            case "publish":
                return _beside(fds, self._publish(session_id))
            case "view":
                return self._view(session_id)
            case "advance":
                return _beside(fds, self._advance(session_id))
            case "discard":
                return self._discard(session_id)
            case "squash":
                return _beside(fds, self._squash())
            case "migrate":
                return self._migrate(session_id, busy=request["busy"] is True)
            case "reclaim":
                return _beside(fds, {"kept": self._opened().reclaim()})
            case "status":
                return _beside(fds, self._status())
            case "export":
                return self._export(cast("list[str]", request["session_ids"]), request["names_only"] is True, fds)
            case _:
                raise LayerError("no such request")

    def _opened(self) -> Store:
        if self._store is None:
            setup = self.setup
            try:
                self._store = Store.open(setup.store, setup.base, setup.base_root_hash, self.door)
            except OSError as error:
                raise StoreDamaged(f"the store cannot be opened: {os.strerror(error.errno or 0)}") from error
        return self._store

    # -- sessions -----------------------------------------------------------------------------------------------

    def _open(self, session_id: str, fds: list[int]) -> dict[str, object]:
        _check_id(session_id)
        store = self._opened()
        held = store.leases.of(session_id)
        if held is None:
            publish.make_session(store, session_id)
            held = store.manifest
        self._end(session_id)
        holder = self._spare or self._fork_holder()
        self._spare = None
        self._held[session_id] = holder
        said = _said(holder.control)
        if "errno" not in said:
            request = {"op": "begin", "session_id": session_id, "layers": list(held.ids)}
            with contextlib.suppress(OSError):
                socket.send_fds(holder.control, [json.dumps(request).encode()], [fds[0]])
            said = _said(holder.control)
        if "errno" in said:
            self._end(session_id)
            publish.forget(store, session_id)
            number = cast("int", said["errno"])
            raise OverlayFailed(f"{said['what']}: {os.strerror(number)}")
        # The next session need not wait for the start of its processes.
        self._afterwards.append(self._prepare)
        return {"manifest_version": held.version, "layer_ids": list(held.ids)}

    def _view(self, session_id: str) -> dict[str, object]:
        """Make a session that has no processes: the keeper itself mounts it."""
        _check_id(session_id)
        store = self._opened()
        publish.make_session(store, session_id)
        return {"manifest_version": store.manifest.version, "layer_ids": list(store.manifest.ids)}

    def _prepare(self) -> None:
        if self._spare is None:
            self._spare = self._fork_holder()

    def _fork_holder(self) -> _Held:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place = Place(self.setup.store, self.setup.base, self.setup.target)
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (self._soft_limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            )
            hold(place, theirs, self.how)
        theirs.close()
        return _Held(pid, ours)

    def _end(self, session_id: str) -> None:
        """End everything in a session and wait until it is gone; its overlay is unmounted then."""
        holder = self._held.pop(session_id, None)
        if holder is not None:
            self._close(holder)

    def _close(self, holder: _Held) -> None:
        with contextlib.suppress(OSError):
            holder.control.send(b'{"op": "end"}')
        os.waitpid(holder.pid, 0)
        holder.control.close()

    def _discard(self, session_id: str) -> dict[str, object]:
        store = self._opened()
        existed = store.leases.of(session_id) is not None
        if existed:
            self._drop(session_id)
        return {"existed": existed}

    def _drop(self, session_id: str) -> None:
        self._end(session_id)
        publish.forget(self._opened(), session_id)

    def _publish(self, session_id: str) -> dict[str, object]:
        store = self._opened()
        made = publish.examine(store, session_id)
        result = _told(session_id, made)
        if made.reject_class:
            return {**result, "outcome": "rejected", "manifest_version": store.manifest.version}
        if not made.effective:
            self._afterwards.append(lambda: self._drop(session_id))
            return {**result, "outcome": "unchanged", "manifest_version": store.manifest.version}
        staged = publish.stage_merged(store, session_id, made)
        self._end(session_id)
        return {**result, **self._commit(session_id, made, staged)}

    def _commit(self, session_id: str, made: Plan, staged: publish.Staged) -> dict[str, object]:
        store = self._opened()
        layer = publish.commit(store, session_id, made, staged)
        told = {"layer_id": layer.layer_id, "entries": layer.entries, "bytes": layer.size}
        stack = {"manifest_version": store.manifest.version, "layers": len(store.manifest.layers)}
        return {"outcome": "published", **told, **stack}

    def _advance(self, session_id: str) -> dict[str, object]:
        """Publish what a session wrote and put it onto the layers in force; its processes live on.

        `pending` where one of them has something of the workspace open: everything stays as it was.
        """
        store = self._opened()
        lease, holder = store.leases.of(session_id), self._held.get(session_id)
        if lease is None or holder is None:
            raise NoSuchSession(session_id)
        now: dict[str, object] = {"session_id": session_id, "manifest_version": store.manifest.version}
        if lease.ids == store.manifest.ids and not publish.has_written(store, session_id):
            return {**now, "outcome": "unchanged"}
        if not _asked(holder, {"op": "leave"}).get("left"):
            return {**now, "manifest_version": lease.version, "outcome": "pending"}
        try:
            result = {**now, **self._advanced(session_id)}
        except (LayerError, OSError):
            # Its tree is whole, and where it was.
            _asked(holder, {"op": "enter", "session_id": session_id, "layers": list(lease.ids)})
            raise
        if result["outcome"] != "published":
            publish.forget(store, session_id)
        try:
            publish.make_session(store, session_id)
            said = _asked(holder, {"op": "enter", "session_id": session_id, "layers": list(store.manifest.ids)})
            if "errno" in said:
                raise OverlayFailed(str(said["what"]))
        except (LayerError, OSError):
            self._drop(session_id)
            raise
        return {**result, "layer_ids": list(store.manifest.ids)}

    def _advanced(self, session_id: str) -> dict[str, object]:
        store = self._opened()
        made = publish.examine(store, session_id)
        result = _told(session_id, made)
        if made.reject_class:
            return {**result, "outcome": "rejected"}
        if not made.effective:
            return {**result, "outcome": "unchanged"}
        return {**result, **self._commit(session_id, made, publish.stage_merged(store, session_id, made))}

    # -- the stack ----------------------------------------------------------------------------------------------

    def _squash(self) -> dict[str, object]:
        store = self._opened()
        made = squash(store)
        blocks = [{"squashed_layer_id": each.layer.layer_id, "replaced_layer_ids": [*each.replaced]} for each in made]
        return {"manifest_version": store.manifest.version, "blocks": blocks}

    def _migrate(self, session_id: str, *, busy: bool) -> dict[str, object]:
        """Move a session onto the layers that are in force, as far as it can be moved."""
        store = self._opened()
        lease, holder = store.leases.of(session_id), self._held.get(session_id)
        if lease is None or holder is None:
            return {"disposition": "session_gone"}
        current = store.leases.current(session_id)
        if lease.ids == current:
            return {"disposition": "identity"}
        if busy:
            return {"disposition": "leased", "reason": "commands run in the session"}
        request = {"op": "migrate", "from": list(lease.ids), "to": list(current)}
        holder.control.send(json.dumps(request).encode())
        said = _said(holder.control)
        if "errno" in said:
            said = dict[str, object](disposition="faulty", reason="the session's holder is gone")
        if said["disposition"] == "migrated":
            moved = store.leases.moved(session_id, store.manifest)
            return {**said, "manifest_version": moved.version, "layer_ids": list(moved.ids)}
        if said["disposition"] == "faulty":
            self._discard(session_id)
        return said

    def _status(self) -> dict[str, object]:
        store = self._opened()
        layers = [
            {"layer_id": each.layer_id, "entries": each.entries, "bytes": each.size} for each in store.manifest.layers
        ]
        return {
            "manifest_version": store.manifest.version,
            "workspace_root": self.setup.target,
            "base_root_hash": store.base_root_hash,
            "layers": layers,
            "leased_layer_ids": sorted(store.leases.layer_ids() - set(store.manifest.ids)),
            "mount_mode": self._mode,
            "live_remount": True,
        }

    # -- export -------------------------------------------------------------------------------------------------

    def _export(self, session_ids: list[str], names_only: bool, fds: list[int]) -> dict[str, object]:
        """Stream the layers into the pipe that came along, in a process of its own: they stay until it has ended."""
        store = self._opened()
        pipe = fds[0]
        pid = os.fork()
        if pid == 0:
            _send_export(store, pipe, (self.keeper.fileno(), *self._controls()), session_ids, names_only=names_only)
        ended = os.pidfd_open(pid)
        holder = f"export {pid}"
        store.leases.hold(holder, store.manifest)
        self._exports[ended] = (pid, holder)
        self._poll.register(ended, select.POLLIN)
        return {}

    def _controls(self) -> list[int]:
        spare = [self._spare] if self._spare else []
        return [each.control.fileno() for each in (*self._held.values(), *spare)]

    def _export_ended(self, ended: int) -> None:
        pid, holder = self._exports.pop(ended)
        self._poll.unregister(ended)
        os.close(ended)
        os.waitpid(pid, 0)
        store = self._opened()
        store.leases.give_up(holder)
        store.reclaim()


def _check_id(session_id: str) -> None:
    if not SESSION_ID.match(session_id):
        raise LayerError("the id of the session is malformed")


def _asked(holder: _Held, request: dict[str, object]) -> dict[str, object]:
    with contextlib.suppress(OSError):
        holder.control.send(json.dumps(request).encode())
    return _said(holder.control)


def _said(control: socket.socket) -> dict[str, object]:
    """What a holder answers; one that is gone has failed."""
    gone = b'{"errno": 1, "what": "holder"}'
    try:
        data = control.recv(64 * 1024)
    except OSError:
        data = gone
    return cast("dict[str, object]", json.loads(data or gone))


def _send_export(
    store: Store, pipe: int, others: tuple[int, ...], session_ids: list[str], *, names_only: bool
) -> NoReturn:
    status = 0
    try:
        guest_calls.die_with_parent(signal.SIGKILL)
        for fd in others:
            os.close(fd)
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)
        manifest = store.manifest
        facts = (manifest.version, manifest.ids, session_ids)
        with store.view(manifest, base=False) as layers, store.open_layers((), base=True) as base:
            held = bytearray()
            for record in export.fold(layers.fds, base, facts, names_only=names_only):
                held += export.frame(record)
                # Each write may wake the reader: thousands of small files would be as many turns.
                if len(held) >= _EXPORT_BYTES:
                    _write_all(pipe, held)
                    held = bytearray()
            _write_all(pipe, held)
    except BaseException:  # noqa: BLE001 - a process entry point; a stream without its end tells the reader
        status = 70
    os._exit(status)


def _write_all(pipe: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _beside(fds: list[int], value: dict[str, object]) -> dict[str, object]:
    """Answer by the file that came along: the answer may be larger than a message of the link."""
    data = json.dumps(value).encode()
    try:
        _write_all(fds[0], data)
    except OSError:
        raise NoSpace("there is no memory for the answer") from None
    return {"bytes": len(data)}


def _told(session_id: str, made: Plan) -> dict[str, object]:
    """What a publish says about paths, bounded; bytes that are no text are replaced."""
    result: dict[str, object] = {"session_id": session_id}
    if made.merged:
        result["merged"] = [_text(path) for path in sorted(made.merged)[:_SHOWN_PATHS]]
    if made.dropped:
        result["dropped"] = [_text(path) for path in made.dropped[:_SHOWN_PATHS]]
    if made.reject_class:
        result["reject_class"] = made.reject_class
        result["conflicts"] = [{"path": _text(path), "reason": why} for path, why in made.conflicts[:_SHOWN_PATHS]]
        result["conflict_count"] = len(made.conflicts)
    return result


def _text(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")[:_SHOWN_CHARACTERS]
