"""Files of a sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, cast
from urllib.parse import quote

from pydantic import MISSING

from cloche_contract import agent
from cloche_contract.agent import ROUTE_READ_FILE, ROUTE_WRITE_FILE
from cloche_contract.errors import FileExists, FileNotFound, FileTooLarge, InvalidArgument, NotText, ProviderFailed

from .data_plane import AgentChannel, agent_client, answered
from .link import SandboxLink
from .requests import build
from .results import FileEntry, FileListing, WriteResult
from .watching import AsyncWatch, open_watch

__all__ = ["AsyncFiles"]

READ_LIMIT_BYTES = 67_108_864
LIST_LIMIT = 100_000
REPLY_LIMIT_BYTES = 1_048_576

_BYTES = {"content-type": "application/octet-stream"}
_METADATA_NAME = re.compile(r"[a-z0-9._-]{1,200}")
_METADATA_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_IDENTITY = {"accept-encoding": "identity"}
_TYPES: Mapping[str, Literal["file", "directory", "symlink"]] = {
    "FILE_TYPE_FILE": "file",
    "FILE_TYPE_DIRECTORY": "directory",
    "FILE_TYPE_SYMLINK": "symlink",
}


class AsyncFiles:
    """Reads and writes the files of one sandbox. Paths are absolute, or relative to the user's home."""

    def __init__(self, link: SandboxLink) -> None:
        self._channel = AgentChannel(link)

    async def read(self, path: str, *, encoding: str = "utf-8", max_bytes: int = READ_LIMIT_BYTES) -> str:
        """Read a file as text.

        Raises:
            NotText: it is not text in that encoding.
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
            FileTooLarge: it has more than `max_bytes`.
        """
        data = await self.read_bytes(path, max_bytes=max_bytes)
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            raise NotText from None
        except LookupError:
            raise InvalidArgument(field="encoding", rule="enum") from None

    async def read_bytes(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        """Read a file as bytes. A file that is too large is refused before it is read.

        Raises:
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
            FileTooLarge: it has more than `max_bytes`.
        """
        async with self._channel.send("GET", f"{ROUTE_READ_FILE}?path={_quoted(path)}", headers=_IDENTITY) as reply:
            size = reply.header("content-length")
            if size.isdigit() and int(size) > max_bytes:
                raise FileTooLarge(size=int(size), limit=max_bytes)
            data = await reply.read(max_bytes)
        if data is None:
            raise FileTooLarge(limit=max_bytes)
        return data

    async def write(
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
        content = _encoded(data) if isinstance(data, str) else data
        query = f"{ROUTE_WRITE_FILE}?path={_quoted(path)}" + (
            f"&mode={quote(mode, safe='')}" if mode is not None else ""
        )
        headers = {**_BYTES, **_metadata_headers(metadata)} if metadata else _BYTES
        async with self._channel.send("POST", query, content=content, headers=headers) as reply:
            body = await reply.read(REPLY_LIMIT_BYTES)
        written = _first(body)
        return WriteResult(path=str(written.get("path", path)), size=int(written.get("size", len(content))))

    async def list(self, path: str = "/", *, depth: int = 1, limit: int = LIST_LIMIT) -> FileListing:
        """The entries of a directory, sorted by path; at most `limit` of them, and how many there are.

        Args:
            depth: how far below the directory to look; 1 is its own entries.

        Raises:
            FileNotFound, FileNotDirectory, FilePermissionDenied: it cannot be listed.
        """
        request = build(agent.ListDirRequest, path=path, depth=depth, limit=limit)
        answer = await answered(agent_client(self._channel).filesystem_list_dir(request))
        found = [] if answer.entries is MISSING else answer.entries
        entries = sorted(map(_entry, found), key=lambda entry: entry.path)
        total = 0 if answer.total is MISSING else answer.total
        return FileListing(tuple(entries[:limit]), max(total, len(entries)))

    async def get_info(self, path: str) -> FileEntry:
        """Describe one path.

        Raises:
            FileNotFound, FilePermissionDenied: it cannot be told.
        """
        request = build(agent.StatRequest, path=path)
        return _entry((await answered(agent_client(self._channel).filesystem_stat(request))).entry)

    async def exists(self, path: str) -> bool:
        """Whether there is anything at that path."""
        try:
            await self.get_info(path)
        except FileNotFound:
            return False
        return True

    async def make_dir(self, path: str) -> bool:
        """Make a directory and its parents; False when it is there already."""
        try:
            await answered(agent_client(self._channel).filesystem_make_dir(build(agent.MakeDirRequest, path=path)))
        except FileExists:
            return False
        return True

    async def remove(self, path: str) -> bool:
        """Remove a file, or a directory with all it holds; False when there is none."""
        done = await answered(agent_client(self._channel).filesystem_remove(build(agent.RemoveRequest, path=path)))
        # The agent of a platform may not tell.
        return done.removed is MISSING or done.removed

    async def rename(self, source: str, destination: str) -> FileEntry:
        """Move a file or directory.

        Raises:
            FileNotFound: there is no source.
        """
        request = build(agent.MoveRequest, source=source, destination=destination)
        return _entry((await answered(agent_client(self._channel).filesystem_move(request))).entry)

    async def watch(self, path: str, *, recursive: bool = False) -> AsyncWatch:
        """Watch a directory; returns when every change from now on is told.

        Args:
            recursive: whether what lies below its sub-directories is told too, new ones included.

        Raises:
            FileNotFound, FileNotDirectory, FilePermissionDenied: it cannot be watched.
            UnsupportedOperation: too much is watched, or it lies on a network file system.
        """
        return await open_watch(self._channel, path, recursive=recursive)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A lone surrogate; the file must stay untouched rather than get something else.
        raise InvalidArgument(field="content", rule="unicode") from None


def _metadata_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata travels in headers, which know no case and no spaces at the ends."""
    for name, value in metadata.items():
        if not _METADATA_NAME.fullmatch(name) or not _METADATA_VALUE.fullmatch(value):
            raise InvalidArgument(field="metadata", rule="pattern")
    return {f"x-metadata-{name}": value for name, value in metadata.items()}


def _quoted(path: str) -> str:
    try:
        return quote(path, safe="/")
    except UnicodeEncodeError:
        raise InvalidArgument(field="path", rule="unicode") from None


def _first(body: bytes | None) -> Mapping[str, Any]:
    try:
        value: object = json.loads(body or b"null")
    except ValueError as error:
        raise ProviderFailed from error
    items = cast("list[object]", value) if isinstance(value, list) else []
    if not items or not isinstance(items[0], dict):
        raise ProviderFailed
    return cast("Mapping[str, Any]", items[0])


def _entry(found: agent.Entry) -> FileEntry:
    is_link = found.isSymlink is True
    return FileEntry(
        name=found.name,
        path=found.path,
        type="symlink" if is_link else _TYPES.get(str(found.type), "other"),
        size=0 if found.size is MISSING else int(found.size),
        mode=None if found.mode is MISSING else found.mode,
        owner=None if found.owner is MISSING else found.owner,
        group=None if found.group is MISSING else found.group,
        modified=None if found.modifiedTime is MISSING else found.modifiedTime,
        target=None if found.symlinkTarget is MISSING else found.symlinkTarget,
        metadata={} if found.metadata is MISSING else dict(found.metadata),
    )
