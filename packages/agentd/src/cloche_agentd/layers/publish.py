"""Publishing: the tree of a session becomes the newest layer, as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import Final

from .door import Door, lstat, names, open_folder
from .failure import NoSpace, NoSuchSession
from .manifest import Layer
from .plan import Plan, plan
from .removal import remove
from .store import MAX_LAYERS, Store
from .view import Found
from .whiteout import attributes, clean, is_whiteout

UPPER: Final = "upper"
WORK: Final = "work"


def make_session(store: Store, session_id: str) -> None:
    """Make the folders of a session over the layers in force, and lease them to it.

    The root of what it writes looks like the root of what it reads.
    """
    store.door.mkdir(store.sessions, session_id, 0o700)
    session = open_folder(store.sessions, session_id)
    try:
        with store.view(store.manifest) as view:
            root = os.fstat(view.fds[0])
            store.door.mkdir(session, WORK, 0o700)
            store.door.mkdir(session, UPPER, stat.S_IMODE(root.st_mode))
            copy_facts(store.door, Found(view.fds[0], ".", root), session, UPPER)
    except OSError as error:
        remove(store.door, store.sessions, session_id)
        raise _translated(error) from error
    finally:
        os.close(session)
    store.leases.take(session_id, store.manifest)


def has_written(store: Store, session_id: str) -> bool:
    """Return whether there is anything to publish in a session."""
    folder = open_folder(store.sessions, session_id)
    try:
        upper = open_folder(folder, UPPER)
        try:
            return bool(names(upper))
        finally:
            os.close(upper)
    finally:
        os.close(folder)


def examine(store: Store, session_id: str) -> Plan:
    """Say what publishing this session would do. Nothing may write into it meanwhile.

    Raises:
        NoSuchSession: it is not there.
    """
    read = store.leases.of(session_id)
    if read is None:
        raise NoSuchSession(session_id)
    folder = open_folder(store.sessions, session_id)
    try:
        upper = open_folder(folder, UPPER)
        try:
            moved = store.leases.current(session_id) != store.manifest.ids
            with store.view(read) as was, store.view(store.manifest) as now:
                made = plan(upper, was, now, moved=moved)
        finally:
            os.close(upper)
    finally:
        os.close(folder)
    if not made.reject_class and len(store.manifest.layers) >= MAX_LAYERS:
        made.reject_class = "layer_limit"
    return made


@dataclass(frozen=True, slots=True)
class Staged:
    """Merged files that wait in a folder of `staging`: what may need space is written before anything else."""

    folder: str
    names: dict[str, str]


def stage_merged(store: Store, session_id: str, made: Plan) -> Staged:
    """Write the merged files of a plan.

    Raises:
        NoSpace: nothing has changed.
    """
    staged = Staged(f"merged-{store.door.token()}", {})
    if not made.merged:
        return staged
    store.door.mkdir(store.staging, staged.folder, 0o700)
    folder = open_folder(store.staging, staged.folder)
    session = open_folder(store.sessions, session_id)
    upper = open_folder(session, UPPER)
    try:
        for number, (path, content) in enumerate(sorted(made.merged.items())):
            staged.names[path] = str(number)
            _write_merged(store.door, upper, path, folder, str(number), content)
    except OSError as error:
        remove(store.door, store.staging, staged.folder)
        raise _translated(error) from None
    finally:
        for fd in (upper, session, folder):
            os.close(fd)
    return staged


def _write_merged(door: Door, upper: int, path: str, folder: int, name: str, content: bytes) -> None:
    ours = _descend(upper, path)
    try:
        status = ours.status
        file = door.create(folder, name, stat.S_IMODE(status.st_mode))
        try:
            door.write(file, content)
        finally:
            os.close(file)
        copy_facts(door, ours, folder, name)
    finally:
        os.close(ours.folder)


def _descend(root: int, path: str) -> Found:
    folder = os.dup(root)
    *parents, name = path.split("/")
    for each in parents:
        inner = open_folder(folder, each)
        os.close(folder)
        folder = inner
    return Found(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))


def copy_facts(door: Door, source: Found, folder: int, name: str) -> None:
    """Give a file the owner, the attributes and the times of another; its mode it has already."""
    status = source.status
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        door.chown(folder, name, status.st_uid, status.st_gid)
        if not stat.S_ISLNK(status.st_mode):
            door.chmod(folder, name, stat.S_IMODE(status.st_mode))
    for attribute, value in attributes(source.folder, source.name).items():
        door.setxattr(folder, name, attribute, value)
    door.utime(folder, name, (status.st_atime_ns, status.st_mtime_ns))


def commit(store: Store, session_id: str, made: Plan, staged: Staged) -> Layer:
    """Make the session's tree the newest layer. Its overlay is unmounted; its lease ends with it.

    Raises:
        NoSpace: the session's tree is where it was.
        OSError: the same.
    """
    layer = Layer(store.new_layer_id("L"), made.entries, made.size)
    session = open_folder(store.sessions, session_id)
    try:
        store.door.rename(session, UPPER, store.staging, layer.layer_id)
        try:
            _normalise(store, layer.layer_id, made, staged)
            store.door.syncfs(store.staging)
            store.install(layer.layer_id)
            store.commit((layer, *store.manifest.layers))
        except OSError as error:
            _put_back(store, session, layer.layer_id)
            raise _translated(error) from error
    finally:
        os.close(session)
    forget(store, session_id)
    if staged.names:
        remove(store.door, store.staging, staged.folder)
    return layer


def forget(store: Store, session_id: str) -> None:
    """Remove what is left of a session, and its lease."""
    store.leases.give_up(session_id)
    remove(store.door, store.sessions, session_id)
    store.reclaim()


def _put_back(store: Store, session: int, layer_id: str) -> None:
    for folder in (store.staging, store.layers):
        if lstat(folder, layer_id) is not None:
            store.door.rename(folder, layer_id, session, UPPER)


def _translated(error: OSError) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace("the disk is full")
    return error


def _normalise(store: Store, layer_id: str, made: Plan, staged: Staged) -> None:
    """Turn the tree of a session into that of a layer: our marks, nothing else of the overlay, merges in place."""
    root = open_folder(store.staging, layer_id)
    source = open_folder(store.staging, staged.folder) if staged.names else -1
    try:
        _Normaliser(store.door, made, staged, source).folder(root, "")
        clean(store.door, store.staging, layer_id, opaque=False)
    finally:
        os.close(root)
        if source >= 0:
            os.close(source)


class _Normaliser:
    def __init__(self, door: Door, made: Plan, staged: Staged, source: int) -> None:
        self._door = door
        self._plan = made
        self._staged = staged
        self._source = source
        self._gone = {*made.dropped, *made.withdrawn}

    def folder(self, folder: int, path: str) -> None:
        before = os.fstat(folder)
        changed = False
        for name in names(folder):
            changed |= self._entry(folder, name, f"{path}/{name}" if path else name)
        if changed:
            self._door.utime(folder, ".", (before.st_atime_ns, before.st_mtime_ns))

    def _entry(self, folder: int, name: str, path: str) -> bool:
        """Return whether the folder changed."""
        if path in self._gone:
            remove(self._door, folder, name)
            return True
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if is_whiteout(status):
            return False
        if path in self._staged.names:
            self._door.rename(self._source, self._staged.names[path], folder, name)
        elif stat.S_ISDIR(status.st_mode):
            inner = open_folder(folder, name)
            try:
                self.folder(inner, path)
            finally:
                os.close(inner)
            clean(self._door, folder, name, opaque=path in self._plan.opaque)
        else:
            clean(self._door, folder, name, opaque=False)
        if path in self._plan.modes:
            self._door.chmod(folder, name, self._plan.modes[path])
        return path in self._staged.names
