"""Places below an open folder, by folder handles: a link on the way is an error, whoever put it there when. Blocks."""

from __future__ import annotations

import os
import stat

from .workspace_tree import OPEN_FOLDER


class Places:
    """Open folders below a root. Those on the way to the last place stay open, as the next one is often beside it."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._chain: list[tuple[bytes, int]] = []

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """The open folder that a path lies in, and its last name. The handle is ours: it is closed by a later call.

        Raises:
            OSError: a folder on the way is not there, or is none.
        """
        *parts, name = path.split(b"/")
        same = 0
        while same < min(len(parts), len(self._chain)) and self._chain[same][0] == parts[same]:
            same += 1
        self._close_from(same)
        for part in parts[same:]:
            self._chain.append((part, os.open(part, OPEN_FOLDER, dir_fd=self._last)))
        return self._last, name

    def folder(self, path: bytes) -> int:
        """The open folder of that path; the root for an empty one."""
        return self.parent(path + b"/.")[0] if path else self.root

    def status(self, path: bytes) -> os.stat_result | None:
        """What is there, links as links; None where nothing is."""
        try:
            fd, name = self.parent(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def forget(self) -> None:
        """Close every folder: one of them may have another place now."""
        self._close_from(0)

    @property
    def _last(self) -> int:
        return self._chain[-1][1] if self._chain else self.root

    def _close_from(self, at: int) -> None:
        while len(self._chain) > at:
            os.close(self._chain.pop()[1])


def kind_of(status: os.stat_result | None) -> str:
    """The word that a record of an export has for it; empty where nothing is, or something else."""
    if status is None:
        return ""
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "symlink"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")
