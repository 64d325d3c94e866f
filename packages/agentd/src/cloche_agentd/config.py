"""What a runtime hands to the agent: its configuration, its hooks, and init's profile."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class User:
    """One account that commands and file operations may use, as seen inside the sandbox."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class Orders:
    """What an agent that was begun in advance is told when its sandbox is asked for."""

    sandbox_id: str
    access_token: str = field(repr=False)
    envs: Mapping[str, str] = field(repr=False)
    listeners: Sequence[socket.socket]


@dataclass(slots=True)
class AgentConfig:
    """Everything that the keeper knows about its sandbox. Nothing changes but what orders bring, once.

    `users` lists the accounts that requests may name. `spawner_user` is the one that the first init runs as; each
    other one needs `KeeperHooks.open_user_spawner`. `file_root` confines file operations by path where no mount
    namespace does it. `workdir` of None is the default user's home. An empty `access_token` refuses every request.
    """

    sandbox_id: str = ""
    access_token: str = field(default="", repr=False)
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    users: Sequence[User] = (User("user", 1000, 1000, "/home/user"),)
    default_user: str = "user"
    spawner_user: str = "user"
    workdir: str | None = None
    path: str = DEFAULT_PATH
    tmp_dir: str = "/tmp"
    file_root: str | None = None
    hidden: Sequence[str] = ()
    """Folders that no file operation reaches: what the agent keeps there is not the sandbox's."""
    open_contexts: bool = False
    """Accept /contexts without a token, as released E2B interpreters clients call it."""
    begin_interpreter: bool = False
    """Start the default Python context before it is asked for."""
    rehearse: bool = False
    """Nobody waits yet: answer one request of our own, so that the first one of a client is as fast as the second."""
    host_tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Program name to absolute path, for languages whose program is not on `path`."""
    clock: Callable[[], float] = time.time

    def user(self, name: str) -> User | None:
        """Return the account with this name, or None."""
        return next((user for user in self.users if user.name == name), None)

    def adopt(self, orders: Orders) -> None:
        """Become the configuration of the sandbox that was asked for."""
        self.sandbox_id, self.access_token, self.envs = orders.sandbox_id, orders.access_token, orders.envs


def _become_nobody_else(_user: User) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def _renew_nothing(_lifetime_s: int) -> None:
    return None


def _kill_nothing() -> None:
    return None


def _record_nothing(_event: str, _facts: Mapping[str, object]) -> None:
    return None


def _no_kills() -> int:
    return 0


def _no_limit_met() -> str | None:
    return None


def _no_facts() -> Mapping[str, object]:
    return {}


def _no_mark() -> int:
    return 0


def _no_denials(_mark: int) -> Sequence[Mapping[str, str]]:
    return ()


async def _no_network(_add: Sequence[str], _remove: Sequence[str]) -> Sequence[str] | None:
    return None


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """Folders of a workspace: its layer store, its base, and where it is seen."""

    store: str
    base: str
    target: str


@dataclass(frozen=True, slots=True)
class KeeperHooks:
    """What the runtime does for the agent. Each default is right for a boot without confinement.

    Attributes:
        on_renew: the sandbox shall live this many seconds from now.
        on_kill: everything inside is dead and the answer is about to be sent; the keeper ends after it.
        open_user_spawner: start another init that runs as this user; return the keeper's end of its link.
        become: file operations inside the context happen with the rights of this user. Never held over an await.
        kill_all: kill every process inside and wait for the last one's end, faster than init could. None: init does it.
        memory_kills: how many processes of the sandbox the memory limit has killed so far.
        limit_met: the limit that the sandbox is at just now, as a stop reason; asked when something has failed.
        facts: more keys for GET /cloche/info (deadline, limits).
        denial_mark: where the network denials of a call begin that starts now.
        denials_since: what the network allowlist denied since a mark: `target`, and `rule` where one would allow it.
        orders: awaited once, before the first request is taken; what it raises ends the agent. None where the
            configuration is whole from the start.
        update_network: add and remove rules of the allowlist; returns those in force, or None where the sandbox has
            no allowlist. ValueError: one is malformed; LookupError: one to remove is not in force.
        record: something happened that the sandbox's owner may read later: `call`, `command_ended`, `code_ended`,
            `denied`. Never a payload, a path or a value; must not block and not fail.
        changes: one page of what programs changed in the file system: how many entries at most, and the cursor of the
            page before. ValueError: no page gave it. None where nothing can tell.
        workspace: link to the workspace host (`workspace_host.start_host`). With it, commands run in workspace
            sessions over layers. None: there are no layers.
        workspace_place: where the layers are, for a keeper that may mount in a mount namespace of its own: file
            operations then see and change the workspace through them. None: they see the folder as it is.
    """

    on_renew: Callable[[int], None] = _renew_nothing
    on_kill: Callable[[], Awaitable[None] | None] = _kill_nothing
    open_user_spawner: Callable[[User], socket.socket] | None = None
    become: Callable[[User], AbstractContextManager[None]] = _become_nobody_else
    kill_all: Callable[[], Awaitable[None]] | None = None
    memory_kills: Callable[[], int] = _no_kills
    limit_met: Callable[[], str | None] = _no_limit_met
    facts: Callable[[], Mapping[str, object]] = _no_facts
    denial_mark: Callable[[], int] = _no_mark
    denials_since: Callable[[int], Sequence[Mapping[str, str]]] = _no_denials
    orders: Callable[[], Awaitable[Orders]] | None = None
    update_network: Callable[[Sequence[str], Sequence[str]], Awaitable[Sequence[str] | None]] = _no_network
    record: Callable[[str, Mapping[str, object]], None] = _record_nothing
    changes: Callable[[int, str], Awaitable[Mapping[str, object]]] | None = None
    workspace: socket.socket | None = None
    workspace_place: WorkspacePlace | None = None


@dataclass(frozen=True, slots=True)
class InitProfile:
    """How init makes interpreter contexts.

    Attributes:
        import_paths: folders that user code may import from, after its working directory.
        die_with_parent: contexts get PR_SET_PDEATHSIG; needed where init is not pid 1 of a pid namespace.
        prepare_context: called in each fresh context before user code, for example to set rlimits.
        leaves_cwd: contexts are in their working directory only while they run code: what is mounted there may be
            exchanged meanwhile.
        bare_fork: call nothing that modules have registered for forks, which is only right where all are known.
    """

    import_paths: Sequence[str] = ()
    die_with_parent: bool = False
    prepare_context: Callable[[], None] | None = None
    leaves_cwd: bool = False
    bare_fork: bool = False
