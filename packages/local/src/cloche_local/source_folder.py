"""A root file system that lies in a folder of the host, as entries of a `Tree`.

What is mounted below the folder is left out, and no link is followed.
"""

import os
import stat
from collections.abc import Iterator

from cloche_local.tree import Facts, Tree


def copy_folder(source: str, tree: Tree) -> None:
    """Write what the folder holds.

    Raises:
        TreeRefused: it is not fit for a root.
        OSError: something of it cannot be read.
    """
    fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        facts = os.fstat(fd)
        tree.folder("/", _facts(facts))
        _copy(fd, "", facts.st_dev, tree, {})
    finally:
        os.close(fd)


def _copy(folder: int, name: str, device: int, tree: Tree, linked: dict[tuple[int, int], str]) -> None:
    for entry, facts in _entries(folder):
        path = f"{name}/{entry}"
        if stat.S_ISDIR(facts.st_mode):
            tree.folder(path, _facts(facts))
            if facts.st_dev == device:
                _copy_below(folder, entry, path, device, tree, linked)
        elif stat.S_ISLNK(facts.st_mode):
            tree.link(path, _facts(facts), os.readlink(entry, dir_fd=folder))
        elif stat.S_ISREG(facts.st_mode):
            _copy_file(folder, entry, path, tree, linked)
        else:
            tree.skip()


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    for entry in sorted(os.listdir(folder)):
        yield entry, os.stat(entry, dir_fd=folder, follow_symlinks=False)


def _copy_below(
    folder: int, entry: str, path: str, device: int, tree: Tree, linked: dict[tuple[int, int], str]
) -> None:
    fd = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not os.path.samestat(os.fstat(fd), os.stat(tree.root)):  # the tree may grow below its own source
            _copy(fd, path, device, tree, linked)
    finally:
        os.close(fd)


def _copy_file(folder: int, entry: str, path: str, tree: Tree, linked: dict[tuple[int, int], str]) -> None:
    # Not blocking: it may have become a pipe since we looked.
    fd = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(fd, "rb") as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            tree.skip()
            return
        first = linked.setdefault((facts.st_dev, facts.st_ino), path)
        if first != path:
            tree.hard_link(path, first)
        else:
            tree.file(path, _facts(facts), file, facts.st_size)


def _facts(facts: os.stat_result) -> Facts:
    return Facts(stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid, facts.st_mtime)
