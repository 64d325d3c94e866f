"""The zygote: a bare Python that forks keepers, so that a sandbox starts with everything already imported.

It is executed, never forked from the server: constant arguments, an empty environment, nothing of the server's
memory. Its only input is the control socket; it ends when that closes, and sandboxes live on. The bare stage forks
a second one that imports numpy, pandas and matplotlib and then serves the template that promises them.
"""

import asyncio
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast

import cloche_agentd
from cloche_agentd.agent import Agent
from cloche_agentd.config import AgentConfig, InitProfile, KeeperHooks, User
from cloche_agentd.config import Orders as AgentOrders
from cloche_agentd.init import run_init
from cloche_agentd.limits import PROTOCOL_VERSION
from cloche_agentd.practice import LIVES, practise
from cloche_local import heap, init, keeper, libraries, limits, seccomp, state, users
from cloche_local import syscalls as sys_
from cloche_local.children import Child, Spare
from cloche_local.egress import fork_egress
from cloche_local.egress_link import ENVIRONMENT
from cloche_local.gathering import Gathering
from cloche_local.nest import Ground
from cloche_local.orders import Orders
from cloche_local.setup import SetupFailed
from cloche_local.spec import Shape, decode_shape

# What the guest half imports inside functions, so that it loads on every platform.
_LAZY_IMPORTS = ("ctypes", "fcntl", "resource", "shutil", "struct")
# A one-shot run has its answer before this; warming would take its processor.
_WARM_AFTER_MS = 60
# Requests without a pause hold it off no longer than this.
_WARM_AT_LAST_S = 0.5
# The first is watched, and what runs in it is moved: only then Python begins to adapt it.
_LIVES = LIVES + 1
# Long enough that a burst of requests is over: forking competes with what it answers.
_IDLE_MS = 15
# What waits when nobody has asked for a while: one for a request, one for the request right after it.
_SPARES = 2
_SPARES_LOST = 2
# What runs between a fork and the agent, which is not practised: it would leave the host.
_RUN_BY_EACH = tuple(
    f"cloche_local.{name}"
    for name in ("init", "journal", "keeper", "mounts", "nest", "orders", "place", "setup", "syscalls", "users")
)
# A server may run for weeks and never list.
_LOGS_TRIMMED_AFTER = 50
_MAX_MESSAGE = 65536
_OUR_FOLDERS = tuple(
    os.path.dirname(os.path.dirname(os.path.abspath(module.__file__ or "")))
    for module in (keeper, cloche_agentd.config)
)


@dataclass(frozen=True, slots=True)
class Hello:
    """What the server tells a zygote once."""

    staging_folder: str
    runtime_folder: str
    range_slots: str
    process_limit: int
    cgroup_root: str
    import_paths: tuple[str, ...]
    warm: bool
    shape: Mapping[str, Any] | None
    """What a sandbox is built of in advance, until one of another shape is asked for."""


def main(control: socket.socket) -> NoReturn:
    """Serve the server on `control` until it closes."""
    control = _leave_standard_streams(control)
    raw, fds, _flags, _address = socket.recv_fds(control, _MAX_MESSAGE, 1)
    if not raw:
        # Begun early, and not needed.
        os._exit(0)
    fields = cast("dict[str, object]", json.loads(raw))
    paths = tuple(cast("list[str]", fields.pop("import_paths")))
    hello = Hello(import_paths=paths, **fields)  # type: ignore[arg-type]  # written by the server beside us
    # An orphaned init becomes our child and is reaped at once, whatever the host's pid 1 does.
    sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)
    warm_control = socket.socket(fileno=fds[0]) if fds else None
    Zygote(control, hello, warm_control).serve()


def _leave_standard_streams(control: socket.socket) -> socket.socket:
    """Move the control socket off descriptor 0, which every child would read as its input."""
    moved = socket.socket(fileno=os.dup(control.fileno()))
    control.detach()
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    return moved


class Zygote:
    """The fork server, bare or warm."""

    def __init__(
        self, control: socket.socket, hello: Hello, warm_control: socket.socket | None, *, practised: bool = False
    ) -> None:
        self._control = control
        self._lives = _LIVES if practised else 0
        self._hello = hello
        self._warm_control = warm_control
        self._warm_wanted = False
        self._warm_due = 0.0
        self._keepers: dict[int, Child] = {}
        self._leaving: list[Child] = []
        self._shape = hello.shape
        self._known = None if hello.shape is None else decode_shape(hello.shape)
        self._spares: list[Spare] = []
        self._spares_lost = 0
        self._ended = 0
        self._asked = 0
        self._host_uid, self._host_gid = os.getuid(), os.getgid()
        self._filter = seccomp.build_filter(os.uname().machine)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> NoReturn:
        """Answer until the control socket closes."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        _prepare_interpreter()
        heap.share()
        # A server that has gone meanwhile shows as the end of the control socket, next.
        with suppress(OSError):
            self._control.send(b'{"ready":true}')
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while True:
            ready = [fd for fd, _event in poll.poll(self._patience_ms())]
            if self._wake_read in ready:
                self._reap()
            if self._control.fileno() in ready:
                self._receive()
            self._clean_up()
            if not ready:
                self._use_idle_time()
            elif self._wants_warm() and time.monotonic() > self._warm_due:
                # Requests without a pause must not keep the warm stage away for ever.
                self._start_warm()

    def _patience_ms(self) -> int:
        if self._leaving or self._wants_spare_soon():
            return _IDLE_MS
        if 0 < self._lives < _LIVES:
            # One at a time: a request waits for no more than that.
            return 0
        return _WARM_AFTER_MS if self._wants_warm() or self._wants_spare() or self._lives < _LIVES else -1

    def _use_idle_time(self) -> None:
        if self._wants_spare_soon():
            self._prepare_spare()
        elif self._lives < _LIVES:
            self._practise()
        elif self._wants_warm():
            self._start_warm()
        elif self._wants_spare():
            self._prepare_spare()

    def _practise(self) -> None:
        """Do once what each fork will do, so that it finds the code adapted and what it looks up remembered."""
        self._lives += 1
        with suppress(OSError):
            if self._lives == 1:
                self._gather()
            else:
                practise(self._hello.staging_folder)
        if self._lives in (1, _LIVES):
            heap.share()

    def _gather(self) -> None:
        """Have what the forks will run lie together."""
        with Gathering(_RUN_BY_EACH) as gathering:
            gathering.watch(partial(practise, self._hello.staging_folder))
            gathering.move()

    def _wants_warm(self) -> bool:
        return self._warm_wanted and self._warm_control is not None

    # -- requests ---------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        try:
            raw, fds, _flags, _address = socket.recv_fds(self._control, _MAX_MESSAGE, 1)
        except ConnectionError:
            raw, fds = b"", []
        if not raw:
            # What ended just now is still ours to remove.
            self._reap()
            self._clean_up()
            os._exit(0)
        message = cast("dict[str, Any]", json.loads(raw))
        if message["op"] == "create" and fds:
            self._create(message, socket.socket(fileno=fds[0]))
        elif message["op"] == "warm":
            self._warm_due = self._warm_due or time.monotonic() + _WARM_AT_LAST_S
            self._warm_wanted = True
        elif message["op"] == "kill":
            for pid, child in self._keepers.items():
                if child.sandbox_id == message["id"]:
                    # Our own child that we have not reaped: the pid is still its.
                    os.kill(pid, signal.SIGKILL)

    def _create(self, message: Mapping[str, Any], reply: socket.socket) -> None:
        """Give the request to the spare keeper, or to a new one."""
        self._asked += 1
        egress: tuple[int, ...] = ()
        try:
            # The same for most requests: what we do between two forks costs memory in every sandbox.
            shape = self._known if message["shape"] == self._shape else None
            shape = shape or decode_shape(message["shape"])
            if message["egress"]:
                egress = fork_egress(_state_folders(message), shape.protections)
            if shape.may_wait and message["shape"] != self._shape:
                # What waits for another shape will not be asked for soon.
                self._drop_spares()
                self._shape, self._known = message["shape"], shape
            pid = self._take_spare(reply, egress) if shape is self._known else None
            if pid is None:
                pid = self._fork_keeper(shape, message["id"], Orders(None, reply, egress))
        except OSError as error:
            with suppress(OSError):
                reply.send(json.dumps({"failed": "init", "errno": error.errno or 0}).encode())
        else:
            self._keepers[pid] = Child(message["id"], message["folder"], message["socket"])
        finally:
            for fd in egress:
                os.close(fd)
            reply.close()

    def _take_spare(self, reply: socket.socket, egress: Sequence[int]) -> int | None:
        """Hand the request to a keeper that waits; returns its pid, or None where there is none."""
        while self._spares:
            spare = self._spares.pop(0)
            if spare.take(reply, egress):
                self._spares_lost = 0
                return spare.pid
        return None

    def _fork_keeper(self, shape: Shape, sandbox_id: str, orders: Orders) -> int:
        """Fork a keeper: for a request, or as a spare that builds the sandbox and waits.

        Raises:
            OSError: no process.
        """
        pid = sys_.fork()
        if pid == 0:
            self._be_keeper(shape, sandbox_id, orders)
        return pid

    def _be_keeper(self, shape: Shape, sandbox_id: str, orders: Orders) -> NoReturn:
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            init.close_all_but(orders.filenos(), shape.protections)
            ground = Ground(
                spawner=(agent := _Agentd()),
                filter_program=self._filter,
                host_uid=self._host_uid,
                host_gid=self._host_gid,
                id_range=self._open_range(),
                staging_folder=self._hello.staging_folder,
                runtime_folder=self._hello.runtime_folder,
            )
            group = None
            if shape.limits.need_group:
                group = limits.Group(limits.find_hierarchy(self._hello.cgroup_root), sandbox_id)
            status = keeper.run(agent, ground, shape, orders, group)
        except SetupFailed as failure:
            orders.refuse(failure)
            status = 1
        except BaseException:  # noqa: BLE001 - the entry point of a process; nothing may return into the zygote
            traceback.print_exc()
        os._exit(status)

    def _open_range(self) -> users.IdRange | None:
        if not self._hello.range_slots:
            return None
        try:
            return users.open_range(self._hello.range_slots, self._hello.process_limit)
        except OSError as error:
            raise SetupFailed("id_range", error.errno or 0) from error

    # -- the spare --------------------------------------------------------------------------------------------------

    def _wants_spare(self) -> bool:
        return len(self._spares) < _SPARES and self._shape is not None and self._spares_lost < _SPARES_LOST

    def _wants_spare_soon(self) -> bool:
        # A second one is not for a program that makes one sandbox.
        return self._wants_spare() and (not self._spares or self._asked > 1)

    def _prepare_spare(self) -> None:
        """Have the next sandbox built, as far as its shape decides it, while nobody waits."""
        if self._known is None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, suppress(OSError):
            self._spares.append(Spare(self._fork_keeper(self._known, "", Orders(theirs, None)), ours))
            return
        ours.close()

    def _drop_spares(self) -> None:
        """Let the waiting keepers end, and everything in them."""
        while self._spares:
            self._spares.pop().close()

    # -- ends -------------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_read, 512):
                pass
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0] != 0:
                pid, status = found
                child = self._keepers.pop(pid, None)
                if child is not None:
                    self._ended += 1
                    child.note_death(status)
                    self._leaving.append(child)
                if any(spare.pid == pid for spare in self._spares):
                    # This machine refuses what it needs: requests are told so, and no more spares are tried.
                    self._spares_lost += 1
                    self._drop_spares()

    def _clean_up(self) -> None:
        """Remove what ended sandboxes leave; a control group goes only when its last process has."""
        self._leaving = [child for child in self._leaving if not child.remove(self._hello.cgroup_root)]
        if self._ended >= _LOGS_TRIMMED_AFTER:
            self._ended = 0
            state.StateFolder(os.path.dirname(self._hello.staging_folder)).trim_logs()

    # -- the warm stage ---------------------------------------------------------------------------------------------

    def _start_warm(self) -> None:
        """Fork the stage that imports the big libraries; it serves the same protocol on its own socket."""
        control, self._warm_control = self._warm_control, None
        if control is None:
            return
        if os.fork() != 0:
            control.close()
            return
        try:
            self._drop_spares()
            self._control.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            signal.set_wakeup_fd(-1)
            libraries.load(self._hello.import_paths)
            Zygote(control, self._hello, None, practised=self._lives == _LIVES).serve()
        except BaseException:  # noqa: BLE001 - the entry point of a process; nothing may return into the zygote
            traceback.print_exc()
        finally:
            os._exit(70)


class _Agentd:
    """The agent, seen by the keeper."""

    protocol = PROTOCOL_VERSION

    def keep(self, keeper: keeper.Keeper, link: socket.socket) -> int:
        accounts = [User("user", users.USER_ID, users.USER_ID, "/home/user")]
        if keeper.has_range():
            accounts.append(User("root", 0, 0, "/root"))
        config = AgentConfig(
            users=accounts,
            path=keeper.shape.root.search_path,
            workdir=keeper.shape.root.workdir or None,
            begin_interpreter=True,
            rehearse=keeper.waits,
        )
        hooks = KeeperHooks(
            on_renew=keeper.renew,
            on_kill=keeper.end,
            open_user_spawner=(lambda _user: keeper.open_root_spawner(_leave_loop)) if keeper.has_range() else None,
            become=lambda user: keeper.become(user.uid, user.gid),
            orders=partial(_orders, keeper),
            kill_all=keeper.kill_all if keeper.shape.protections.pid_namespace else None,
            memory_kills=keeper.memory_kills,
            changes=keeper.changes,
            record=keeper.tell,
            limit_met=keeper.limit_met,
            facts=lambda: {"deadline": time.time() + keeper.remaining_s()},
            denial_mark=lambda: 0 if keeper.egress is None else keeper.egress.mark(),
            denials_since=lambda mark: () if keeper.egress is None else keeper.egress.since(mark),
            update_network=partial(_update_network, keeper),
        )
        return asyncio.run(_keep_until_deadline(keeper, Agent(config, hooks).run(link, ())))

    def run_init(self, link: socket.socket, shape: Shape) -> NoReturn:
        # Libraries renew what a fork must not share by what they register, matplotlib its open fonts.
        bare = not libraries.loaded()
        run_init(link, InitProfile(import_paths=shape.root.import_paths, bare_fork=bare))


async def _orders(keeper: keeper.Keeper) -> AgentOrders:
    spec, listeners = await keeper.receive_orders()
    envs = spec.envs if spec.egress is None else {**ENVIRONMENT, **spec.envs}
    return AgentOrders(spec.sandbox_id, spec.access_token, envs, listeners)


async def _update_network(keeper: keeper.Keeper, add: Sequence[str], remove: Sequence[str]) -> Sequence[str] | None:
    return None if keeper.egress is None else await keeper.egress.update(add, remove)


async def _keep_until_deadline(keeper: keeper.Keeper, serving: Coroutine[None, None, int]) -> int:
    """Run the agent, and end it in good order when the sandbox's time is over: connections close, init dies with us."""
    loop = asyncio.get_running_loop()
    agent = loop.create_task(serving)
    timer: asyncio.TimerHandle | None = None

    def renewed() -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
        timer = loop.call_later(keeper.remaining_s(), agent.cancel)

    keeper.on_renewed = renewed

    def left_alone() -> None:
        keeper.tell_end("maker_gone")
        agent.cancel()

    keeper.on_left_alone = left_alone
    try:
        status = await agent
    except asyncio.CancelledError:
        keeper.tell_end("expired")
        return 0
    if status:
        keeper.tell_end("init_died")
    return status


def _state_folders(message: Mapping[str, Any]) -> list[str]:
    """Where this user's sandboxes keep tokens and sockets."""
    return [os.path.dirname(message["folder"]), os.path.dirname(message["socket"])]


def _leave_loop() -> None:
    """Forget the event loop in a fork that was made inside it."""
    asyncio.events._set_running_loop(None)


def _prepare_interpreter() -> None:
    """Import what a sandbox needs, then make this Python look like one that was started inside; contexts are its forks.

    Nothing of ours is imported after the root is switched.
    """
    for name in _LAZY_IMPORTS:
        __import__(name)
    sys_.load()
    cloche_agentd.preload()
    # Our own code is not there inside: it is all imported by now. What a template shows besides, contexts add.
    sys.path[:] = [path for path in sys.path if path not in _OUR_FOLDERS]
    sys.argv[:] = [""]
    sys.path_importer_cache.clear()
