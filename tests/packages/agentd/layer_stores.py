"""Layer stores for tests: a door that stops at any step, trees made and read, the golden stores."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from cloche_agentd.layers.door import Door
from cloche_agentd.layers.publish import UPPER, WORK, commit, examine, stage_merged
from cloche_agentd.layers.store import Store
from cloche_agentd.layers.view import Folder

GOLDEN = Path(__file__).parent / "stores"
Shown = dict[str, tuple[str, int, bytes]]
Tree = Mapping[str, "bytes | str | None"]
"""Path to content; a text is the target of a link, None a folder or, in a session, a deletion."""


class Stopped(BaseException):
    """The machine stopped here: nothing else reaches the disk."""


class QuickDoor(Door):
    """Takes the steps, but does not wait for the disk: that of a busy machine is slow, and only the order counts."""

    def fsync(self, fd: int) -> None:
        self.before("fsync")
        self.after("fsync")

    def syncfs(self, fd: int) -> None:
        self.before("syncfs")
        self.after("syncfs")


class StoppingDoor(QuickDoor):
    """Stops before or after its nth change, and from then on for ever. Times and names are the same in each run."""

    def __init__(self, stop_at: int = -1) -> None:
        self.steps: list[str] = []
        self._stop_at = stop_at
        self._tokens = 0

    def before(self, step: str) -> None:
        self._pass(step)

    def after(self, step: str) -> None:
        self._pass(f"after {step}")

    def token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:08x}"

    def _pass(self, step: str) -> None:
        if 0 <= self._stop_at <= len(self.steps):
            raise Stopped(step)
        self.steps.append(step)


class Bench:
    """A folder with a base and a store, opened anew at will."""

    def __init__(self, folder: Path, base: Tree = {}) -> None:  # noqa: B006 - never changed
        self.folder = folder
        self.base = folder / "base"
        self.path = folder / "store"
        self.base.mkdir(parents=True)
        self.path.mkdir()
        write_tree(self.base, base)

    def open(self, door: Door | None = None, root_hash: str = "") -> Store:
        """Open the store."""
        return Store.open(str(self.path), str(self.base), root_hash, door or QuickDoor())

    def session(self, store: Store, session_id: str, tree: Tree = {}) -> Path:  # noqa: B006 - never changed
        """Make a session whose tree is written directly, as a kernel would; return its upper folder."""
        upper = self.path / "sessions" / session_id / UPPER
        upper.mkdir(parents=True)
        (upper.parent / WORK).mkdir()
        store.leases.take(session_id, store.manifest)
        write_tree(upper, tree, deletions=True)
        return upper

    def publish(self, store: Store, session_id: str, tree: Tree) -> str:
        """Publish a session with this tree; return the id of the layer."""
        self.session(store, session_id, tree)
        return publish(store, session_id)


def publish(store: Store, session_id: str) -> str:
    """Publish a session that must not be refused."""
    made = examine(store, session_id)
    assert not made.reject_class, made
    return commit(store, session_id, made, stage_merged(store, session_id, made)).layer_id


def write_tree(root: Path, tree: Tree, *, deletions: bool = False) -> None:
    """Write a tree: a path that ends in / is a folder, in // an opaque one; None without it is a deletion."""
    for path, content in tree.items():
        where = root / path.rstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            where.mkdir(exist_ok=True)
            if path.endswith("//"):
                os.setxattr(where, "user.overlay.opaque", b"y")
        elif content is None:
            assert deletions
            os.mknod(where, stat.S_IFCHR, os.makedev(0, 0))
        elif isinstance(content, str):
            where.symlink_to(content)
        else:
            where.write_bytes(content)


def shown(view: Folder) -> Shown:
    """Return everything that a view shows: kind, mode, and content or target."""
    found: Shown = {}
    with view:
        _collect(view, "", found)
    return found


def _collect(view: Folder, path: str, found: Shown) -> None:
    for name in view.names():
        entry = view.find(name)
        assert entry is not None
        here = f"{path}{name}"
        mode = stat.S_IMODE(entry.status.st_mode)
        if entry.is_folder:
            found[here] = ("folder", mode, b"")
            inner = view.enter(name)
            assert inner is not None
            with inner:
                _collect(inner, f"{here}/", found)
        elif stat.S_ISLNK(entry.status.st_mode):
            found[here] = ("link", 0, os.fsencode(os.readlink(name, dir_fd=entry.folder)))
        else:
            with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=entry.folder), "rb") as stream:
                found[here] = ("file", mode, stream.read())


def contents(store: Store) -> dict[str, bytes]:
    """Return what the stack shows now: path to content."""
    return {path: content for path, (_, _, content) in shown(store.view(store.manifest)).items()}


def golden(version: str, folder: Path) -> tuple[Path, Path]:
    """Lay out a golden store, whose marks no repository can hold; return its path and that of its base."""
    target = folder / version
    shutil.copytree(GOLDEN / version, target)
    marks = json.loads((target / "marks.json").read_text())
    for path in marks["whiteouts"]:
        os.mknod(target / path, stat.S_IFCHR, os.makedev(0, 0))
    for path in marks["opaque"]:
        os.setxattr(target / path, "user.overlay.opaque", b"y")
    return target, target / "base"
