"""POST /cloche/upload: files that arrive in parts, of any size, and appear whole or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from . import limits
from .config import User
from .exchange import Exchange
from .failures import AgentError, invalid_argument
from .paths import absolute
from .transfers import FileTransfers, Upload, decoded, mode_of

_TRANSFER: Final = re.compile(r"[0-9a-f]{32}\Z")
_OFFSET: Final = re.compile(r"\d{1,16}\Z")


@dataclass(frozen=True, slots=True)
class _Part:
    """What a request says about its body."""

    transfer: str
    path: str
    mode: int | None
    user: User
    offset: int
    last: bool


class _Transfer:
    """A file that is being written; its parts follow each other."""

    def __init__(self, part: _Part, upload: Upload) -> None:
        self.upload = upload
        self.digest = hashlib.sha256()
        self.busy = False
        self._begun = part

    def fits(self, part: _Part) -> bool:
        """Whether a part belongs to this file and follows what is there."""
        begun = self._begun
        same = (begun.path, begun.user) == (part.path, part.user) and part.mode in (None, begun.mode)
        return same and not self.busy and part.offset == self.upload.size

    async def append(self, exchange: Exchange) -> None:
        """Take a part, whole or not at all."""
        size, digest = self.upload.size, self.digest.copy()
        self.busy = True
        try:
            async for piece in decoded(exchange):
                self.upload.write(piece)
                self.digest.update(piece)
        except BaseException:
            self.upload.cut(size)
            self.digest = digest
            raise
        finally:
            self.busy = False


class PartialUploads:
    """Holds the transfers that are not complete, a bounded number of them, each for a bounded time."""

    def __init__(self, files: FileTransfers) -> None:
        self._files = files
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, _Transfer] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._done: dict[str, tuple[_Part, Mapping[str, object]]] = {}

    async def take(self, exchange: Exchange, user: User) -> None:
        """Append a part; the last one puts the file in place."""
        part = _part_of(exchange.head.parameters(), user)
        done = self._done.get(part.transfer)
        if done is not None and done[0] == part:
            # The answer was lost, and the part came again.
            while await exchange.read_some():
                pass
            _answer(exchange, done[1])
            return
        transfer = await self._transfer(part)
        try:
            await transfer.append(exchange)
        except BaseException:
            if not transfer.upload.size:
                self._forget(part.transfer)
            raise
        told = {"size": transfer.upload.size, "sha256": transfer.digest.hexdigest(), "complete": part.last}
        if part.last:
            await self._put_in_place(part, transfer, told)
        else:
            self._rest(part.transfer)
        _answer(exchange, told)

    async def _transfer(self, part: _Part) -> _Transfer:
        held = self._held.get(part.transfer)
        if held is None:
            if part.offset:
                raise AgentError("not_found", "there is no such transfer", "transfer_not_found")
            upload = await self._files.open(part.path, part.mode, part.user)
            if part.transfer in self._held:
                # The same part came twice at once.
                upload.discard()
                return await self._transfer(part)
            held = _Transfer(part, upload)
            self._make_room()
            self._held[part.transfer] = held
        elif not held.fits(part):
            text = "the part does not follow what the transfer has"
            raise AgentError("aborted", text, "transfer_conflict", offset=held.upload.size)
        self._rest(part.transfer)
        return held

    async def _put_in_place(self, part: _Part, transfer: _Transfer, told: Mapping[str, object]) -> None:
        try:
            await self._files.commit(transfer.upload)
        finally:
            self._forget(part.transfer)
        self._done[part.transfer] = (part, told)
        while len(self._done) > limits.TRANSFERS_DONE:
            del self._done[next(iter(self._done))]

    def _rest(self, transfer: str) -> None:
        """Let a transfer live on for as long as one may be idle."""
        if (timer := self._timers.pop(transfer, None)) is not None:
            timer.cancel()
        self._timers[transfer] = self._loop.call_later(limits.TRANSFER_IDLE_S, self._expire, transfer)

    def _expire(self, transfer: str) -> None:
        if self._held[transfer].busy:
            self._rest(transfer)
        else:
            self._forget(transfer)

    def _make_room(self) -> None:
        idle = [name for name in self._timers if not self._held[name].busy]
        for name in idle[: max(0, len(self._held) + 1 - limits.TRANSFERS)]:
            self._forget(name)

    def _forget(self, transfer: str) -> None:
        if (timer := self._timers.pop(transfer, None)) is not None:
            timer.cancel()
        if (held := self._held.pop(transfer, None)) is not None:
            held.upload.discard()


def _answer(exchange: Exchange, told: Mapping[str, object]) -> None:
    exchange.reply(200, json.dumps(told).encode())


def _part_of(given: Mapping[str, str], user: User) -> _Part:
    transfer, offset = given.get("transfer", ""), given.get("offset", "0")
    if not _TRANSFER.match(transfer):
        raise invalid_argument("a transfer is 32 lowercase hex digits", "transfer_id")
    if not _OFFSET.match(offset):
        raise invalid_argument("offset is not a number of bytes", "offset")
    path = absolute(given.get("path", ""), user)
    return _Part(transfer, path, mode_of(given.get("mode")), user, int(offset), given.get("last") == "1")
