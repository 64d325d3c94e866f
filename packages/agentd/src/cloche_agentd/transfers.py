"""GET and POST /files: whole files over HTTP, streamed, written atomically."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import posixpath
import re
import stat
import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from . import limits
from .config import AgentConfig, KeeperHooks, User
from .exchange import Exchange
from .failures import AgentError, from_os_error, invalid_argument
from .file_metadata import keep, metadata_of
from .multipart import Data, Parser, Part, PartEnd, boundary_of
from .paths import Resolver, absolute, check_regular, open_regular
from .workspace_view import FilesView, PlainView

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")
_MODE: Final = re.compile(r"[0-7]{3,4}\Z")
_NEW_FILE_MODE: Final = 0o644
_NONE: Final[Mapping[str, str]] = {}
TEMPORARY_PREFIX: Final = ".cloche-upload-"
REPLACING_PREFIX: Final = TEMPORARY_PREFIX + "over-"
"""Of a temporary file whose target exists: watchers tell a write and not a creation."""


class FileTransfers:
    """Downloads and uploads."""

    def __init__(
        self,
        config: AgentConfig,
        hooks: KeeperHooks,
        uploaded: Callable[[str], None],
        view: FilesView | None = None,
    ) -> None:
        self._hooks = hooks
        self._view: FilesView = view or PlainView()
        self._resolver = Resolver(config)
        self._uploaded = uploaded

    # -- download -----------------------------------------------------------------------------------------------

    async def download(self, exchange: Exchange, user: User) -> None:
        """Send a regular file, whole or one range of it."""
        path = absolute(exchange.head.parameters().get("path", ""), user)
        async with self._view.reading():
            with self._hooks.become(user):
                fd = open_regular(self._resolver.target(path), path)
        try:
            size = os.fstat(fd).st_size
            wanted = _range_of(exchange.head.headers.get("range"), size)
            if wanted is None:
                await self._send(exchange, fd, 200, 0, size, [("accept-ranges", "bytes")])
            else:
                start, end = wanted
                fields = [("content-range", f"bytes {start}-{end}/{size}")]
                await self._send(exchange, fd, 206, start, end + 1 - start, fields)
        finally:
            os.close(fd)

    async def _send(
        self, exchange: Exchange, fd: int, status: int, offset: int, length: int, fields: list[tuple[str, str]]
    ) -> None:
        exchange.begin(status, "application/octet-stream", fields, length)
        left = length
        while left:
            piece = os.pread(fd, min(left, limits.FILE_CHUNK_BYTES), offset)
            if not piece:
                # The file shrank while it was read: a short answer must not look complete.
                exchange.abort()
                return
            offset += len(piece)
            left -= len(piece)
            if not left:
                exchange.finish(piece)
                return
            exchange.write(piece)
            await exchange.drain()
        exchange.finish()

    # -- upload -------------------------------------------------------------------------------------------------

    async def upload(self, exchange: Exchange, user: User) -> None:
        """Write the files of the request; each one appears whole or not at all."""
        parameters = exchange.head.parameters()
        path = parameters.get("path")
        mode = mode_of(parameters.get("mode"))
        metadata = metadata_of(exchange.head.headers)
        content_type = exchange.head.headers.get("content-type", "")
        body = decoded(exchange)
        if content_type.startswith("multipart/form-data"):
            written = await self._upload_parts(body, boundary_of(content_type), path, mode, user, metadata)
        else:
            upload = await self.open(path or "", mode, user)
            try:
                async for piece in body:
                    upload.write(piece)
                written = [await self.commit(upload, metadata)]
            finally:
                upload.discard()
        exchange.reply(200, json.dumps(written).encode())

    async def _upload_parts(
        self,
        body: AsyncIterator[bytes],
        boundary: bytes,
        path: str | None,
        mode: int | None,
        user: User,
        metadata: Mapping[str, str],
    ) -> list[dict[str, object]]:
        parser = Parser(boundary)
        written: list[dict[str, object]] = []
        upload: Upload | None = None
        try:
            async for piece in body:
                for event in parser.feed(piece):
                    match event:
                        case Part(name, filename):
                            upload = None
                            if name == "file" or filename is not None:
                                upload = await self.open(path or filename or "", mode, user)
                        case Data(data):
                            if upload is not None:
                                upload.write(data)
                        case PartEnd():
                            if upload is not None:
                                written.append(await self.commit(upload, metadata))
                                upload = None
            if not parser.complete:
                raise invalid_argument("the multipart body ends too early", "body")
        finally:
            if upload is not None:
                upload.discard()
        if not written:
            raise invalid_argument("the request has no file", "body")
        return written

    async def commit(self, upload: Upload, metadata: Mapping[str, str] = _NONE) -> dict[str, object]:
        """Put a file in place and describe it."""

        async def put() -> dict[str, object]:
            return upload.commit(metadata)

        described = await self._view.change(put)
        upload.discard()
        async with self._view.reading():
            self._uploaded(upload.target)
        return described

    async def open(self, path: str, mode: int | None, user: User) -> Upload:
        """Begin to write a file."""
        async with self._view.reading():
            place = absolute(path, user)
            with self._hooks.become(user):
                staged = self._view.covers(self._resolver.target(place))
            kind = functools.partial(StagedUpload, self._view.staging) if staged else Upload
            return kind(self._hooks, self._resolver, user, place, mode)


class Upload:
    """One file being written beside its target, and renamed over it at the end."""

    def __init__(self, hooks: KeeperHooks, resolver: Resolver, user: User, path: str, mode: int | None) -> None:
        self._hooks = hooks
        self._resolver = resolver
        self._user = user
        self._path = path
        self.size = 0
        with hooks.become(user):
            try:
                self.target = resolver.target(path)
                final_mode, owner = _inherited(self.target, path, mode)
                self._temporary = self._name()
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._fd = os.open(self._temporary, flags, 0o600)
            except OSError as error:
                raise from_os_error(error, path) from error
            self._mode = final_mode
            if owner is not None:
                # Only root may give files away; for everyone else the new file is simply the user's.
                with contextlib.suppress(OSError):
                    os.fchown(self._fd, *owner)

    def _name(self) -> str:
        """Name the file while it is written; the folder is there afterwards."""
        folder = posixpath.dirname(self.target)
        os.makedirs(folder, exist_ok=True)
        prefix = REPLACING_PREFIX if os.path.lexists(self.target) else TEMPORARY_PREFIX
        return posixpath.join(folder, f"{prefix}{uuid.uuid4().hex}")

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            AgentError: disk_full, file_too_large.
        """
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise from_os_error(error, self._path) from error
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Take back what was written beyond a size."""
        os.ftruncate(self._fd, size)
        os.lseek(self._fd, size, os.SEEK_SET)
        self.size = size

    def commit(self, metadata: Mapping[str, str] = _NONE) -> dict[str, object]:
        """Put the file in place and describe it. A file that was there before loses its metadata to the new one."""
        keep(self._fd, metadata, self._path)
        try:
            # Only now: writing takes set-user-id bits away.
            os.fchmod(self._fd, self._mode)
            if self.size <= limits.FSYNC_BYTES:
                # A large file's flush would hold up every other request of this single-threaded process.
                os.fsync(self._fd)
            with self._hooks.become(self._user):
                os.rename(self._temporary, self.target)
        except OSError as error:
            raise from_os_error(error, self._path) from error
        os.close(self._fd)
        self._fd = -1
        name = posixpath.basename(self._path)
        described: dict[str, object] = {"path": self._path, "name": name, "type": "file", "size": self.size}
        return {**described, "metadata": dict(metadata)} if metadata else described

    def discard(self) -> None:
        """Remove what was written, unless it is in place."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        with self._hooks.become(self._user):
            try:
                os.unlink(self._temporary)
            except OSError:
                return


class StagedUpload(Upload):
    """A file of a workspace of layers: it waits outside until it is whole, since what is in there is published."""

    def __init__(
        self, staging: str, hooks: KeeperHooks, resolver: Resolver, user: User, path: str, mode: int | None
    ) -> None:
        self._staging = staging
        self._asked_mode = mode
        super().__init__(hooks, resolver, user, path, mode)

    def _name(self) -> str:
        return posixpath.join(self._staging, uuid.uuid4().hex)

    def commit(self, metadata: Mapping[str, str] = _NONE) -> dict[str, object]:
        """Copy it into place and describe it; once more where somebody else was first."""
        placed = Upload(self._hooks, self._resolver, self._user, self._path, self._asked_mode)
        try:
            offset = 0
            while piece := os.pread(self._fd, limits.FILE_CHUNK_BYTES, offset):
                placed.write(piece)
                offset += len(piece)
            described = placed.commit(metadata)
        finally:
            placed.discard()
        return described


def _inherited(target: str, path: str, mode: int | None) -> tuple[int, tuple[int, int] | None]:
    """Return mode and owner for the new file; an existing one keeps its own unless a mode is asked for."""
    try:
        existing = os.lstat(target)
    except FileNotFoundError:
        return (_NEW_FILE_MODE if mode is None else mode), None
    check_regular(existing.st_mode, path)
    try:
        # A rename needs rights on the folder only. Ask for those on the file too, as any program would have to.
        os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise
    kept = stat.S_IMODE(existing.st_mode) if mode is None else mode
    return kept, (existing.st_uid, existing.st_gid)


def mode_of(value: str | None) -> int | None:
    """Return octal permission bits."""
    if value is None:
        return None
    if not _MODE.match(value):
        raise invalid_argument("mode must be three or four octal digits", "mode")
    return int(value, 8)


def _range_of(value: str | None, size: int) -> tuple[int, int] | None:
    """Return first and last byte of the one range that is asked for; None sends the whole file."""
    found = _RANGE.match(value) if value else None
    if found is None or not (found[1] or found[2]):
        return None
    if found[1]:
        start = int(found[1])
        end = min(int(found[2]), size - 1) if found[2] else size - 1
    else:
        start, end = max(0, size - int(found[2])), size - 1
    if start > end:
        raise AgentError("out_of_range", "the range is outside the file", "invalid_argument", status=416)
    return start, end


async def decoded(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the body's bytes, gzip undone, never more than a chunk at once."""
    coding = exchange.head.headers.get("content-encoding", "identity").lower()
    if coding not in ("identity", "gzip", ""):
        raise AgentError("invalid_argument", "unsupported content-encoding", "invalid_argument", status=415)
    if coding != "gzip":
        while piece := await exchange.read_some():
            yield piece
        return
    decoder = zlib.decompressobj(wbits=31)
    while piece := await exchange.read_some():
        while piece and not decoder.eof:
            try:
                data = decoder.decompress(piece, limits.FILE_CHUNK_BYTES)
            except zlib.error:
                raise invalid_argument("the body is not gzip", "body") from None
            piece = decoder.unconsumed_tail
            if data:
                yield data
    if not decoder.eof:
        raise invalid_argument("the gzip body ends too early", "body")
