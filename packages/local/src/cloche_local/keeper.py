"""The keeper: one process per sandbox that holds its lifetime and runs the agent. It never runs user code.

It lives in the outer pid namespace, so that nothing inside can see, trace or signal it, and inside every other
namespace of the sandbox, so that a file path means what it means there.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn, Protocol

from cloche_local import init, limits, state, users
from cloche_local import syscalls as sys_
from cloche_local.changes import Changes
from cloche_local.egress_link import EgressLink
from cloche_local.forgetting import forget
from cloche_local.nest import Ground, Nest, Spawner
from cloche_local.setup import SetupFailed, step
from cloche_local.spec import SandboxSpec

# The graceful end has this long before the kernel ends a keeper that is stuck.
BACKSTOP_S = 5
_DEADLINE_BYTES = 64


class Agent(Spawner, Protocol):
    """The in-sandbox agent, as the zygote hands it in: it is the one module that may import it."""

    def keep(self, keeper: "Keeper", link: socket.socket, listeners: Sequence[socket.socket]) -> int:
        """Serve clients until the sandbox ends."""
        ...


def run(
    agent: Agent,
    ground: Ground,
    nest: Nest | None,
    spec: SandboxSpec,
    reply: socket.socket,
    egress: EgressLink | None = None,
    listener: socket.socket | None = None,
) -> int:
    """Build the sandbox, answer on `reply`, and keep it until it ends. Runs in a fresh fork of the zygote.

    Args:
        nest: the namespaces, where they were made in advance.
        egress: the process on the host that a sandbox with a network allowlist reaches the network through.
        listener: a port of the host that the agent answers on too.
    """
    try:
        keeper = Keeper(spec, agent, ground, nest or Nest(ground, spec.protections), reply, egress)
        if listener is not None:
            keeper.listeners.append(listener)
        keeper.build()
    except SetupFailed as failure:
        _answer(reply, {"failed": failure.step, "errno": failure.errno})
        return 1
    except OSError as error:
        _answer(reply, {"failed": error.filename or "keeper", "errno": error.errno or 0})
        return 1
    return keeper.serve()


def _answer(reply: socket.socket, message: dict[str, object]) -> bool:
    try:
        reply.send(json.dumps(message).encode())
    except OSError:
        return False
    return True


class Keeper:
    """One sandbox's keeper; also the hooks that the agent calls."""

    def __init__(
        self,
        spec: SandboxSpec,
        agent: Agent,
        ground: Ground,
        nest: Nest,
        reply: socket.socket,
        egress: EgressLink | None = None,
    ) -> None:
        self.spec = spec
        self.egress = egress
        self._agent = agent
        self._ground = ground
        self._nest = nest
        self._reply = reply
        self._deadline_fd = -1
        self._memory_events = -1
        self._lock_fd = -1
        self.listeners: list[socket.socket] = []
        self._changes: Changes | None = None
        self.on_renewed: Callable[[], None] = lambda: None
        self.deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + spec.timeout_s

    # -- building ---------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Order the sandbox from init, and write down meanwhile what another process needs to find it.

        Raises:
            SetupFailed: a step was refused.
            OSError: the state folder could not be written.
        """
        spec = self.spec
        os.umask(0o077)
        group = self._make_group()
        if group is not None:
            group.attach(self._nest.init_pid)
        # Init gets neither the token nor the environment: interpreters are forks of it.
        self._nest.order(replace(spec, access_token="", envs={}, metadata={}).encode())
        folder_fd = self._write_state()
        self.listeners.append(_listen(spec.runtime_folder, spec.socket_name))
        self._record(folder_fd)
        os.close(folder_fd)
        self._arm(spec.timeout_s)
        self._settle()
        # No host path is used from here on: init may switch the root, which is ours too.
        self._nest.let_go()

    async def become_ready(self) -> None:
        """Wait until init is confined, then tell whoever asked. The agent starts meanwhile, and serves nobody before.

        Does not return where the sandbox cannot be, or nobody wants it.
        """
        try:
            self._changes = Changes(await self._nest.arrived(), self._reading_everything)
            if self.spec.egress is not None:
                if self.egress is None:
                    raise SetupFailed("egress", 0)
                self.egress.start(self.spec.egress, self.spec.protections)
        except SetupFailed as failure:
            _answer(self._reply, {"failed": failure.step, "errno": failure.errno})
            os._exit(1)
        # Without a deadline the sandbox is in the making for everybody else.
        self._write_deadline()
        if not _answer(self._reply, {"ready": os.getpid()}):
            # Whoever asked took it back or is gone; nobody else knows the id.
            os._exit(1)
        self._reply.close()

    def _write_state(self) -> int:
        """Make the state folder and take the lock that says "alive"; returns the folder's descriptor."""
        import fcntl

        folder = self.spec.folder
        parent, name = os.path.split(folder)
        new = f"{parent}/{state.NEW_PREFIX}{name}"
        os.mkdir(new, 0o700)
        folder_fd = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        # Never closed: open in this process alone, it is held exactly as long as we live.
        self._lock_fd = os.open("lock", flags, 0o600, dir_fd=folder_fd)
        fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
        log = os.open("log", flags | os.O_APPEND, 0o600, dir_fd=folder_fd)
        os.dup2(log, 2)
        os.close(log)
        token = os.open("token", flags, 0o600, dir_fd=folder_fd)
        os.write(token, self.spec.access_token.encode())
        os.close(token)
        self._deadline_fd = os.open("deadline", flags, 0o600, dir_fd=folder_fd)
        # The name appears with the lock held: a sweep never takes a sandbox in the making for a dead one.
        os.rename(new, folder)
        return folder_fd

    def _make_group(self) -> limits.Group | None:
        wanted = self.spec.limits
        if wanted.memory_mb is None and wanted.cpus is None:
            return None
        group = limits.Group(limits.find_hierarchy(self.spec.cgroup_root), self.spec.sandbox_id)
        try:
            group.make(pids=wanted.pids, memory_mb=wanted.memory_mb, cpus=wanted.cpus)
        except OSError as error:
            raise SetupFailed("cgroup", error.errno or 0) from error
        self._memory_events = group.open_memory_events()
        return group

    def _record(self, folder_fd: int) -> None:
        """Write what another process needs to find this sandbox. No environment value, no key, no token."""
        spec = self.spec
        record = {
            "version": 1,
            "sandbox_id": spec.sandbox_id,
            "template": spec.template,
            "metadata": dict(spec.metadata),
            "started_at": time.time(),
            "keeper_pid": os.getpid(),
            "keeper_start": read_start_time("self"),
            "init_pid": self._nest.init_pid,
            "idempotency": spec.idempotency,
            "runtime_folder": spec.runtime_folder,
            "socket_name": spec.socket_name,
            "pids": spec.limits.pids,
            "disk_mb": spec.limits.disk_mb,
            "memory_mb": spec.limits.memory_mb,
            "cpus": spec.limits.cpus,
            "namespaces": self._namespaces(),
            "users": "single" if self._ground.id_range is None else "range",
            "binds": [bind.target for bind in spec.root.binds],
            "has_egress": spec.egress is not None,
            "port": spec.port,
        }
        fd = os.open("record.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder_fd)
        os.write(fd, json.dumps(record).encode())
        os.close(fd)

    def _namespaces(self) -> list[str]:
        on = self.spec.protections
        own = {"user": on.user_namespace, "mnt": True, "pid": on.pid_namespace, "net": on.net_namespace}
        own |= {"ipc": on.ipc_namespace, "uts": True, "cgroup": True}
        return [kind for kind, is_own in own.items() if is_own]

    def _settle(self) -> None:
        """Join what init made, and keep no right over the host."""
        id_range = self._ground.id_range
        if id_range is not None and self.spec.protections.user_namespace:
            # Root of the sandbox, to act for each of its users; over host files it is nobody.
            users.enter_range(id_range.userns_fd, 0)
            os.close(id_range.userns_fd)
        else:
            # One id only: file access needs no right beyond that id's but one, to read what this id closed to itself.
            sys_.capset(0, permitted=sys_.CAP_DAC_READ_SEARCH)
        # No other process of this id may read the token from our memory.
        sys_.prctl(sys_.PR_SET_DUMPABLE, 0)
        os.umask(0o022)

    # -- serving ----------------------------------------------------------------------------------------------------

    def serve(self) -> int:
        """Run the agent until the sandbox is killed or its time is over."""
        return self._agent.keep(self, self._nest.link, self.listeners)

    # -- hooks ------------------------------------------------------------------------------------------------------

    def renew(self, lifetime_s: int) -> None:
        """Live `lifetime_s` seconds from now."""
        self.deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + lifetime_s
        self._arm(lifetime_s)
        self._write_deadline()
        self.on_renewed()

    def end(self) -> None:
        """Everything inside is dead: let go of the lock, so that nobody lists the sandbox any more."""
        import fcntl

        if self.egress is not None:
            self.egress.close()
        fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def remaining_s(self) -> float:
        """Seconds until the deadline; not positive when it has passed."""
        return self.deadline - time.clock_gettime(time.CLOCK_BOOTTIME)

    def _arm(self, lifetime_s: int) -> None:
        """The backstop: the kernel ends us, and by the death signal everything inside, even if we are blocked."""
        if self.spec.protections.backstop_timer:
            signal.setitimer(signal.ITIMER_REAL, lifetime_s + BACKSTOP_S)

    def _write_deadline(self) -> None:
        """One fixed-length line, written in place: a reader sees the old or the new one."""
        wall = time.time() + self.remaining_s()
        line = json.dumps({"boot": round(self.deadline, 3), "wall": round(wall, 3)})
        os.pwrite(self._deadline_fd, line.ljust(_DEADLINE_BYTES).encode(), 0)

    @contextmanager
    def become(self, uid: int, gid: int) -> Generator[None]:
        """File access inside the block happens as this user, without the rights of root."""
        if self._ground.id_range is None or not self.spec.protections.acts_as_user:
            yield
            return
        sys_.set_fs_ids(uid, gid)
        try:
            yield
        finally:
            sys_.set_fs_ids(0, 0)

    async def changes(self, limit: int, cursor: str) -> Mapping[str, object]:
        """One page of what programs inside changed.

        Raises:
            ValueError: no page gave this cursor.
        """
        if self._changes is None:
            raise ValueError("not built")
        return await self._changes.page(limit, cursor)

    @contextmanager
    def _reading_everything(self) -> Generator[None]:
        """Inside the block no mode of a folder hides what is in it."""
        if self._ground.id_range is not None:
            # Root of the range: it has this right always.
            yield
            return
        sys_.capset(sys_.CAP_DAC_READ_SEARCH)
        try:
            yield
        finally:
            sys_.capset(0, permitted=sys_.CAP_DAC_READ_SEARCH)

    def memory_kills(self) -> int:
        """How many processes the memory limit has killed."""
        return limits.count_memory_kills(self._memory_events)

    def has_range(self) -> bool:
        """Whether the sandbox has more ids than one, so that there is a root user."""
        return self._ground.id_range is not None

    def open_root_spawner(self, forget: Callable[[], None]) -> socket.socket:
        """Start a second init that runs as root of the sandbox; returns our end of its link.

        Args:
            forget: called in the new process first, to leave the event loop that it was forked from.
        """
        link, init_link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            try:
                forget()
                link.detach()
                self._be_root_spawner(init_link)
            finally:
                os._exit(70)
        init_link.close()
        return link

    def _be_root_spawner(self, link: socket.socket) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, 0)
        on = self.spec.protections
        init.close_all_but([link.fileno(), self._nest.keeper_pidfd], on)
        if on.token_forgotten:
            # We are a fork of the keeper, and what root runs here is a fork of us.
            step("forget", forget, self.spec.access_token)
        os.setgroups([])
        keep = users.ROOT_CAPABILITIES
        init.confine(self.spec.limits, on, self._ground.filter_program, keep=keep, keeper_pidfd=self._nest.keeper_pidfd)
        self._agent.run_init(link, self.spec)


def _listen(folder: str, name: str) -> socket.socket:
    """Listen on `name` in `folder`, whatever its length: a socket address ends after 108 bytes."""
    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"/proc/self/fd/{folder_fd}/{name}")
        listener.listen(128)
        listener.setblocking(False)
        return listener
    finally:
        os.close(folder_fd)


def read_start_time(pid: int | str) -> int:
    """Start time of a process in clock ticks since boot; with the pid it names a process for good.

    Raises:
        OSError: no such process.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; field 22 is counted from behind it.
        return int(file.read().rpartition(b")")[2].split()[19])
