"""The boot of a container: this process is its pid 1 and the keeper, and has the one capability that mounts need.

What runs user code is forked before the token is read, lives in a pid and mount namespace of its own, and has no
capability. The image needs nothing: Python and agent come with their own loader.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from . import namespace_calls as calls
from .agent import run_keeper
from .config import DEFAULT_PATH, AgentConfig, InitProfile, KeeperHooks, User, WorkspacePlace
from .init import run_init
from .lifetime import Lifetime, memory_kills
from .link import open_link
from .overlay import hide
from .workspace_host import WorkspaceSetup, start_host

AGENT_PORT: Final = 49983
INTERPRETER_PORT: Final = 49999
# What a failed boot prints, and nothing else: the manager knows these words.
MOUNTS_REFUSED: Final = "cloche: mounts refused"
BOOT_FAILED: Final = "cloche: boot failed"

_SECRET: Final = "token"
_SETTINGS: Final = "settings.json"
_HOME: Final = "/root"
# Parts of /proc that are the host's, as container engines hide them. Uid 0 without capabilities may still write
# where the mode lets its owner.
_SEALED: Final = ("bus", "fs", "irq", "sys")
_MASKED: Final = ("kcore", "keys", "latency_stats", "sched_debug", "sysrq-trigger", "timer_list", "timer_stats")
_HIDDEN_FOLDERS: Final = ("acpi", "scsi")


@dataclass(frozen=True)
class Boot:
    """What the manager says of a sandbox; nothing secret is in it."""

    sandbox_id: str
    workdir: str = "/workspace"
    store: str = ""
    base: str = ""
    base_root_hash: str = ""
    path: str = DEFAULT_PATH
    envs: dict[str, str] = field(default_factory=dict[str, str])
    deadline: float = 0.0
    """When the sandbox ends, in seconds of the wall clock; 0 is never."""


def main(folder: str) -> int:
    """Boot from what lies in that folder, and serve until the sandbox is over; return its exit status."""
    boot = _read_boot(folder)
    _make_folders()
    workspace = _open_workspace(boot)
    keeper_end, init_end = open_link()
    try:
        _fork_init(keeper_end, init_end, boot.store)
    except OSError:
        _say(MOUNTS_REFUSED)
        return 1
    init_end.close()
    token = _take_secret(folder)
    # Without a handler nothing ends the first process of a container; run_keeper takes it over.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    listeners = [_listen(AGENT_PORT), _listen(INTERPRETER_PORT)]
    config = AgentConfig(
        sandbox_id=boot.sandbox_id,
        access_token=token,
        envs=boot.envs,
        users=(User("user", 0, 0, _HOME),),
        workdir=boot.workdir,
        path=boot.path,
        hidden=(boot.store,) if boot.store else (),
    )
    lifetime = Lifetime(boot.deadline)
    hooks = KeeperHooks(
        workspace=workspace,
        workspace_place=_own_workspace(boot),
        on_renew=lifetime.renew,
        facts=lifetime.facts,
        memory_kills=memory_kills,
    )
    return run_keeper(config, keeper_end, listeners, hooks)


def _own_workspace(boot: Boot) -> WorkspacePlace | None:
    """Get a mount namespace of our own: what the keeper mounts there is in nobody's way."""
    if not boot.store:
        return None
    calls.unshare(calls.CLONE_NEWNS)
    calls.mount("none", "/", None, calls.MS_REC | calls.MS_PRIVATE)
    return WorkspacePlace(boot.store, boot.base, boot.workdir)


def _open_workspace(boot: Boot) -> socket.socket | None:
    """Start the process that owns the layers. Before init: what is forked after that lives in init's namespace."""
    if not boot.store:
        return None
    setup = WorkspaceSetup(boot.store, boot.base, boot.workdir, boot.base_root_hash)
    return start_host(setup, confine=confine_init, mount_proc=seal_proc)


def _read_boot(folder: str) -> Boot:
    with open(os.path.join(folder, _SETTINGS), "rb") as stream:
        return Boot(**cast("dict[str, Any]", json.load(stream)))


def _take_secret(folder: str) -> str:
    """Read the token, and leave nothing of what the manager put there."""
    path = os.path.join(folder, _SECRET)
    with open(path, encoding="ascii") as stream:
        token = stream.read().strip()
    for name in (_SECRET, _SETTINGS):
        os.unlink(os.path.join(folder, name))
    with suppress(OSError):
        os.rmdir(folder)
    return token


def _make_folders() -> None:
    """What programs expect and an empty image lacks."""
    os.umask(0o022)
    for path, mode in ((_HOME, 0o700), ("/tmp", 0o1777), ("/var/tmp", 0o1777)):
        if not os.path.isdir(path):
            with suppress(OSError):
                os.makedirs(path)
                os.chmod(path, mode)


def _fork_init(keeper_end: socket.socket, init_end: socket.socket, store: str) -> None:
    """Start init as pid 1 of a new pid namespace, and wait until it is confined.

    Raises:
        OSError: the kernel, or a security module, refuses a namespace or a mount.
    """
    calls.unshare(calls.CLONE_NEWPID)
    told_end, tell_end = socket.socketpair()
    if os.fork() == 0:
        keeper_end.close()
        told_end.close()
        try:
            own_proc()
            if store:
                hide(store)
            confine_init()
            tell_end.send(b"+")
            tell_end.close()
        except OSError:
            os._exit(71)
        run_init(init_end, InitProfile())
    tell_end.close()
    with told_end:
        if told_end.recv(1) != b"+":
            raise PermissionError("init could not set up its mounts")


def own_proc() -> None:
    """See the processes of this pid namespace alone, and none of the host's settings as writable.

    Source: proc(5); the paths that container engines mask and make read-only.
    """
    calls.unshare(calls.CLONE_NEWNS | calls.CLONE_NEWIPC)
    calls.mount("none", "/", None, calls.MS_REC | calls.MS_PRIVATE)
    seal_proc()


def seal_proc() -> None:
    """Mount a /proc of this pid namespace, and seal of it what is the host's."""
    flags = calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC
    calls.mount("proc", "/proc", "proc", flags)
    for name in _SEALED:
        with suppress(FileNotFoundError):
            calls.mount(f"/proc/{name}", f"/proc/{name}", None, calls.MS_BIND | calls.MS_REC)
            calls.mount("none", f"/proc/{name}", None, calls.MS_REMOUNT | calls.MS_BIND | calls.MS_RDONLY | flags)
    for name in _MASKED:
        with suppress(FileNotFoundError):
            calls.mount("/dev/null", f"/proc/{name}", None, calls.MS_BIND)
    for name in _HIDDEN_FOLDERS:
        with suppress(FileNotFoundError):
            calls.mount("none", f"/proc/{name}", "tmpfs", flags | calls.MS_RDONLY)


def confine_init() -> None:
    """Give up what user code must not have; everything that this process starts inherits it.

    Order matters: capabilities last, since nothing can be set up after them.
    """
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    if null > 2:
        os.close(null)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls.set_no_new_privileges()
    calls.drop_capabilities()
    # Commands have our id; what is a fork of ours shows itself again.
    calls.hide_memory()


def _listen(port: int) -> socket.socket:
    # All addresses of the container's own network namespace; the engine publishes them on 127.0.0.1 of the host.
    return socket.create_server(("0.0.0.0", port), backlog=128)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def entry(folder: str) -> None:
    """Run as a program. What goes wrong is told in one known line; details could hold what is secret."""
    try:
        status = main(folder)
    except (OSError, ValueError, TypeError):
        _say(BOOT_FAILED)
        status = 1
    sys.exit(status)
