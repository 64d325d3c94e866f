"""`abx sandbox upload` and `download`: files of any size, in parts, replaced as a whole on either side."""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cloche_cli.invocation import Invocation, ReaderGone, current
from cloche_cli.progress import moving
from cloche_cli.running import run_async
from cloche_cli.sizes import shown_size
from cloche_cli.usage import Refused
from cloche_contract.errors import ProviderFailed
from cloche_sdk import AsyncSandbox
from cloche_sdk.transfers import PART_BYTES

STREAM = "-"

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Moved:
    """A file that arrived: where, its size in bytes, and the SHA-256 of its bytes in hex."""

    path: str
    size: int
    sha256: str


def upload(sandbox_id: str, source: str, target: str | None) -> int:
    """Put a file, everything below a folder, or stdin (`-`) into a sandbox."""
    invocation = current()
    files = list(_chosen(source, target))
    total = sum(os.path.getsize(path) for path, _ in files if path != STREAM)
    return run_async(lambda: _upload(sandbox_id, files, total, invocation))


def download(sandbox_id: str, source: str, target: str | None) -> int:
    """Take a file out of a sandbox, to a file, into a folder, or to stdout (`-`)."""
    invocation = current()
    if target == STREAM and invocation.json:
        raise Refused("exclusive", "writes the file to stdout, where --json writes its document.", field="FILE")
    place = target or PurePosixPath(source).name
    if place in ("", ".", ".."):
        raise Refused("required", "is needed: this path ends with no name.", field="FILE")
    if place != STREAM and os.path.isdir(place):
        place = os.path.join(place, PurePosixPath(source).name)
    return run_async(lambda: _download(sandbox_id, source, place, invocation))


# -- into the sandbox -------------------------------------------------------------------------------------------------


def _chosen(source: str, target: str | None) -> Iterator[tuple[str, str]]:
    """Pairs of a file here and its path inside."""
    if source == STREAM:
        if target is None:
            raise Refused("required", "is needed where the content comes from stdin.", field="PATH")
        yield source, target
        return
    try:
        kind = os.stat(source).st_mode
    except OSError as error:
        raise Refused("readable", "names nothing that can be read.", field="FILE") from error
    name = os.path.basename(os.path.abspath(source))
    inside = name if target is None else target + name if target.endswith("/") else target
    if stat.S_ISREG(kind):
        yield source, inside
    elif stat.S_ISDIR(kind):
        yield from _below(Path(source), inside)
    else:
        raise Refused("type", "must be a file, a folder, or - for stdin.", field="FILE")


def _below(folder: Path, inside: str) -> Iterator[tuple[str, str]]:
    """Every regular file below a folder, sorted; links are neither followed nor copied."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield str(path), f"{inside.rstrip('/')}/{path.relative_to(folder).as_posix()}"


async def _upload(sandbox_id: str, files: list[tuple[str, str]], total: int, invocation: Invocation) -> int:
    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        with moving("uploading", total, invocation) as advance:
            moved = [await _put(sandbox, source, inside, advance) for source, inside in files]
    finally:
        await sandbox.close()
    if invocation.json:
        invocation.emit({"files": [asdict(file) for file in moved]})
    else:
        invocation.note(f"{_counted(len(moved))}, {shown_size(sum(file.size for file in moved))}")
    return 0


async def _put(sandbox: AsyncSandbox, source: str, inside: str, advance: Advance) -> Moved:
    """Send one file in parts; it is there when all of it is."""
    with _opened(source) as file:
        mode = None if source == STREAM else f"{stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777:o}"
        digest, transfer, size = hashlib.sha256(), None, 0
        part = file.read(PART_BYTES)
        while True:
            following = file.read(PART_BYTES)
            told = await sandbox.transfers.upload(
                inside, part, mode=mode, transfer_id=transfer, offset=size, last=not following
            )
            digest.update(part)
            size += len(part)
            advance(len(part))
            if not following:
                break
            transfer, part = told.transfer_id, following
    if told.sha256 != digest.hexdigest():
        raise ProviderFailed
    return Moved(inside, size, told.sha256)


def _opened(source: str) -> BinaryIO:
    if source == STREAM:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return open(source, "rb")
    except OSError as error:
        raise Refused("readable", "names a file that cannot be read, or holds one.", field="FILE") from error


# -- out of the sandbox -----------------------------------------------------------------------------------------------


async def _download(sandbox_id: str, source: str, place: str, invocation: Invocation) -> int:
    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        if place == STREAM:
            await _take(sandbox, source, _write_out, invocation)
            return 0
        moved = await _save(sandbox, source, Path(place), invocation)
    finally:
        await sandbox.close()
    if invocation.json:
        invocation.emit(asdict(moved))
    else:
        invocation.note(f"{moved.path}, {shown_size(moved.size)}")
    return 0


async def _save(sandbox: AsyncSandbox, source: str, place: Path, invocation: Invocation) -> Moved:
    with _replacing(place) as file:
        moved = await _take(sandbox, source, file.write, invocation)
    return Moved(str(place), moved.size, moved.sha256)


@contextmanager
def _replacing(place: Path) -> Generator[BinaryIO]:
    """Write beside the place and rename: a file that is there is replaced by all of the new one, or stays."""
    try:
        fd, draft = tempfile.mkstemp(prefix=".abx-", dir=place.parent)
        try:
            with open(fd, "wb") as file:
                yield file
                os.fchmod(fd, 0o666 & ~_umask())
            os.replace(draft, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise Refused("writable", "names a place that cannot be written to.", field="FILE") from error


async def _take(sandbox: AsyncSandbox, source: str, write: Callable[[bytes], object], invocation: Invocation) -> Moved:
    """Read one file in parts, as far as it went when it was begun: one that grows has an end too."""
    part = await sandbox.transfers.download(source, offset=0, length=PART_BYTES)
    digest, offset, size = hashlib.sha256(), 0, part.size
    with moving("downloading", size, invocation) as advance:
        while True:
            write(part.data)
            digest.update(part.data)
            offset += len(part.data)
            advance(len(part.data))
            if offset >= size or not part.data:
                return Moved(source, offset, digest.hexdigest())
            part = await sandbox.transfers.download(source, offset=offset, length=min(PART_BYTES, size - offset))


def _write_out(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _counted(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
