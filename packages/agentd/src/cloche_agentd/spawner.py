"""The inits of a sandbox, one per user, and what every child gets: environment, folder, pipes."""

from __future__ import annotations

import errno
import os
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .config import AgentConfig, KeeperHooks, User
from .failures import AgentError
from .killtree import MARKER
from .link import Exit, InitLink, LinkLost

_PIDS: Final = 1 << 22
"""More than there are process numbers in a namespace (proc(5), pid_max)."""
_SLOTS: Final = 1023


@dataclass(frozen=True, slots=True)
class Child:
    """A process that init started for us."""

    pid: int
    marker: str
    exit: Exit
    link: InitLink
    number: int
    """What clients call it: `pid` is that of the init's own namespace, and workspace sessions have one each."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `cwd` lists the folder and its fallbacks; `envs` come after the sandbox's own."""

    user: User
    cwd: Sequence[str]
    envs: Mapping[str, str]
    argv: Sequence[str] = ()
    session: str = ""
    """Workspace session to start it in; empty is outside of any."""


def sandbox_lost() -> AgentError:
    """Return the error of a sandbox whose init is gone."""
    return AgentError("unavailable", "the sandbox is gone", "sandbox_lost")


class Spawner:
    """Starts children as a user, signals them, kills their trees."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, first: socket.socket, lost: Callable[[], None]) -> None:
        self._config = config
        self._hooks = hooks
        self._lost = lost
        self._links: dict[str, InitLink] = {config.spawner_user: InitLink(first, lost)}
        self._sessions: dict[str, tuple[InitLink, int]] = {}
        self._slot = 0

    def environment(self, launch: Launch, marker: str) -> dict[str, str]:
        """Return the whole environment of a child: nothing of the host's is in it."""
        return {
            "PATH": self._config.path,
            "HOME": launch.user.home,
            "USER": launch.user.name,
            "LOGNAME": launch.user.name,
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONIOENCODING": "utf-8",
            **self._config.envs,
            **launch.envs,
            MARKER: marker,
        }

    def pipe(self, user: User, *, keeper_reads: bool) -> tuple[int, int]:
        """Return a pipe as (keeper's end, child's end). It belongs to the user, who may then reopen /dev/stdout."""
        try:
            with self._hooks.become(user):
                read_end, write_end = os.pipe2(os.O_CLOEXEC)
        except OSError:
            text = "too many open pipes; end background programs first"
            raise AgentError("resource_exhausted", text, "command_failed_to_start") from None
        ours, theirs = (read_end, write_end) if keeper_reads else (write_end, read_end)
        os.set_blocking(ours, False)
        return ours, theirs

    async def spawn(self, launch: Launch, fds: Sequence[int]) -> Child:
        """Start a program. `fds` are its standard streams; without the first, /dev/null is its input.

        Raises:
            AgentError: cwd_not_found, command_failed_to_start, sandbox_lost.
        """
        return await self._start("spawn", launch, fds, {"argv": list(launch.argv)})

    async def spawn_on_terminal(self, launch: Launch, terminal: str) -> Child:
        """Start a program with this pseudo-terminal as its standard streams and controlling terminal.

        Raises:
            AgentError: as `spawn`.
        """
        launch = Launch(launch.user, launch.cwd, {"TERM": "xterm-256color", **launch.envs}, launch.argv, launch.session)
        return await self._start("spawn", launch, (), {"argv": list(launch.argv), "terminal": terminal})

    async def interpreter(self, launch: Launch, fds: Sequence[int]) -> Child:
        """Start an interpreter: a fork of init, or the program of `launch`.

        `fds` are its control channel, standard output and standard error.

        Raises:
            AgentError: cwd_not_found, interpreter_failed, sandbox_lost.
        """
        op, more = ("spawn", {"argv": list(launch.argv), "control": True}) if launch.argv else ("fork", {})
        try:
            return await self._start(op, launch, fds, more)
        except AgentError as error:
            if error.cloche != "command_failed_to_start":
                raise
            raise AgentError(error.code, error.message, "interpreter_failed") from error

    async def _start(self, op: str, launch: Launch, fds: Sequence[int], more: Mapping[str, object]) -> Child:
        link, first_number = self._link_of(launch)
        marker = uuid.uuid4().hex
        request = {"op": op, "cwd": list(launch.cwd), "env": self.environment(launch, marker), **more}
        try:
            started = await link.start(request, fds)
        except LinkLost:
            raise sandbox_lost() from None
        if isinstance(started, tuple):
            pid, child_exit = started
            return Child(pid, marker, child_exit, link, first_number + pid)
        raise _refusal(started, launch)

    async def signal(self, child: Child, number: int, *, group: bool) -> bool:
        """Signal a child or its process group; False when it no longer exists."""
        try:
            reply = await child.link.call({"op": "signal", "pid": child.pid, "signal": number, "group": group})
        except LinkLost:
            return False
        return reply.get("found") is True

    async def kill_tree(self, child: Child, *, since_ticks: int = 0, spare_leader: bool = False) -> None:
        """Kill everything that the child started, and the child; return when it is gone."""
        request = {"op": "kill", "leader": child.pid, "marker": child.marker, "since": since_ticks}
        try:
            await child.link.call({**request, "spare_leader": spare_leader})
        except LinkLost:
            return

    async def kill_everything(self) -> None:
        """Kill all children of all inits. Whoever waits for one learns that the sandbox is gone."""
        for link in self._everywhere():
            link.give_up_children()
        if self._hooks.kill_all is not None:
            # Before they break: an init that is killed is not one that is lost.
            self.close()
            await self._hooks.kill_all()
            return
        for link in self._links.values():
            try:
                await link.call({"op": "kill", "leader": 0})
            except LinkLost:
                continue

    def close(self) -> None:
        """Close the links: each init kills what is left and ends."""
        for link in self._everywhere():
            link.close()

    # -- workspace sessions -------------------------------------------------------------------------------------

    def open_session(self, session_id: str, link: socket.socket, lost: Callable[[], None]) -> None:
        """Start children by the init behind this link when a launch names the session."""
        self._slot = self._slot % _SLOTS + 1
        self._sessions[session_id] = InitLink(link, lost), self._slot * _PIDS

    async def kill_session(self, session_id: str) -> None:
        """Kill everything in a session; its init lives on."""
        if session_id in self._sessions:
            try:
                await self._sessions[session_id][0].call({"op": "kill", "leader": 0})
            except LinkLost:
                return

    def close_session(self, session_id: str) -> None:
        """Close a session's link: its init ends."""
        link, _ = self._sessions.pop(session_id, (None, 0))
        if link is not None:
            link.close()
            link.give_up_children()

    def _everywhere(self) -> list[InitLink]:
        return [*self._links.values(), *(link for link, _ in self._sessions.values())]

    def _link_of(self, launch: Launch) -> tuple[InitLink, int]:
        if not launch.session:
            return self._link_of_user(launch.user), 0
        if launch.session not in self._sessions:
            text = "there is no such workspace session"
            raise AgentError("not_found", text, "workspace_session_not_found")
        return self._sessions[launch.session]

    def _link_of_user(self, user: User) -> InitLink:
        link = self._links.get(user.name)
        if link is not None and not link.lost:
            return link
        if link is not None and user.name == self._config.spawner_user:
            raise sandbox_lost()
        opener = self._hooks.open_user_spawner
        if opener is None:
            raise AgentError("unauthenticated", "this sandbox has no such user", "unsupported_user")
        link = InitLink(opener(user), lambda: None)
        self._links[user.name] = link
        return link


def _refusal(reply: Mapping[str, object], launch: Launch) -> AgentError:
    number = reply.get("errno")
    if reply.get("what") == "cwd":
        folder = launch.cwd[0]
        if number in (errno.EACCES, errno.EPERM):
            return AgentError("permission_denied", f"cwd '{folder}' may not be entered", "file_permission_denied")
        return AgentError("invalid_argument", f"cwd '{folder}' does not exist", "cwd_not_found")
    if number == errno.E2BIG:
        reason = "the command and its environment are too long"
    elif number in (errno.ENOENT, errno.ENOTDIR):
        reason = "the program does not exist"
    elif number in (errno.EACCES, errno.EPERM):
        reason = "the program may not be executed"
    elif number in (errno.EAGAIN, errno.ENOMEM):
        reason = "the sandbox is at its limit of processes or memory"
        return AgentError("resource_exhausted", reason, "command_failed_to_start")
    else:
        reason = "the program could not be started"
    return AgentError("invalid_argument", reason, "command_failed_to_start")
