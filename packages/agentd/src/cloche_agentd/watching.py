"""Watchers of the filesystem.Filesystem service: one stream each, or polled."""

from __future__ import annotations

import asyncio
import errno
import posixpath
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from . import connect, fields, guest_calls, limits
from .config import KeeperHooks, User
from .exchange import Exchange
from .failures import AgentError, from_os_error
from .folder_watch import CHMOD, CREATE, OVERFLOW, WRITE, Change, FolderWatch
from .paths import absolute, display
from .process_rpc import Keepalive, keepalive_interval, read_stream_request, refuse_stream

_KEEPALIVE: Final = connect.message({"keepalive": {}})
_OVERFLOW: Final = connect.message({"overflow": {}})
_STILL_THERE: Final = frozenset({CREATE, WRITE, CHMOD})
# NFS, SMB, CIFS, SMB2, FUSE: statfs(2). A change that another machine makes is not told by the kernel.
_NETWORK_TYPES: Final = frozenset({0x6969, 0x517B, 0xFF534D42, 0xFE534D42, 0x65735546})

Json = Mapping[str, object]


@dataclass(slots=True)
class _Watched:
    """A watch, for whom it is, and how its changes are told."""

    watch: FolderWatch
    user: User
    shown: str
    include_entry: bool
    waiting: list[Change] = field(default_factory=list[Change])
    polled_at: float = 0.0


class Watchers:
    """All watchers of the sandbox."""

    def __init__(
        self, hooks: KeeperHooks, folder_of: Callable[[str], str], entry_of: Callable[[str, str], Json]
    ) -> None:
        self._hooks = hooks
        self._folder_of = folder_of
        self._entry_of = entry_of
        self._loop = asyncio.get_running_loop()
        self._polled: dict[str, _Watched] = {}
        self._count = 0
        self.unary = {"CreateWatcher": self._create, "GetWatcherEvents": self._events, "RemoveWatcher": self._remove}

    async def watch_dir(self, exchange: Exchange, user: User) -> None:
        """Stream what changes below a folder until the client leaves."""
        try:
            request = await read_stream_request(exchange)
            exchange.watch()
            watched = self._open(request, user)
        except AgentError as error:
            refuse_stream(exchange, error)
            return
        keepalive = Keepalive(exchange, _KEEPALIVE, keepalive_interval(exchange))
        fd = watched.watch.fd

        def tell() -> None:
            for change in watched.watch.collect():
                keepalive.touch()
                exchange.write(self._frame(watched, change))
            if exchange.paused:
                # The kernel keeps events, and says so when it had to drop some.
                self._loop.remove_reader(fd)

        def gone() -> None:
            keepalive.stop()
            self._close(watched)

        exchange.on_gone = gone
        exchange.on_resume = lambda: self._loop.add_reader(fd, tell)
        exchange.begin(200, connect.STREAM_TYPE)
        exchange.write(connect.message({"start": {}}))
        self._loop.add_reader(fd, tell)
        if exchange.gone:
            gone()

    # -- polled -------------------------------------------------------------------------------------------------

    async def _create(self, request: Json, user: User) -> Json:
        watched = self._open(request, user)
        watched.polled_at = self._loop.time()
        # Read as events come and not when they are asked for: a new folder is watched as soon as it is there.
        self._loop.add_reader(watched.watch.fd, self._gather, watched)
        watcher = uuid.uuid4().hex
        self._polled[watcher] = watched
        return {"watcherId": watcher}

    async def _events(self, request: Json, _user: User) -> Json:
        watched = self._found(request)
        self._gather(watched, reads=limits.WATCH_READS_WHOLE)
        watched.polled_at = self._loop.time()
        changes, watched.waiting = watched.waiting, []
        reply: dict[str, object] = {"events": [self._told(watched, change) for change in changes if change.type]}
        if OVERFLOW in changes:
            reply["overflow"] = True
        return reply

    async def _remove(self, request: Json, _user: User) -> Json:
        watched = self._found(request)
        del self._polled[fields.text(request, "watcherId")]
        self._close(watched)
        return {}

    def _found(self, request: Json) -> _Watched:
        watched = self._polled.get(fields.text(request, "watcherId"))
        if watched is None:
            raise AgentError("not_found", "watcher not found", "invalid_argument")
        return watched

    def _gather(self, watched: _Watched, reads: int = limits.WATCH_READS) -> None:
        changes = watched.watch.collect(reads)
        room = limits.WATCH_EVENTS - len(watched.waiting)
        watched.waiting.extend(changes[:room] if room > 0 else ())
        if len(changes) > room and OVERFLOW not in watched.waiting[-1:]:
            watched.waiting.append(OVERFLOW)

    # -- both ---------------------------------------------------------------------------------------------------

    def _open(self, request: Json, user: User) -> _Watched:
        path = absolute(fields.text(request, "path"), user)
        recursive = fields.flag(request, "recursive")
        include_entry = fields.flag(request, "includeEntry")
        network_allowed = fields.flag(request, "allowNetworkMounts")
        self._make_room()
        try:
            with self._hooks.become(user):
                folder = self._folder_of(path)
                network = not network_allowed and guest_calls.filesystem_type(folder) in _NETWORK_TYPES
            if network:
                text = "cannot watch a path on a network filesystem mount"
                raise AgentError("invalid_argument", text, "unsupported_operation")
            watch = FolderWatch(folder, recursive=recursive, become=lambda: self._hooks.become(user))
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM):
                text = "too many watched folders; watch fewer, or one without its sub-folders"
                raise AgentError("resource_exhausted", text, "unsupported_operation") from None
            raise from_os_error(error, path) from error
        self._count += 1
        return _Watched(watch, user, posixpath.normpath(path), include_entry)

    def _make_room(self) -> None:
        """Refuse one watcher too many, unless a polled one was forgotten."""
        if self._count < limits.WATCHERS:
            return
        oldest = min(self._polled, key=lambda key: self._polled[key].polled_at, default=None)
        if oldest is None or self._loop.time() - self._polled[oldest].polled_at < limits.WATCHER_IDLE_S:
            raise AgentError("resource_exhausted", "too many watchers; remove some", "unsupported_operation")
        self._close(self._polled.pop(oldest))

    def _close(self, watched: _Watched) -> None:
        if watched.watch.fd >= 0:
            self._loop.remove_reader(watched.watch.fd)
            watched.watch.close()
            self._count -= 1

    def _frame(self, watched: _Watched, change: Change) -> bytes:
        return _OVERFLOW if change is OVERFLOW else connect.message({"filesystem": self._told(watched, change)})

    def _told(self, watched: _Watched, change: Change) -> Json:
        event: dict[str, object] = {"name": display(change.name), "type": change.type}
        if watched.include_entry and change.type in _STILL_THERE:
            try:
                with self._hooks.become(watched.user):
                    shown = posixpath.join(watched.shown, change.name)
                    event["entry"] = self._entry_of(posixpath.join(watched.watch.folder, change.name), shown)
            except AgentError:
                return event
        return event
