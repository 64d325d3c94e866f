"""Where a keeper writes on the host: its sandbox's state folder and socket, reached through descriptors.

A keeper writes when its request has come, and the root is switched by then. The descriptors are opened before that,
lead to these two folders alone, and are closed before anybody else's code runs.
"""

import json
import os
import socket
from collections.abc import Mapping

from cloche_local import journal, state

_DEADLINE_BYTES = 64
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Place:
    """The two folders of the host, and the files of one sandbox in them."""

    def __init__(self, state_folder: str, runtime_folder: str) -> None:
        """Open the folders.

        Raises:
            OSError: one is not there or not ours.
        """
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        self._state = os.open(state_folder, flags)
        self._runtime = os.open(runtime_folder, flags | os.O_NOFOLLOW)
        self._lock = -1
        self._deadline = -1
        self.journal = journal.Journal(-1)

    def listen(self, name: str) -> socket.socket:
        """Listen on `name` in the runtime folder, whatever its length: a socket address ends after 108 bytes."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.fchdir(self._runtime)
        try:
            listener.bind(name)
        finally:
            os.chdir("/")
        listener.listen(128)
        listener.setblocking(False)
        return listener

    def write(self, sandbox_id: str, token: str, record: Mapping[str, object]) -> None:
        """Make the state folder with all that is known by now, and take the lock that says "alive".

        Raises:
            OSError: it could not be written.
        """
        import fcntl

        new = state.NEW_PREFIX + sandbox_id
        os.mkdir(new, 0o700, dir_fd=self._state)
        folder = os.open(new, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._state)
        # Never closed: open in this process alone, it is held exactly as long as we live.
        self._lock = os.open("lock", _NEW_FILE, 0o600, dir_fd=folder)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        log = os.open("log", _NEW_FILE | os.O_APPEND, 0o600, dir_fd=folder)
        os.dup2(log, 2)
        os.close(log)
        for name, content in (("token", token), ("record.json", json.dumps(record))):
            fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
            os.write(fd, content.encode())
            os.close(fd)
        self.journal = journal.create(sandbox_id, self._state)
        self._deadline = os.open("deadline", _NEW_FILE, 0o600, dir_fd=folder)
        os.close(folder)
        # The name appears with the lock held: a sweep never takes a sandbox in the making for a dead one.
        os.rename(new, sandbox_id, src_dir_fd=self._state, dst_dir_fd=self._state)

    def write_deadline(self, boot: float, wall: float) -> None:
        """One fixed-length line, written in place: a reader sees the old or the new one."""
        line = json.dumps({"boot": round(boot, 3), "wall": round(wall, 3)})
        os.pwrite(self._deadline, line.ljust(_DEADLINE_BYTES).encode(), 0)

    def leave(self) -> None:
        """Close the folders; the files of the sandbox stay open."""
        os.close(self._state)
        os.close(self._runtime)

    def unlock(self) -> None:
        """Let go of the lock, so that nobody lists the sandbox any more."""
        import fcntl

        fcntl.flock(self._lock, fcntl.LOCK_UN)
