"""Names of user and group ids inside the sandbox."""

from __future__ import annotations

from .config import AgentConfig


class Accounts:
    """Knows the configured users; others keep their number.

    The C library is not asked: it would load name service modules from inside the sandbox.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._users = {user.uid: user.name for user in config.users}
        self._groups = {user.gid: user.name for user in config.users}

    def user(self, uid: int) -> str:
        """Return the name of a user id, or the number as text."""
        return self._users.get(uid, "root" if uid == 0 else str(uid))

    def group(self, gid: int) -> str:
        """Return the name of a group id, or the number as text."""
        return self._groups.get(gid, "root" if gid == 0 else str(gid))
