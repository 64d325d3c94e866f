"""A checked export written as an archive: beside its place, synced, then renamed; the same state gives the same bytes.

Source: checklist 280, 281, 288, 346; systems 5.5 and X10.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from .apply import Written, content_of
from .export_stream import Change
from .host_executed import wanted

_LEVEL = 3
_PIECE = 1 << 20


def write_archive(
    spool: BinaryIO, place: Path, draft_name: str, written: Written, *, compressed: bool, host_executed: bool
) -> None:
    """Write every change as a tar archive, deletions as the names that container layers use for them.

    Args:
        draft_name: what it is called until it is whole.
        host_executed: also files that the host would execute.

    Raises:
        OSError: the file system refuses it; what was at the place before is still there.
    """
    draft = place.with_name(draft_name)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(fd, "wb", _PIECE) as out:
            with _packed(out, compressed=compressed) as packed:
                _write_members(wanted(spool, written.left_out, all_of_them=host_executed), spool, packed, written)
            out.flush()
            os.fsync(out.fileno())
            written.bytes = out.tell()
        os.rename(draft, place)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _packed(out: BinaryIO, *, compressed: bool) -> Any:
    if not compressed:
        return _Plain(out)
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL).stream_writer(out, closefd=False)


class _Plain:
    """A file that stays open when its writer is done."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def __enter__(self) -> BinaryIO:
        return self._out

    def __exit__(self, *_: object) -> None:
        return None


def _write_members(changes: Iterator[Change], spool: BinaryIO, packed: Any, written: Written) -> None:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        cast("Any", archive).copybufsize = _PIECE
        pending: list[Change] = []
        for change in changes:
            if change.kind == "data":
                pending.append(change)
                continue
            _add_file(spool, archive, pending, written)
            pending = [change] if change.kind == "file" else []
            if change.kind != "file":
                archive.addfile(_member(change))
                written.symlinks += change.kind == "symlink"
                written.whiteouts += change.kind in ("clear", "delete")
        _add_file(spool, archive, pending, written)


def _add_file(spool: BinaryIO, archive: tarfile.TarFile, parts: list[Change], written: Written) -> None:
    if parts:
        archive.addfile(_member(parts[0]), cast("Any", _Pieces(content_of(spool, parts))))
        written.files += 1


def _member(change: Change) -> tarfile.TarInfo:
    """A member without owner names: what is in it belongs to whoever unpacks it."""
    head, _, name = change.path.rpartition(b"/")
    match change.kind:
        case "clear":
            path = change.path + b"/.wh..wh..opq"
        case "delete":
            path = (head + b"/" if head else b"") + b".wh." + name
        case _:
            path = change.path
    member = tarfile.TarInfo(os.fsdecode(path))
    member.mode, member.mtime = (change.mode, change.mtime_ns // 1_000_000_000) if change.mode else (0o644, 0)
    if change.kind == "folder":
        member.type = tarfile.DIRTYPE
    elif change.kind == "symlink":
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, os.fsdecode(change.target), 0o777
        member.mtime = change.mtime_ns // 1_000_000_000
    elif change.kind == "file":
        member.size = change.size
    return member


class _Pieces:
    """Pieces of content as a file that is read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, count: int) -> bytes:
        """The next so many bytes; fewer only at the end."""
        found, self._rest = self._rest, b""
        while len(found) < count:
            piece = next(self._pieces, None)
            if piece is None:
                return found
            found = found + piece if found else piece
        found, self._rest = found[:count], found[count:]
        return found
