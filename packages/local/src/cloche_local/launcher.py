"""The server's end of a zygote: start it, ask it for sandboxes, notice when it is gone."""

import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, cast

import anyio
import anyio.to_thread

from cloche_local import early, templates
from cloche_local.spec import SandboxSpec, Shape

_ANSWER_BYTES = 4096
_TAKE_BACK_S = 2.0
_END_S = 1.0


class ZygoteGone(Exception):
    """The zygote ended, or closed the connection, before it answered."""


class CreateRefused(Exception):
    """A step of building the sandbox was refused by this machine."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step)
        self.step = step
        self.errno = number


@dataclass(frozen=True, slots=True)
class Born:
    """A sandbox that runs, in seconds since the epoch."""

    started_at: float
    end_at: float


@dataclass(frozen=True, slots=True)
class Settings:
    """What a zygote is told once."""

    staging_folder: str
    runtime_folder: str
    range_slots: str
    process_limit: int
    cgroup_root: str
    import_paths: tuple[str, ...]
    warm: bool
    shape: Shape | None = None
    """What the first sandbox will most likely be built of."""
    empty_environment: bool = True
    """False in one test only, which shows that user code then reads the server's environment."""


class Launcher:
    """One zygote process and its two stages."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._bare: socket.socket | None = None
        self._warm: socket.socket | None = None
        self._warm_asked = False
        self._starting = threading.Lock()

    async def start(self) -> None:
        """Start the zygote unless it runs. Returns before it is ready: requests wait in its socket.

        Raises:
            ZygoteGone: the process could not be started.
        """
        if not self._runs():
            try:
                await anyio.to_thread.run_sync(self._start)
            except OSError as error:
                raise ZygoteGone from error

    def _runs(self) -> bool:
        process = self._process
        return self._bare is not None and process is not None and process.poll() is None

    def _start(self) -> None:
        with self._starting:
            # Another thread may have been faster.
            if not self._runs():
                self._forget()
                self._spawn()

    def _spawn(self) -> None:
        hello = json.dumps(_hello(self._settings)).encode()
        begun = early.take() if self._settings.empty_environment else None
        begun = begun or early.start(empty_environment=self._settings.empty_environment)
        with ExitStack() as ours, ExitStack() as theirs:
            control = ours.enter_context(begun.control)
            self._process = begun.process
            warm, warm_theirs = _pair(ours, theirs)
            socket.send_fds(control, [hello], [warm_theirs.fileno()] if self._settings.warm else [])
            self._bare, self._warm, self._warm_asked = control, warm, False
            ours.pop_all()
            _RUNNING.add(self)

    async def create(self, spec: SandboxSpec, *, prefer_warm: bool, listener: socket.socket | None = None) -> Born:
        """Make a sandbox; returns when it can be used.

        Safe to cancel: the keeper is then killed before this returns.

        Args:
            listener: a second one for its agent, beside the socket that the keeper makes.

        Raises:
            CreateRefused: the machine refused a step.
            ZygoteGone: no answer.
        """
        await self.start()
        if prefer_warm:
            self.warm()
        control = self._stage(prefer_warm)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            # No token and nothing else that is secret: what the zygote has read, every later sandbox is a fork of.
            request = {
                "op": "create",
                "id": spec.sandbox_id,
                "folder": spec.folder,
                "socket": f"{spec.runtime_folder}/{spec.socket_name}",
                "egress": spec.egress is not None,
                "shape": _told(spec.shape),
            }
            with theirs:
                await _send(control, request, [theirs.fileno()])
            await _send_all(ours, spec.encode(), [] if listener is None else [listener.fileno()])
            answer = await _receive(ours)
        except BaseException:
            # Also on cancellation: the request may have arrived, so it is taken back in order.
            self._take_back(control, spec.sandbox_id)
            with anyio.move_on_after(_TAKE_BACK_S, shield=True):
                await _until_closed(ours)
            raise
        finally:
            ours.close()
        if "ready" not in answer:
            raise CreateRefused(str(answer.get("failed")), int(answer.get("errno", 0)))
        return Born(float(answer["started_at"]), float(answer["end_at"]))

    def warm(self) -> None:
        """Let the stage with the big libraries start as soon as the zygote is idle; once is enough."""
        if self._bare is not None and not self._warm_asked:
            self._warm_asked = True
            with suppress(OSError):
                self._bare.send(b'{"op":"warm"}')

    def kill(self, sandbox_id: str) -> None:
        """End a keeper that one of our stages forked; nothing happens for others."""
        for control in (self._bare, self._warm):
            if control is not None:
                self._take_back(control, sandbox_id)

    def _take_back(self, control: socket.socket, sandbox_id: str) -> None:
        # A full or closed socket means a dead or dying zygote; the deadline then ends what it left.
        with suppress(OSError):
            control.send(json.dumps({"op": "kill", "id": sandbox_id}).encode())

    def _stage(self, prefer_warm: bool) -> socket.socket:
        if self._bare is None or self._warm is None:
            raise ZygoteGone
        if not prefer_warm:
            return self._bare
        # Not ready yet, or ended because a library did not import: the bare stage imports on demand.
        return self._warm if _has_news(self._warm) else self._bare

    def end(self) -> None:
        """Let the zygote end, and see it end. Sandboxes live on."""
        with self._starting:
            process = self._process
            started = self._bare is not None and _has_news(self._bare)
            self._forget()
        if process is None:
            return
        if started:
            pidfd = os.pidfd_open(process.pid)
            try:
                select.select([pidfd], [], [], _END_S)
            finally:
                os.close(pidfd)
        # One that is still importing has nothing to clean up, and nobody waits for it.
        process.kill()
        process.wait()
        _RUNNING.discard(self)
        if not _RUNNING:
            templates.let_go()

    def leave_behind(self) -> None:
        """In a fork: it is our parent's. The next use starts one of our own."""
        self._starting = threading.Lock()
        if self._process is not None:
            # Not our child: nobody here is to wait for it.
            self._process.returncode = 0
        self._forget()
        _RUNNING.discard(self)
        templates.let_go()

    def _forget(self) -> None:
        for control in (self._bare, self._warm):
            if control is not None:
                control.close()
        self._bare = self._warm = self._process = None


# While one of them runs, a sandbox that waits may stand on a template that nothing else names.
_RUNNING: set[Launcher] = set()


def _pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
    """A socket pair whose ends close with the stacks; ours does not block."""
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.enter_context(end)
    theirs.enter_context(other)
    end.setblocking(False)
    return end, other


def _has_news(control: socket.socket) -> bool:
    """Whether the stage behind `control` has said that it is ready; True once it has."""
    try:
        # Peeked, so that it says so as often as it is asked.
        return bool(control.recv(_ANSWER_BYTES, socket.MSG_PEEK))
    except OSError:
        return False


@lru_cache(maxsize=16)
def _told(shape: Shape) -> Mapping[str, object]:
    """A shape as the zygote reads it. The same for most requests, and slow to make."""
    return asdict(shape)


def _hello(settings: Settings) -> Mapping[str, object]:
    return {
        "staging_folder": settings.staging_folder,
        "runtime_folder": settings.runtime_folder,
        "range_slots": settings.range_slots,
        "process_limit": settings.process_limit,
        "cgroup_root": settings.cgroup_root,
        "import_paths": list(settings.import_paths),
        "warm": settings.warm,
        "shape": None if settings.shape is None else _told(settings.shape),
    }


async def _send(control: socket.socket, message: Mapping[str, object], fds: list[int]) -> None:
    raw = json.dumps(message).encode()
    while True:
        try:
            socket.send_fds(control, [raw], fds)
            return
        except BlockingIOError:
            await _until_writable(control)
        except OSError as error:
            raise ZygoteGone from error


async def _until_writable(control: socket.socket) -> None:
    """Wait on a descriptor of one's own: an event loop lets one task wait for each, and many requests share a zygote.

    Raises:
        ZygoteGone: the socket was closed meanwhile.
    """
    try:
        own = os.dup(control.fileno())
    except OSError as error:
        raise ZygoteGone from error
    try:
        await anyio.wait_writable(own)
    finally:
        os.close(own)


async def _send_all(channel: socket.socket, body: bytes, fds: list[int]) -> None:
    """Send one length-prefixed message, and descriptors with its first byte."""
    rest = memoryview(len(body).to_bytes(4, "big") + body)
    while rest:
        try:
            sent = socket.send_fds(channel, [rest], fds) if fds else channel.send(rest)
            rest, fds = rest[sent:], []
        except BlockingIOError:
            await anyio.wait_writable(channel)
        except OSError as error:
            raise ZygoteGone from error


async def _until_closed(channel: socket.socket) -> None:
    """Wait until the keeper at the other end is dead."""
    with suppress(OSError):
        while True:
            await anyio.wait_readable(channel)
            if not channel.recv(_ANSWER_BYTES):
                return


async def _receive(channel: socket.socket) -> dict[str, Any]:
    await anyio.wait_readable(channel)
    try:
        raw = channel.recv(_ANSWER_BYTES)
    except OSError as error:
        raise ZygoteGone from error
    if not raw:
        raise ZygoteGone
    return cast("dict[str, Any]", json.loads(raw))
