"""The keepers of a zygote, as it knows them: those that wait for a request, and those of sandboxes."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from cloche_local import journal, limits, state


@dataclass(frozen=True, slots=True)
class Spare:
    """A keeper that waits for its request."""

    pid: int
    requests: socket.socket

    def take(self, reply: socket.socket, egress: Sequence[int] = ()) -> bool:
        """Hand a request over; False where the keeper has died."""
        try:
            socket.send_fds(self.requests, [b"r"], [reply.fileno(), *egress])
        except OSError:
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Let go; a keeper without a request ends."""
        self.requests.close()


@dataclass(frozen=True, slots=True)
class Child:
    """The keeper of a sandbox."""

    sandbox_id: str
    folder: str
    socket_path: str

    def note_death(self, status: int) -> None:
        """Write the end into the log of a sandbox whose keeper could not: a signal ended it."""
        if os.WIFSIGNALED(status):
            path = journal.path_of(os.path.dirname(self.folder), self.sandbox_id)
            journal.add_end(path, "keeper_killed", {"signal": os.WTERMSIG(status)})

    def remove(self, cgroup_root: str) -> bool:
        """Remove state, socket and groups; False where something still holds on."""
        if os.path.lexists(self.folder) or os.path.lexists(self.socket_path):
            state.remove_left(self.folder, self.socket_path)
        if not cgroup_root:
            return True
        return limits.Group(limits.find_hierarchy(cgroup_root), self.sandbox_id).remove()
