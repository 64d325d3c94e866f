"""The store: layers on the disk, and the one file that says which of them are in force.

Whatever happens in between, the state is that of the last manifest: a change prepares a folder in `staging`, moves it
to `layers`, and then replaces the manifest in one rename. What no manifest names is removed by the next start.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from typing import Final, Self

from . import manifest as manifests
from .door import Door, lstat, open_file, open_folder
from .failure import StoreDamaged
from .lease import Leases
from .manifest import Layer, Manifest
from .removal import remove
from .view import Folder

MANIFEST: Final = "manifest.json"
WORKSPACE: Final = "workspace.json"
LAYERS: Final = "layers"
STAGING: Final = "staging"
SESSIONS: Final = "sessions"
_LOCK: Final = "lock"
_NEW: Final = ".new"
SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
MAX_LAYERS: Final = 200
"""Overlays take 500 layers; the names of this many fit into the options of a mount."""


class Store:
    """One open store. Only one process may have it open."""

    def __init__(self, door: Door, root: int, base: int) -> None:
        self.door = door
        self.root = root
        self.base = base
        self.leases = Leases()
        self.manifest = manifests.EMPTY
        self.base_root_hash = ""
        self.layers = self.staging = self.sessions = self._lock = -1

    @classmethod
    def open(cls, path: str, base: str, base_root_hash: str, door: Door) -> Self:
        """Open a store, or make one in an empty folder, and remove what an interrupted change left.

        Raises:
            StoreDamaged: it is in use, cannot be read, or belongs to another base. Nothing was changed.
        """
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        store = cls(door, root, os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            store._lock = _locked(root)
            store._begin(base_root_hash)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Give up the store."""
        for fd in (self.layers, self.staging, self.sessions, self.base, self.root, self._lock):
            if fd >= 0:
                os.close(fd)
        self.layers = self.staging = self.sessions = self.base = self.root = self._lock = -1

    # -- opening ------------------------------------------------------------------------------------------------

    def _begin(self, base_root_hash: str) -> None:
        data = read_whole(self.root, MANIFEST)
        if data is None:
            self._make(base_root_hash)
            data = read_whole(self.root, MANIFEST) or b""
        self._read_workspace(base_root_hash)
        self.manifest = manifests.parse(data)
        self._open_folders()
        for layer_id in self.manifest.ids:
            try:
                os.close(open_folder(self.layers, layer_id))
            except OSError:
                raise StoreDamaged("a layer of the manifest is missing") from None
        self._sweep()

    def _make(self, base_root_hash: str) -> None:
        """Make an empty store; the manifest comes last. One that has layers but no manifest is not touched."""
        layers = lstat(self.root, LAYERS)
        if layers is not None and os.listdir(self.root_folder(LAYERS)):
            raise StoreDamaged("there are layers, and no manifest")
        for name in (LAYERS, STAGING, SESSIONS):
            if lstat(self.root, name) is None:
                self.door.mkdir(self.root, name, 0o700)
        value = {"schema_version": 1, "base_root_hash": base_root_hash}
        write_whole(self.door, self.root, WORKSPACE, json.dumps(value).encode() + b"\n")
        write_whole(self.door, self.root, MANIFEST, manifests.EMPTY.dump())

    def root_folder(self, name: str) -> str:
        """Return a path for listing a folder of the root."""
        return f"/proc/self/fd/{self.root}/{name}"

    def _read_workspace(self, base_root_hash: str) -> None:
        data = read_whole(self.root, WORKSPACE)
        if data is None:
            raise StoreDamaged("workspace.json is missing")
        self.base_root_hash = manifests.checked(data, "WorkspaceV1")["base_root_hash"]
        if base_root_hash and self.base_root_hash and base_root_hash != self.base_root_hash:
            raise StoreDamaged("the store belongs to another base")

    def _open_folders(self) -> None:
        try:
            self.layers = open_folder(self.root, LAYERS)
            for name in (STAGING, SESSIONS):
                if lstat(self.root, name) is None:
                    self.door.mkdir(self.root, name, 0o700)
            self.staging = open_folder(self.root, STAGING)
            self.sessions = open_folder(self.root, SESSIONS)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise StoreDamaged("a folder of the store is missing") from None
            raise

    def _sweep(self) -> None:
        for folder in (self.staging, self.sessions):
            for name in os.listdir(folder):
                remove(self.door, folder, name)
        self.reclaim()

    # -- layers -------------------------------------------------------------------------------------------------

    def view(self, manifest: Manifest, *, base: bool = True) -> Folder:
        """Return the root of what these layers show, over the base or alone."""
        return self.open_layers(manifest.ids, base=base)

    def open_layers(self, layer_ids: tuple[str, ...], *, base: bool) -> Folder:
        """Return the root of what these layers show together, newest first."""
        view = Folder(())
        try:
            for layer_id in layer_ids:
                view.fds.append(open_folder(self.layers, layer_id))
            if base:
                view.fds.append(os.dup(self.base))
        except BaseException:
            view.close()
            raise
        return view

    def new_layer_id(self, kind: str) -> str:
        """Return a name for the layer that the next manifest brings: L is published, S is squashed."""
        return f"{kind}{(self.manifest.version + 1) % 1_000_000:06d}-{self.door.token()}"

    def install(self, layer_id: str) -> None:
        """Move finished folders from `staging` to `layers`; the disk has all of it before."""
        self.door.rename(self.staging, layer_id, self.layers, layer_id)

    def commit(self, layers: tuple[Layer, ...]) -> None:
        """Make these the layers in force. Their folders are installed and synced."""
        self.door.fsync(self.layers)
        following = self.manifest.next(layers)
        try:
            write_whole(self.door, self.root, MANIFEST, following.dump())
        except OSError:
            # Whether it failed before or after the rename, what the disk says is what is in force.
            self.manifest = manifests.parse(read_whole(self.root, MANIFEST) or b"")
            if self.manifest != following:
                raise
        self.manifest = following

    def reclaim(self) -> list[str]:
        """Remove layers that are not in force and that nobody reads; return those that are kept for a reader."""
        leased = self.leases.layer_ids()
        in_force = set(self.manifest.ids)
        kept: list[str] = []
        for name in sorted(os.listdir(self.layers)):
            if name in in_force:
                continue
            if name in leased:
                kept.append(name)
            else:
                remove(self.door, self.layers, name)
        return kept


def read_whole(folder: int, name: str) -> bytes | None:
    """Return a small file of the store, or None where it is not there.

    Raises:
        StoreDamaged: something else than a small regular file has the name.
    """
    try:
        file = open_file(folder, name)
    except FileNotFoundError:
        return None
    except OSError:
        raise StoreDamaged(f"{name} is no file") from None
    with os.fdopen(file, "rb") as stream:
        data = stream.read(manifests.MANIFEST_BYTES + 1)
    if len(data) > manifests.MANIFEST_BYTES:
        raise StoreDamaged(f"{name} is too large")
    return data


def write_whole(door: Door, folder: int, name: str, data: bytes) -> None:
    """Replace a file as a whole: afterwards it is the old or the new one, whenever the machine stops."""
    new = name + _NEW
    if lstat(folder, new) is not None:
        door.unlink(folder, new)
    file = door.create(folder, new, 0o600)
    try:
        door.write(file, data)
        door.fsync(file)
    finally:
        os.close(file)
    door.rename(folder, new, folder, name)
    door.fsync(folder)


def _locked(root: int) -> int:
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=root)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreDamaged("the store is in use by another process") from None
    return lock
