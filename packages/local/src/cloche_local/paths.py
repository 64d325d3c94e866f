"""Where the local provider keeps things: the state folder, a short folder for sockets, the slots of id ranges."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

CGROUP_ROOT = "/sys/fs/cgroup"
_ROOT_RUNTIME = "/run/cloche"
# A socket address holds 108 bytes with its end; 40 are for the sandbox's name.
_SHORT_PATH = 107


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one user on this host."""

    state: str
    runtime: str
    range_slots: str
    cgroup_root: str


def find_paths(settings: Mapping[str, str], environ: Mapping[str, str], *, host_root: bool) -> Paths:
    """Work out the folders from settings, then the XDG variables, then the defaults."""
    state = settings.get("local_state_dir") or os.path.join(_state_home(environ), "cloche", "local", "v1")
    runtime = settings.get("local_runtime_dir") or _default_runtime(environ, host_root=host_root)
    return Paths(
        state=os.path.abspath(os.path.expanduser(state)),
        runtime=os.path.abspath(os.path.expanduser(runtime)),
        # One place for the whole host: two servers with state of their own must not share a range.
        range_slots=f"{_ROOT_RUNTIME}/ids" if host_root else "",
        cgroup_root=CGROUP_ROOT,
    )


def _state_home(environ: Mapping[str, str]) -> str:
    given = environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore relative paths.
    return given if os.path.isabs(given) else os.path.join(environ.get("HOME") or "~", ".local", "state")


def _default_runtime(environ: Mapping[str, str], *, host_root: bool) -> str:
    given = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(given) and os.path.isdir(given) and os.stat(given).st_uid == _own_id():
        return os.path.join(given, "cloche")
    return _ROOT_RUNTIME if host_root else f"/tmp/cloche-{_own_id()}"


def _own_id() -> int:
    """Our user id; Windows has none, and opening the provider must not fail there."""
    return os.geteuid() if hasattr(os, "geteuid") else -1


def ensure_own_folder(path: str) -> None:
    """Make `path` a folder that only we may enter.

    Raises:
        OSError: it is somebody else's, a link, or open to others. /tmp is everybody's, so all of this is checked.
    """
    os.makedirs(path, 0o700, exist_ok=True)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        facts = os.fstat(fd)
        if facts.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder belongs to somebody else")
        if facts.st_mode & 0o077:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


class SocketFolder:
    """The runtime folder as clients reach it: through a descriptor of ours where its path is too long."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def address(self, runtime_folder: str, name: str) -> str:
        """A path to the socket that fits into a socket address of this process."""
        plain = f"{runtime_folder}/{name}"
        if len(os.fsencode(plain)) <= _SHORT_PATH:
            return plain
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{name}"

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
