"""Squashing: runs of layers become one each, and what the stack shows stays the same.

A run never reaches across the newest layer of a live session, so that the session can be moved onto the result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .door import Door, open_file, open_folder
from .failure import NoSpace
from .manifest import Layer
from .plan import MAX_DEPTH
from .publish import copy_facts
from .removal import remove
from .store import Store
from .view import Folder, Found, gather
from .whiteout import is_whiteout, set_opaque

_COPY_BYTES: Final = 1 << 30
_NO_LINK: Final = (errno.EPERM, errno.EMLINK, errno.EXDEV)


@dataclass(frozen=True, slots=True)
class Block:
    """A layer that stands for others."""

    layer: Layer
    replaced: tuple[str, ...]


def blocks_of(layer_ids: Sequence[str], newest_of_leases: set[str]) -> list[tuple[str, ...]]:
    """Return the runs of two and more layers, newest first, that no lease parts."""
    runs: list[list[str]] = []
    for layer_id in layer_ids:
        if not runs or layer_id in newest_of_leases:
            runs.append([])
        runs[-1].append(layer_id)
    return [tuple(run) for run in runs if len(run) > 1]


def squash(store: Store) -> list[Block]:
    """Replace every run by one layer; nobody who reads the old ones notices.

    Raises:
        NoSpace: nothing has changed.
    """
    made: list[Block] = []
    try:
        runs = blocks_of(store.manifest.ids, store.leases.newest())
        made.extend(_flatten(store, run) for run in runs)
        if made:
            store.door.syncfs(store.staging)
            for block in made:
                store.install(block.layer.layer_id)
            _put_in_force(store, made)
    except OSError as error:
        _undo(store, made)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace("the disk is full") from error
        raise
    return made


def _undo(store: Store, made: Sequence[Block]) -> None:
    """Remove what was prepared, as far as it can be removed now; the next start removes the rest."""
    for block in made:
        for folder in (store.staging, store.layers):
            if block.layer.layer_id not in store.manifest.ids:
                with contextlib.suppress(OSError):
                    remove(store.door, folder, block.layer.layer_id)


def _put_in_force(store: Store, made: Sequence[Block]) -> None:
    # The manifest as it is now: what was published meanwhile stays on top.
    first = {block.replaced[0]: block for block in made}
    gone = {layer_id for block in made for layer_id in block.replaced}
    layers: list[Layer] = []
    for layer in store.manifest.layers:
        if layer.layer_id in first:
            layers.append(first[layer.layer_id].layer)
        elif layer.layer_id not in gone:
            layers.append(layer)
    store.commit(tuple(layers))
    store.leases.replaced({block.layer.layer_id: block.replaced for block in made})


def _flatten(store: Store, run: tuple[str, ...]) -> Block:
    layer_id = store.new_layer_id("S")
    ids = store.manifest.ids
    beneath = ids[ids.index(run[-1]) + 1 :]
    with store.open_layers(run, base=False) as sources, store.open_layers(beneath, base=True) as below:
        root = os.fstat(sources.fds[0])
        store.door.mkdir(store.staging, layer_id, 0o700)
        target = open_folder(store.staging, layer_id)
        try:
            flattener = _Flattener(store.door)
            flattener.folder(sources.fds, target, below, 0)
            store.door.chmod(store.staging, layer_id, stat.S_IMODE(root.st_mode))
            copy_facts(store.door, Found(sources.fds[0], ".", root), store.staging, layer_id)
        except OSError:
            with contextlib.suppress(OSError):
                remove(store.door, store.staging, layer_id)
            raise
        finally:
            os.close(target)
    return Block(Layer(layer_id, flattener.entries, flattener.size), run)


class _Flattener:
    def __init__(self, door: Door) -> None:
        self._door = door
        self.entries = 0
        self.size = 0

    def folder(self, sources: Sequence[int], target: int, below: Folder | None, depth: int) -> None:
        """Write what the sources show together, with the marks that what is below still needs."""
        if depth > MAX_DEPTH + 1:
            raise OSError(errno.ELOOP, "a layer is too deep")
        seen: set[str] = set()
        for source in sources:
            for name in sorted(os.listdir(source), key=os.fsencode):
                if name not in seen:
                    seen.add(name)
                    status = os.stat(name, dir_fd=source, follow_symlinks=False)
                    self._entry(Found(source, name, status), sources, target, below, depth)

    def _entry(self, top: Found, sources: Sequence[int], target: int, below: Folder | None, depth: int) -> None:
        if is_whiteout(top.status):
            if below is None or below.find(top.name) is None:
                return
            self._door.whiteout(target, top.name)
        elif top.is_folder:
            self._folder(top, sources, target, below, depth)
        else:
            self._file(top, target)
            self.size += top.status.st_size if stat.S_ISREG(top.status.st_mode) else 0
        self.entries += 1

    def _folder(self, top: Found, sources: Sequence[int], target: int, below: Folder | None, depth: int) -> None:
        merged, hides = gather(sources, top.name)
        under = below.enter(top.name) if below is not None and not hides else None
        self._door.mkdir(target, top.name, 0o700)
        inner = open_folder(target, top.name)
        try:
            self.folder(merged, inner, under, depth + 1)
        finally:
            for fd in (inner, *merged):
                os.close(fd)
            if under is not None:
                under.close()
        self._door.chmod(target, top.name, stat.S_IMODE(top.status.st_mode))
        if hides:
            set_opaque(self._door, target, top.name)
        copy_facts(self._door, top, target, top.name)

    def _file(self, top: Found, target: int) -> None:
        try:
            self._door.link(top.folder, top.name, target, top.name)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            copy(self._door, top, target)


def copy(door: Door, source: Found, target: int) -> None:
    """Copy a file or a link with all that belongs to it; holes stay holes."""
    status, name = source.status, source.name
    if stat.S_ISLNK(status.st_mode):
        door.symlink(os.readlink(name, dir_fd=source.folder), target, name)
    else:
        file = open_file(source.folder, name)
        try:
            made = door.create(target, name, stat.S_IMODE(status.st_mode))
            try:
                _copy_content(door, file, made, status.st_size)
            finally:
                os.close(made)
        finally:
            os.close(file)
    copy_facts(door, source, target, name)


def _copy_content(door: Door, source: int, target: int, size: int) -> None:
    door.truncate(target, size)
    for start, end in extents(source, size):
        while start < end:
            done = door.copy(source, target, start, min(end - start, _COPY_BYTES))
            if not done:
                return
            start += done


def extents(file: int, size: int) -> list[tuple[int, int]]:
    """Return the parts of an open file that are no holes, as (start, end)."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < size:
        try:
            start = os.lseek(file, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        at = min(os.lseek(file, start, os.SEEK_HOLE), size)
        found.append((start, at))
    return found
