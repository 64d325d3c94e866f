"""The zygotes of this process. Everybody who wants the same one shares it, in whatever thread and event loop.

One stays for a while after the last user let go: a program that makes one sandbox after the other starts one zygote.
What is left ends with the process. A fork of the process shares nothing: it lets go of its copies and starts its own.
"""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Hashable

import anyio
import anyio.to_thread

from cloche_local.launcher import Launcher, Settings

IDLE_S = 10.0


class Launchers:
    """Counts the users of each launcher."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        """Make a registry.

        Args:
            idle_s: how long one stays when nobody uses it; 0 ends it with its last user.
        """
        self._idle_s = idle_s
        self._forget()
        _REGISTRIES.add(self)

    def lease(self, key: Hashable) -> Launcher | None:
        """The launcher of that key, to be released as often as it was leased; None where there is none."""
        with self._lock:
            launcher = self._launchers.get(key)
            if launcher is not None:
                self._take(launcher)
            return launcher

    def lease_new(self, key: Hashable, settings: Settings) -> Launcher:
        """The launcher of that key, new where nobody else made it meanwhile."""
        with self._lock:
            launcher = self._launchers.setdefault(key, Launcher(settings))
            self._take(launcher)
            return launcher

    def _take(self, launcher: Launcher) -> None:
        self._users[launcher] = self._users.get(launcher, 0) + 1
        if self._due.pop(launcher, None) is not None:
            self._changed.notify()

    async def release(self, launcher: Launcher) -> None:
        """Let go of it. Where nobody uses it any more it ends, now or when it has been idle."""
        if self._count_down(launcher):
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(launcher.end)

    def _count_down(self, launcher: Launcher) -> bool:
        """Whether it is to end now."""
        with self._lock:
            left = self._users.get(launcher, 0) - 1
            if left > 0:
                self._users[launcher] = left
            if left != 0:
                # Below zero: leased before a fork, and not this process's to end.
                return False
            del self._users[launcher]
            if self._idle_s <= 0:
                self._drop(launcher)
                return True
            self._due[launcher] = time.monotonic() + self._idle_s
            if not self._waiting:
                self._waiting = True
                threading.Thread(target=self._end_idle, name="cloche-idle", daemon=True).start()
            return False

    def _end_idle(self) -> None:
        """End each launcher that is due; the thread ends when none is left to wait for."""
        while (launcher := self._next_due()) is not None:
            launcher.end()

    def _next_due(self) -> Launcher | None:
        """Wait until a launcher is due, and take it: it is nobody's any more. None when there is none to wait for."""
        with self._changed:
            while self._due:
                launcher = min(self._due, key=self._due.__getitem__)
                wait_s = self._due[launcher] - time.monotonic()
                if wait_s <= 0:
                    del self._due[launcher]
                    self._drop(launcher)
                    return launcher
                self._changed.wait(wait_s)
            self._waiting = False
            return None

    def _drop(self, launcher: Launcher) -> None:
        for key in [key for key, value in self._launchers.items() if value is launcher]:
            del self._launchers[key]

    def end_all(self) -> None:
        """End every zygote, used or not."""
        with self._lock:
            launchers = list(self._launchers.values())
            self._launchers.clear()
            self._due.clear()
            self._changed.notify()
            self._users.clear()
        for launcher in launchers:
            launcher.end()

    def leave_behind(self) -> None:
        """In a fork: none of them is ours. Nothing is ended."""
        launchers = {*self._launchers.values(), *self._users}
        self._forget()
        for launcher in launchers:
            launcher.leave_behind()

    def _forget(self) -> None:
        # A new lock: at the fork another thread may have held the old one.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._launchers: dict[Hashable, Launcher] = {}
        self._users: dict[Launcher, int] = {}
        # When one without users ends, by the monotonic clock.
        self._due: dict[Launcher, float] = {}
        self._waiting = False


_REGISTRIES: weakref.WeakSet[Launchers] = weakref.WeakSet()


def _after_fork() -> None:
    for registry in list(_REGISTRIES):
        registry.leave_behind()


SHARED = Launchers()
atexit.register(SHARED.end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
