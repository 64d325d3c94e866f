"""Paths of the sandbox: what a request names, and what it resolves to."""

from __future__ import annotations

import errno
import os
import posixpath
import stat

from . import limits
from .config import AgentConfig, User
from .failures import AgentError, from_os_error


def path_invalid(message: str) -> AgentError:
    """Return the error of a path that cannot be used."""
    return AgentError("invalid_argument", message, "path_invalid", field="path")


def absolute(path: str, user: User) -> str:
    """Return the normal absolute form of a requested path; `~` and relative paths start at the user's home.

    Raises:
        AgentError: path_invalid.
    """
    if not path:
        raise path_invalid("path is empty")
    if "\0" in path:
        raise path_invalid("path must not contain NUL")
    if path == "~" or path.startswith("~/"):
        path = user.home + path[1:]
    joined = posixpath.join(user.home, path)
    if len(os.fsencode(joined)) > limits.PATH_BYTES:
        raise path_invalid("path is too long")
    return joined


class Resolver:
    """Resolves links, and confines paths to one folder where the configuration says so.

    A sandbox's mount namespace confines everything already. `file_root` does it for a boot without one: the deepest
    existing parent is resolved, and what cannot be resolved is refused.
    """

    def __init__(self, config: AgentConfig) -> None:
        root = config.file_root
        self._root = os.path.realpath(root) if root is not None else None
        self._hidden = config.hidden

    def target(self, path: str) -> str:
        """Return where the path leads, every link followed; the last parts need not exist yet.

        Raises:
            AgentError: path_invalid for a loop, file_permission_denied outside the root.
        """
        try:
            resolved = os.path.realpath(path)
        except OSError as error:
            raise from_os_error(error, path) from error
        self._confine(resolved, path)
        return resolved

    def entry(self, path: str) -> str:
        """Return the path with the links of its folder followed, but not its last part.

        Raises:
            AgentError: as `target`.
        """
        normal = posixpath.normpath(path)
        folder, name = posixpath.split(path.rstrip("/") or "/")
        if name in ("", ".", ".."):
            return self.target(normal)
        return posixpath.join(self.target(folder or "/"), name)

    def _confine(self, resolved: str, asked: str) -> None:
        if any(resolved == folder or resolved.startswith(f"{folder}/") for folder in self._hidden):
            raise AgentError("permission_denied", f"path may not be used: {asked}", "file_permission_denied")
        if self._root is None:
            return
        if resolved != self._root and not resolved.startswith(self._root.rstrip("/") + "/"):
            text = f"path is outside the sandbox's files: {asked}"
            raise AgentError("permission_denied", text, "file_permission_denied")


def check_regular(mode: int, path: str) -> None:
    """Refuse what is not a regular file.

    Raises:
        AgentError: file_is_directory, file_special.
    """
    if stat.S_ISLNK(mode):
        # Every link was followed already, as far as it leads anywhere.
        raise from_os_error(OSError(errno.ELOOP, ""), path)
    if stat.S_ISDIR(mode):
        raise AgentError("invalid_argument", f"path is a directory: {path}", "file_is_directory")
    if not stat.S_ISREG(mode):
        raise AgentError("invalid_argument", f"not a regular file: {path}", "file_special")


def open_regular(resolved: str, asked: str) -> int:
    """Open a regular file for reading, without ever waiting for a FIFO's writer or a device.

    Raises:
        AgentError: file_not_found, file_is_directory, file_special, file_permission_denied.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    try:
        # Look before opening: opening a device can already have an effect.
        check_regular(os.lstat(resolved).st_mode, asked)
        fd = os.open(resolved, flags)
    except OSError as error:
        raise from_os_error(error, asked) from error
    try:
        check_regular(os.fstat(fd).st_mode, asked)
    except BaseException:
        os.close(fd)
        raise
    return fd


def display(path: str) -> str:
    """Return a path as text that any JSON reader accepts; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")
