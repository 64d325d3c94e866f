"""A plain model of a workspace, and the operations that are done to it and to a real session alike."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Entry = tuple[str, int, bytes]
"""Kind (folder, file, link), mode, and content or target."""
State = dict[str, Entry]
Operation = tuple[str, str, str]

# Runs inside a session: does the operations in the current folder, and tells which of them worked.
PERFORMER = r"""
import json, os, shutil, sys
def write(path, text):
    with open(path, "wb") as stream: stream.write(text.encode())
def append(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
    os.write(fd, text.encode()); os.close(fd)
def remove(path, _):
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
def move(path, to):
    if os.path.lexists(to): raise OSError
    try: os.rename(path, to)
    except OSError as error:
        if error.errno != 18: raise
        shutil.copytree(path, to, symlinks=True); shutil.rmtree(path)
def again(path, text):
    if os.path.islink(path): raise OSError
    mode = os.stat(path).st_mode & 0o7777
    shutil.rmtree(path); os.mkdir(path); os.chmod(path, mode)
    write(os.path.join(path, "again"), text)
def mode(path, text):
    if os.path.islink(path): raise OSError
    os.chmod(path, int(text, 8))
def link(path, to): os.link(path, to, follow_symlinks=False)
done = []
for name, path, text in json.loads(sys.argv[1]):
    try:
        if name == "write" and os.path.islink(path): raise OSError
        {"write": write, "append": append, "remove": remove, "move": move, "again": again, "mode": mode, "link": link,
         "folder": lambda p, _: os.mkdir(p), "symlink": lambda p, t: os.symlink(t, p)}[name](path, text)
        done.append(True)
    except OSError:
        done.append(False)
print(json.dumps(done))
"""

# Runs inside a session: tells everything that the current folder shows.
TELLER = r"""
import base64, json, os, stat
found = {}
for folder, folders, files in os.walk(b"."):
    for name in folders + files:
        path = os.path.join(folder, name)
        status = os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode): entry = ["link", 0, os.readlink(path)]
        elif stat.S_ISDIR(status.st_mode): entry = ["folder", mode, b""]
        else: entry = ["file", mode, open(path, "rb").read()]
        entry[2] = base64.b64encode(entry[2]).decode()
        found[os.fsdecode(path[2:])] = entry
print(json.dumps(found))
"""


def told(output: bytes) -> State:
    """Read what the teller printed."""
    found = json.loads(output)
    return {path: (kind, mode, base64.b64decode(content)) for path, (kind, mode, content) in found.items()}


@dataclass
class _Node:
    kind: str
    mode: int
    content: bytes


class Model:
    """One session's view: what a file system without layers would hold. Names of one file share a node."""

    def __init__(self, state: Mapping[str, Entry]) -> None:
        self._nodes = {path: _Node(*entry) for path, entry in state.items()}
        self._first = dict(self._nodes)

    def remade(self) -> set[str]:
        """Return the folders that were there at the beginning, and are others now."""
        here = self._nodes.items()
        return {path for path, node in here if node.kind == "folder" and self._first.get(path, node) is not node}

    def state(self) -> State:
        """Return what it holds."""
        return {path: (node.kind, node.mode, node.content) for path, node in self._nodes.items()}

    def perform(self, operations: Sequence[Operation]) -> list[bool]:
        """Do the operations; tell which of them worked."""
        return [self._one(*operation) for operation in operations]

    def _one(self, name: str, path: str, text: str) -> bool:
        return bool(getattr(self, f"_{name}")(path, text))

    def _parent_is_folder(self, path: str) -> bool:
        parent = path.rpartition("/")[0]
        return not parent or (parent in self._nodes and self._nodes[parent].kind == "folder")

    def _free(self, path: str) -> bool:
        return self._parent_is_folder(path) and path not in self._nodes

    def _write(self, path: str, text: str) -> bool:
        node = self._nodes.get(path)
        if node is not None and node.kind == "file":
            node.content = text.encode()
            return True
        if not self._free(path):
            return False
        self._nodes[path] = _Node("file", 0o644, text.encode())
        return True

    def _append(self, path: str, text: str) -> bool:
        node = self._nodes.get(path)
        if node is None or node.kind != "file":
            return False
        node.content += text.encode()
        return True

    def _folder(self, path: str, _text: str) -> bool:
        if not self._free(path):
            return False
        self._nodes[path] = _Node("folder", 0o755, b"")
        return True

    def _symlink(self, path: str, text: str) -> bool:
        if not self._free(path):
            return False
        self._nodes[path] = _Node("link", 0, text.encode())
        return True

    def _remove(self, path: str, _text: str) -> bool:
        if path not in self._nodes:
            return False
        for each in self._tree(path):
            del self._nodes[each]
        return True

    def _move(self, path: str, to: str) -> bool:
        if path not in self._nodes or not self._free(to) or to.startswith(f"{path}/"):
            return False
        for each in self._tree(path):
            self._nodes[to + each.removeprefix(path)] = self._nodes.pop(each)
        return True

    def _again(self, path: str, text: str) -> bool:
        node = self._nodes.get(path)
        if node is None or node.kind != "folder":
            return False
        for each in self._tree(path)[1:]:
            del self._nodes[each]
        self._nodes[path] = _Node("folder", node.mode, b"")
        self._nodes[f"{path}/again"] = _Node("file", 0o644, text.encode())
        return True

    def _mode(self, path: str, text: str) -> bool:
        node = self._nodes.get(path)
        if node is None or node.kind == "link":
            return False
        node.mode = int(text, 8)
        return True

    def _link(self, path: str, to: str) -> bool:
        node = self._nodes.get(path)
        if node is None or node.kind == "folder" or not self._free(to):
            return False
        self._nodes[to] = node
        return True

    def _tree(self, path: str) -> list[str]:
        return [path, *sorted(each for each in self._nodes if each.startswith(f"{path}/"))]


def changed(was: Mapping[str, Entry], now: Mapping[str, Entry]) -> set[str]:
    """Return the paths that differ."""
    return {path for path in {*was, *now} if was.get(path) != now.get(path)}


def related(one: set[str], other: set[str]) -> bool:
    """Whether a path of one is, or is above or below, a path of the other."""
    return any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in one for b in other)


def applied(base: Mapping[str, Entry], found: Sequence[tuple[Mapping[str, object], bytes]]) -> State:
    """Return what a base becomes when the records of an export are applied to it."""
    state, path = dict(base), ""
    for head, payload in found:
        kind = head["kind"]
        if "path" in head:
            path = os.fsdecode(base64.b64decode(str(head["path"])))
        if kind in ("clear", "delete"):
            gone = [each for each in state if each.startswith(f"{path}/") or (each == path and kind == "delete")]
            for each in gone:
                del state[each]
        elif kind == "folder":
            state[path] = ("folder", _mode_of(head), b"")
        elif kind == "symlink":
            state[path] = ("link", 0, base64.b64decode(str(head["target"])))
        elif kind == "file":
            size = head["size"]
            assert isinstance(size, int)
            state[path] = ("file", _mode_of(head), payload.ljust(size, b"\0"))
        elif kind == "data":
            offset = head["offset"]
            assert isinstance(offset, int)
            was = state[path]
            state[path] = (was[0], was[1], was[2][:offset] + payload + was[2][offset + len(payload) :])
    return state


def _mode_of(head: Mapping[str, object]) -> int:
    mode = head["mode"]
    assert isinstance(mode, int)
    return stat.S_IMODE(mode)
