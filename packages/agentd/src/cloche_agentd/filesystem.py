"""The filesystem.Filesystem service."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from . import fields, file_metadata, limits
from .accounts import Accounts
from .config import AgentConfig, KeeperHooks, User
from .failures import AgentError, from_os_error, invalid_argument
from .listing import list_below
from .paths import Resolver, absolute, display
from .removal import remove_tree
from .watching import Watchers
from .workspace_view import FilesView, PlainView

_STAT_STEP: Final = 500

Json = Mapping[str, object]
Method = Callable[[Json, User], Awaitable[Json]]


class FilesystemService:
    """Answers the Filesystem RPCs."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, view: FilesView | None = None) -> None:
        self._hooks = hooks
        self._view: FilesView = view or PlainView()
        self._resolver = Resolver(config)
        self._accounts = Accounts(config)
        self.watchers = Watchers(hooks, self._watchable, self._entry)
        self.unary = {
            **self.watchers.unary,
            "Stat": self._looking(self._stat),
            "ListDir": self._looking(self._list),
            "MakeDir": self._changing(self._make),
            "Move": self._changing(self._move),
            "Remove": self._changing(self._remove),
        }

    def _looking(self, method: Method) -> Method:
        async def look(request: Json, user: User) -> Json:
            async with self._view.reading():
                return await method(request, user)

        return look

    def _changing(self, method: Method) -> Method:
        async def change(request: Json, user: User) -> Json:
            return await self._view.change(lambda: method(request, user))

        return change

    async def _stat(self, request: Json, user: User) -> Json:
        path = absolute(fields.text(request, "path"), user)
        with self._hooks.become(user):
            return {"entry": self._entry(self._resolver.entry(path), path)}

    async def _list(self, request: Json, user: User) -> Json:
        path = absolute(fields.text(request, "path"), user)
        depth = max(1, fields.whole(request, "depth", 1))
        limit = fields.whole(request, "limit", limits.LIST_ENTRIES)
        if depth > limits.LIST_DEPTH or not 0 < limit <= limits.LIST_ENTRIES:
            raise invalid_argument("depth or limit is out of range", "depth")
        with self._hooks.become(user):
            folder = self._resolver.target(path)
            _check_folder(folder, path)
        try:
            found = await list_below(folder, posixpath.normpath(path), depth, limit, lambda: self._hooks.become(user))
        except OSError as error:
            raise from_os_error(error, path) from error
        entries: list[Json] = []
        for start in range(0, len(found.entries), _STAT_STEP):
            if start:
                await asyncio.sleep(0)
            with self._hooks.become(user):
                for shown, real in found.entries[start : start + _STAT_STEP]:
                    try:
                        entries.append(self._entry(real, shown))
                    except AgentError:
                        continue
        return {"entries": entries, "total": found.total}

    async def _make(self, request: Json, user: User) -> Json:
        path = absolute(fields.text(request, "path"), user)
        with self._hooks.become(user):
            target = self._resolver.target(path)
            if os.path.isdir(target):
                raise AgentError("already_exists", f"directory already exists: {path}", "file_exists")
            if os.path.lexists(target):
                raise AgentError("invalid_argument", f"path already exists but is not a directory: {path}",
                                 "file_not_directory")  # fmt: skip
            try:
                os.makedirs(target, exist_ok=True)
            except OSError as error:
                raise from_os_error(error, path) from error
            return {"entry": self._entry(target, path)}

    async def _move(self, request: Json, user: User) -> Json:
        source = absolute(fields.text(request, "source"), user)
        destination = absolute(fields.text(request, "destination"), user)
        with self._hooks.become(user):
            real_source = self._resolver.entry(source)
            real_destination = self._resolver.entry(destination)
            try:
                os.lstat(real_source)
                os.makedirs(posixpath.dirname(real_destination), exist_ok=True)
                os.rename(real_source, real_destination)
            except OSError as error:
                raise from_os_error(error, source) from error
            return {"entry": self._entry(real_destination, destination)}

    async def _remove(self, request: Json, user: User) -> Json:
        path = absolute(fields.text(request, "path"), user)
        with self._hooks.become(user):
            target = self._resolver.entry(path)
            if target == "/":
                raise AgentError("permission_denied", "the root cannot be removed", "file_permission_denied")
        try:
            with self._hooks.become(user):
                is_folder = stat.S_ISDIR(os.lstat(target).st_mode)
                if not is_folder:
                    os.unlink(target)
            if is_folder:
                await remove_tree(target, lambda: self._hooks.become(user))
        except FileNotFoundError:
            return {"removed": False}
        except OSError as error:
            raise from_os_error(error, path) from error
        return {"removed": True}

    def _watchable(self, path: str) -> str:
        folder = self._resolver.target(path)
        if self._view.covers(folder):
            text = "the workspace is layers: changes of it cannot be watched"
            raise AgentError("unimplemented", text, "unsupported_operation")
        _check_folder(folder, path)
        return folder

    # -- entries ------------------------------------------------------------------------------------------------

    def _entry(self, real: str, shown: str) -> Json:
        try:
            own = os.lstat(real)
        except OSError as error:
            raise from_os_error(error, shown) from error
        is_link = stat.S_ISLNK(own.st_mode)
        entry: dict[str, object] = {
            "name": display(posixpath.basename(shown) or "/"),
            "type": _type_of(_target_mode(real) if is_link else own.st_mode),
            "path": display(posixpath.normpath(shown)),
            "size": str(own.st_size),
            "mode": stat.S_IMODE(own.st_mode),
            "permissions": stat.filemode(own.st_mode),
            "owner": self._accounts.user(own.st_uid),
            "group": self._accounts.group(own.st_gid),
            "modifiedTime": _timestamp(own.st_mtime_ns),
        }
        metadata = file_metadata.read(real) if stat.S_ISREG(own.st_mode) else {}
        if metadata:
            entry["metadata"] = metadata
        if is_link:
            entry["isSymlink"] = True
            entry["symlinkTarget"] = display(_link_target(real))
        return entry


def _check_folder(folder: str, asked: str) -> None:
    try:
        mode = os.stat(folder).st_mode
    except OSError as error:
        raise from_os_error(error, asked) from error
    if not stat.S_ISDIR(mode):
        raise AgentError("invalid_argument", f"path is not a directory: {asked}", "file_not_directory")


def _target_mode(link: str) -> int:
    try:
        return os.stat(link).st_mode
    except OSError:
        return 0


def _link_target(link: str) -> str:
    try:
        return os.path.realpath(link)
    except OSError:
        return ""


def _type_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "FILE_TYPE_FILE"
    if stat.S_ISDIR(mode):
        return "FILE_TYPE_DIRECTORY"
    return "FILE_TYPE_UNSPECIFIED"


def _timestamp(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00Z"
