"""The keeper: one process per sandbox that holds its lifetime and runs the agent. It never runs user code.

It lives in the outer pid namespace, so that nothing inside can see, trace or signal it, and inside every other
namespace of the sandbox, so that a file path means what it means there. It is begun before anybody asks: everything
that the sandbox's shape decides is built, and then it waits for its orders.
"""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NoReturn, Protocol

from cloche_local import init, journal, limits, state, users
from cloche_local import syscalls as sys_
from cloche_local.changes import Changes
from cloche_local.egress_link import EgressLink
from cloche_local.forgetting import forget
from cloche_local.nest import Ground, Nest, Spawner
from cloche_local.orders import Orders
from cloche_local.place import Place
from cloche_local.pressure import limit_met
from cloche_local.setup import SetupFailed, step
from cloche_local.spec import Limits, SandboxSpec, Shape

# The graceful end has this long before the kernel ends a keeper that is stuck.
BACKSTOP_S = 5
# Many times what it needs: what code inside makes it keep is bounded, and this is for what was forgotten.
OWN_DATA_BYTES = 1 << 30


class Agent(Spawner, Protocol):
    """The in-sandbox agent, as the zygote hands it in: it is the one module that may import it."""

    @property
    def protocol(self) -> str:
        """Version of the protocol that clients speak with it."""
        ...

    def keep(self, keeper: "Keeper", link: socket.socket) -> int:
        """Wait for the keeper's orders, then serve clients until the sandbox ends."""
        ...


def run(agent: Agent, ground: Ground, shape: Shape, orders: Orders, group: limits.Group | None = None) -> int:
    """Build the sandbox, answer its request, and keep it until it ends. Runs in a fresh fork of the zygote.

    Args:
        group: the control groups to make for it, where a limit needs some.
    """
    try:
        keeper = Keeper(agent, ground, shape, orders, group)
    except (SetupFailed, OSError) as failure:
        orders.refuse(failure)
        return 1
    return agent.keep(keeper, keeper.link)


class Keeper:
    """One sandbox's keeper; also the hooks that the agent calls."""

    def __init__(
        self, agent: Agent, ground: Ground, shape: Shape, orders: Orders, group: limits.Group | None = None
    ) -> None:
        """Begin the sandbox: when this returns, init is on its way into it.

        Raises:
            SetupFailed: a step was refused.
            OSError: the folders of the host cannot be opened.
        """
        self.shape = shape
        self.deadline = 0.0
        self._started_at = 0.0
        self._token = ""
        self._changes: Changes | None = None
        self._end_told = False
        self._root_spawners: list[int] = []
        self.on_renewed: Callable[[], None] = lambda: None
        self.on_left_alone: Callable[[], object] = lambda: None
        self._agent = agent
        self._ground = ground
        self._orders = orders
        # From here on init may switch the root, which is ours too: what is needed of the host is opened or read now.
        self._place = Place(os.path.dirname(ground.staging_folder), ground.runtime_folder)
        self._start_time = state.read_start_time("self")
        self._memory_events = -1 if group is None else _make_group(group, shape.limits)
        self._nest = Nest(ground, shape, group)
        # Until we are the sandbox's root, its ids are these of the host.
        self._first_id = 0 if ground.id_range is None or not shape.protections.user_namespace else ground.id_range.base
        # No other process of this id may read the token from our memory.
        sys_.prctl(sys_.PR_SET_DUMPABLE, 0)
        _bound_own_memory()

    @property
    def link(self) -> socket.socket:
        """Our end of the socket to init."""
        return self._nest.link

    @property
    def waits(self) -> bool:
        """Whether nobody has asked for the sandbox yet."""
        return self._orders.waits

    # -- from begun to running --------------------------------------------------------------------------------------

    async def receive_orders(self) -> tuple[SandboxSpec, Sequence[socket.socket]]:
        """Wait until somebody wants the sandbox and init is confined; answer, and return what was asked for.

        The agent starts meanwhile, and serves nobody before. Does not return where the sandbox cannot be, or nobody
        wants it.
        """
        try:
            async with asyncio.TaskGroup() as both:
                arrival = both.create_task(self._nest.arrived())
                spec = await self._orders.receive(self.shape)
                listener = self._take(spec)
            self._changes = Changes(arrival.result(), self._reading_everything)
            self._start_egress(spec)
        except* (SetupFailed, OSError) as failures:
            failure = failures.exceptions[0]
            if isinstance(failure, (SetupFailed, OSError)):
                self._orders.refuse(failure)
            os._exit(1)
        except* EOFError:
            os._exit(0)
        # Without a deadline the sandbox is in the making for everybody else.
        end_at = self._write_deadline()
        self.on_renewed()
        self._tell_start(spec)
        if not self._orders.answer({"ready": os.getpid(), "started_at": self._started_at, "end_at": end_at}):
            # Whoever asked took it back or is gone; nobody else knows the id.
            os._exit(1)
        return spec, [listener, *self._orders.listeners]

    def _tell_start(self, spec: SandboxSpec) -> None:
        holds = self.shape.limits
        wanted = {"pids": holds.pids, "memory_mb": holds.memory_mb, "cpus": holds.cpus}
        limited = {name: value for name, value in wanted.items() if value is not None}
        self.tell("started", {"template": spec.template, "lifetime_s": spec.timeout_s, **limited})

    def _take(self, spec: SandboxSpec) -> socket.socket:
        """Become the keeper of this sandbox: write what another process needs to find it, and give up the host.

        Raises:
            OSError: a folder of the host cannot be written.
        """
        self.deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + spec.timeout_s
        self._started_at = time.time()
        self._token = spec.access_token
        os.umask(0o077)
        self._place.write(spec.sandbox_id, spec.access_token, self._record(spec))
        listener = self._place.listen(spec.socket_name)
        self._place.leave()
        os.umask(0o022)
        self._arm(spec.timeout_s)
        if spec.ends_with_pid:
            self._end_with(spec.ends_with_pid)
        self._settle()
        return listener

    def _end_with(self, pid: int) -> None:
        """End when this process does; it has asked for us just now, so the number is still its own.

        Raises:
            ProcessLookupError: it is gone already.
        """
        pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(pidfd, lambda: self.on_left_alone())

    def _start_egress(self, spec: SandboxSpec) -> None:
        if spec.egress is None:
            return
        if self.egress is None:
            raise SetupFailed("egress", 0)
        self.egress.start(spec.egress, self.shape.protections)

    def _record(self, spec: SandboxSpec) -> Mapping[str, object]:
        """What another process needs to find and show this sandbox. No environment value, no key, no token."""
        holds = self.shape.limits
        return {
            "version": state.RECORD_VERSION,
            "sandbox_id": spec.sandbox_id,
            "template": spec.template,
            "metadata": spec.metadata,
            "started_at": self._started_at,
            "keeper_pid": os.getpid(),
            "keeper_start": self._start_time,
            "init_pid": self._nest.init_pid,
            "idempotency": spec.idempotency,
            "runtime_folder": spec.runtime_folder,
            "socket_name": spec.socket_name,
            "pids": holds.pids,
            "disk_mb": holds.disk_mb,
            "memory_mb": holds.memory_mb,
            "cpus": holds.cpus,
            "namespaces": self._namespaces(),
            "users": "single" if self._ground.id_range is None else "range",
            "binds": [bind.target for bind in self.shape.root.binds],
            "has_egress": spec.egress is not None,
            "port": spec.port,
            "skeleton": os.path.basename(self.shape.root.skeleton),
            "agent_protocol": self._agent.protocol,
        }

    def _namespaces(self) -> list[str]:
        on = self.shape.protections
        own = {"user": on.user_namespace, "mnt": True, "pid": on.pid_namespace, "net": on.net_namespace}
        own |= {"ipc": on.ipc_namespace, "uts": True, "cgroup": True}
        return [kind for kind, is_own in own.items() if is_own]

    def _settle(self) -> None:
        """Join what init made, and keep no right over the host."""
        id_range = self._ground.id_range
        if id_range is not None and self.shape.protections.user_namespace:
            # Root of the sandbox, to act for each of its users; over host files it is nobody.
            users.enter_range(id_range.userns_fd, 0)
            os.close(id_range.userns_fd)
            self._first_id = 0
        else:
            # One id only: file access needs no right beyond that id's but one, to read what this id closed to itself.
            sys_.capset(0, permitted=sys_.CAP_DAC_READ_SEARCH)
        # A change of ids sets it back.
        sys_.prctl(sys_.PR_SET_DUMPABLE, 0)

    # -- hooks ------------------------------------------------------------------------------------------------------

    @property
    def egress(self) -> EgressLink | None:
        """The process on the host that a sandbox with a network allowlist reaches the network through."""
        return self._orders.egress

    def renew(self, lifetime_s: int) -> None:
        """Live `lifetime_s` seconds from now."""
        self.deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + lifetime_s
        self._arm(lifetime_s)
        self._write_deadline()
        self.on_renewed()

    async def kill_all(self) -> None:
        """Kill process 1 of the sandbox, and by that all others in it; return when the last one is gone."""
        os.kill(self._nest.init_pid, signal.SIGKILL)
        # A spawner of root came into the namespace from outside: process 1 cannot end before we have reaped it.
        for pid in (*self._root_spawners, self._nest.init_pid):
            await _reap(pid)

    def end(self) -> None:
        """Everything inside is dead: let go of the lock, so that nobody lists the sandbox any more."""
        self.tell_end("killed")
        if self.egress is not None:
            self.egress.close()
        self._place.unlock()

    def tell(self, event: str, facts: Mapping[str, object]) -> None:
        """Add an event to the sandbox's log."""
        if not self._end_told or event == journal.ENDED:
            self._place.journal.write(event, facts)

    def tell_end(self, reason: str) -> None:
        """Tell why the sandbox ends; the first reason is the one that holds."""
        if not self._end_told:
            self._end_told = True
            self.tell(journal.ENDED, {"reason": reason})

    def remaining_s(self) -> float:
        """Seconds until the deadline; not positive when it has passed."""
        return self.deadline - time.clock_gettime(time.CLOCK_BOOTTIME)

    def _arm(self, lifetime_s: int) -> None:
        """The backstop: the kernel ends us, and by the death signal everything inside, even if we are blocked."""
        if self.shape.protections.backstop_timer:
            signal.setitimer(signal.ITIMER_REAL, lifetime_s + BACKSTOP_S)

    def _write_deadline(self) -> float:
        """Tell other processes of the deadline; returns it in wall time."""
        wall = round(time.time() + self.remaining_s(), 3)
        self._place.write_deadline(self.deadline, wall)
        return wall

    @contextmanager
    def become(self, uid: int, gid: int) -> Generator[None]:
        """File access inside the block happens as this user, without the rights of root."""
        if self._ground.id_range is None or not self.shape.protections.acts_as_user:
            yield
            return
        sys_.set_fs_ids(self._first_id + uid, self._first_id + gid)
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

    def limit_met(self) -> str | None:
        """The limit that the sandbox is at just now."""
        return limit_met(self.shape.limits)

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
        self._root_spawners.append(child)
        init_link.close()
        return link

    def _be_root_spawner(self, link: socket.socket) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, 0)
        on = self.shape.protections
        init.close_all_but([link.fileno(), self._nest.keeper_pidfd], on)
        if on.token_forgotten:
            # We are a fork of the keeper, and what root runs here is a fork of us.
            step("forget", forget, self._token)
        os.setgroups([])
        keep = users.ROOT_CAPABILITIES
        init.confine(
            self.shape.limits, on, self._ground.filter_program, keep=keep, keeper_pidfd=self._nest.keeper_pidfd
        )
        self._agent.run_init(link, self.shape)


async def _reap(pid: int) -> None:
    """Wait for the end of a child."""
    pidfd = os.pidfd_open(pid)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
    os.waitpid(pid, 0)


def _bound_own_memory() -> None:
    """An error in the keeper, and not the end of the host, where it is made to keep too much."""
    import resource

    # Soft: the spawner of root is a fork of us and sets its own.
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = OWN_DATA_BYTES if hard == resource.RLIM_INFINITY else min(OWN_DATA_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _make_group(group: limits.Group, wanted: Limits) -> int:
    """Make the control groups; returns a descriptor of the memory limit's events, or -1.

    Raises:
        SetupFailed: step `cgroup`.
    """
    step("cgroup", partial(group.make, pids=wanted.pids, memory_mb=wanted.memory_mb, cpus=wanted.cpus))
    return group.open_memory_events()
