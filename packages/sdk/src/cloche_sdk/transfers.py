"""Files in parts, so that a file of any size goes in and out without ever being held in memory."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from cloche_contract.agent import ROUTE_READ_FILE, ROUTE_UPLOAD_PART
from cloche_contract.errors import FileTooLarge, InvalidArgument, ProviderFailed, UnsupportedOperation

from .data_plane import AgentChannel
from .emulated_uploads import Part, upload_part
from .link import SandboxLink

if TYPE_CHECKING:
    from ._http import Reply

__all__ = ["PART_BYTES", "AsyncTransfers", "FilePart", "UploadedPart"]

PART_BYTES = 1_048_576
REPLY_LIMIT_BYTES = 65_536

_BYTES = {"content-type": "application/octet-stream"}
_RANGE = re.compile(r"bytes (\d{1,16})-(\d{1,16})/(\d{1,16})")


@dataclass(frozen=True)
class FilePart:
    """Bytes of a file from `offset` on; `size` is that of the whole file."""

    data: bytes = field(repr=False)
    offset: int
    size: int

    @property
    def eof(self) -> bool:
        """Whether nothing follows."""
        return self.offset + len(self.data) >= self.size

    @property
    def sha256(self) -> str:
        """Of these bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class UploadedPart:
    """What a transfer holds after a part: `size` bytes in all, and their `sha256` as the sandbox computed it.

    Until it is `complete`, the next part takes its `transfer_id`, and its `size` as offset.
    """

    transfer_id: str
    size: int
    sha256: str
    complete: bool


class AsyncTransfers:
    """Moves files of one sandbox in parts. Paths are absolute, or relative to the user's home."""

    def __init__(self, link: SandboxLink) -> None:
        self._link = link
        self._channel = AgentChannel(link)

    async def download(self, path: str, *, offset: int = 0, length: int = PART_BYTES) -> FilePart:
        """Read a part of a file; beyond its end there is nothing.

        Raises:
            FileNotFound, FileIsDirectory, FilePermissionDenied, FileSpecial: it cannot be read.
        """
        return await self._part(path, offset, length, whole=False)

    async def download_whole(self, path: str, *, max_bytes: int = PART_BYTES) -> FilePart:
        """Read a whole file, or nothing of it.

        Raises:
            FileTooLarge: it has more than `max_bytes`; nothing of it was read.
        """
        return await self._part(path, 0, max_bytes, whole=True)

    async def upload(
        self,
        path: str,
        data: bytes,
        *,
        mode: str | None = None,
        transfer_id: str | None = None,
        offset: int = 0,
        last: bool = True,
    ) -> UploadedPart:
        """Write a file, or a part of one; the file is replaced as a whole when the last part is there.

        Args:
            mode: octal permission bits such as `755`; an existing file keeps its own when left out.
            transfer_id: of the part before; left out to begin.
            offset: where this part begins, which is the size so far.
            last: whether the file is complete with this part.

        Raises:
            TransferNotFound: it never began, is complete, or was idle for ten minutes.
            TransferConflict: the part does not follow what is there; `details` has the offset that does.
            FileIsDirectory, FilePermissionDenied, FileSpecial, DiskFull: it cannot be written.
        """
        transfer = transfer_id or self._link.new_id()
        told = await self._append(Part(transfer, path, offset, last, mode, data))
        part = UploadedPart(
            transfer, int(told.get("size", -1)), str(told.get("sha256", "")), told.get("complete") is True
        )
        if part.size != offset + len(data) or part.complete is not last:
            raise ProviderFailed
        if transfer_id is None and part.sha256 != hashlib.sha256(data).hexdigest():
            # What arrived is not what was sent.
            raise ProviderFailed
        return part

    async def _append(self, part: Part) -> Mapping[str, Any]:
        """Send a part; where the agent takes whole files only, they are put together in the sandbox."""
        query = f"path={_quoted(part.path)}&transfer={_quoted(part.transfer_id)}"
        query += f"&offset={part.offset}&last={int(part.last)}"
        if part.mode is not None:
            query += f"&mode={quote(part.mode, safe='')}"
        if "transfers" not in self._link.lacks:
            try:
                async with self._channel.send(
                    "POST", f"{ROUTE_UPLOAD_PART}?{query}", content=part.data, headers=_BYTES
                ) as reply:
                    return _object(await reply.read(REPLY_LIMIT_BYTES))
            except UnsupportedOperation as error:
                if error.details.get("capability") != "transfers":
                    raise
                self._link.lacks.add("transfers")
        return await upload_part(self._channel, part)

    async def _part(self, path: str, offset: int, length: int, *, whole: bool) -> FilePart:
        headers = {"accept-encoding": "identity", "range": f"bytes={offset}-{offset + length - 1}"}
        try:
            async with self._reading(path, headers) as reply:
                size = _size_of(reply, offset)
                if whole and size > length:
                    raise FileTooLarge(size=size, limit=length)
                data = await reply.read(length)
        except InvalidArgument:
            # No byte of the file is in that range: it is empty, or shorter.
            async with self._reading(path, {"accept-encoding": "identity"}) as reply:
                size = int(reply.header("content-length") or 0)
            if size > offset:
                raise
            return FilePart(b"", offset, size)
        if data is None or len(data) != min(length, size - offset):
            # More or less than was announced: what is there is not the file.
            raise ProviderFailed
        return FilePart(data, offset, size)

    @asynccontextmanager
    async def _reading(self, path: str, headers: dict[str, str]) -> AsyncGenerator[Reply, None]:
        async with self._channel.send("GET", f"{ROUTE_READ_FILE}?path={_quoted(path)}", headers=headers) as reply:
            if reply.header("content-encoding") not in ("", "identity"):
                # It would have to be unpacked before its size is known.
                raise ProviderFailed
            yield reply


def _size_of(reply: Reply, offset: int) -> int:
    """The size of the whole file, from an answer that begins where it was asked to."""
    found = _RANGE.fullmatch(reply.header("content-range"))
    if found is not None and int(found[1]) == offset:
        return int(found[3])
    length = reply.header("content-length")
    if found is None and offset == 0 and length.isdigit():
        return int(length)
    raise ProviderFailed


def _quoted(text: str) -> str:
    try:
        return quote(text, safe="/")
    except UnicodeEncodeError:
        raise InvalidArgument(field="path", rule="unicode") from None


def _object(body: bytes | None) -> dict[str, Any]:
    try:
        value: object = json.loads(body or b"null")
    except ValueError as error:
        raise ProviderFailed from error
    if not isinstance(value, dict):
        raise ProviderFailed
    return cast("dict[str, Any]", value)
