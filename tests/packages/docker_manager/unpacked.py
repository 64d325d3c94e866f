"""An archive of changes unpacked over a copy of the base, as tools for container layers do it."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO

import zstandard

_OPAQUE = ".wh..wh..opq"


def unpack(archive: Path, folder: Path) -> None:
    """Apply hidden folders and deletions, then content; modes and times of folders at the end."""
    with archive.open("rb") as file:
        if archive.suffix == ".zst":
            with zstandard.ZstdDecompressor().stream_reader(file) as plain:
                _unpack(plain, folder)
        else:
            _unpack(file, folder)


def _unpack(file: BinaryIO, folder: Path) -> None:
    folders: list[tarfile.TarInfo] = []
    with tarfile.open(fileobj=file, mode="r|") as members:
        for member in members:
            place, name = folder / member.name, Path(member.name).name
            if name == _OPAQUE:
                for inside in place.parent.iterdir():
                    _remove(inside)
            elif name.startswith(".wh."):
                _remove(place.with_name(name.removeprefix(".wh.")))
            else:
                _place(members, member, folder)
                if member.isdir():
                    folders.append(member)
    for member in reversed(folders):
        os.chmod(folder / member.name, member.mode)
        os.utime(folder / member.name, (member.mtime, member.mtime))


def _place(members: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    place = folder / member.name
    if not (member.isdir() and place.is_dir() and not place.is_symlink()) and os.path.lexists(place):
        _remove(place)
    members.extract(member, folder, set_attrs=not member.isdir(), filter="fully_trusted")
    if member.issym():
        os.utime(place, (member.mtime, member.mtime), follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
