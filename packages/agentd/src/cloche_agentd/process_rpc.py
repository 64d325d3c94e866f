"""The process.Process service over HTTP."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping
from typing import Final

from . import connect, fields, limits
from .config import AgentConfig, User
from .exchange import Exchange
from .failures import AgentError, invalid_argument
from .input_stream import take_input
from .output_budget import limit_in
from .processes import Frame, Process, Processes, Subscriber
from .pumps import InputPipe
from .spawner import Launch
from .terminal import size_of
from .workspaces import Workspaces, no_session

_SIGNALS: Final = {
    "SIGNAL_SIGTERM": 15,
    "SIGNAL_SIGKILL": 9,
    "SIGNAL_SIGINT": 2,
    "SIGNAL_SIGHUP": 1,
    "SIGNAL_SIGQUIT": 3,
    "SIGNAL_SIGUSR1": 10,
    "SIGNAL_SIGUSR2": 12,
}
_KEEPALIVE: Final = connect.message({"event": {"keepalive": {}}})

Json = Mapping[str, object]


class ProcessService:
    """Answers the Process RPCs."""

    def __init__(self, config: AgentConfig, processes: Processes, workspaces: Workspaces | None = None) -> None:
        self._config = config
        self._processes = processes
        self._workspaces = workspaces
        self.unary = {
            "List": self._list,
            "SendInput": self._send_input,
            "SendSignal": self._send_signal,
            "CloseStdin": self._close_stdin,
            "Update": self._update,
        }

    async def start(self, exchange: Exchange, user: User) -> None:
        """Start a command and stream its events until it ends."""
        try:
            request = await read_stream_request(exchange)
            launch, config, tag = self._launch(request, user)
            session = no_session(request) if self._workspaces is None else await self._workspaces.enter(request)
            exchange.watch()
            async with session.admission():
                process = await self._processes.start(
                    session.place(launch),
                    config,
                    tag,
                    stdin=fields.flag(request, "stdin"),
                    size=size_of(request) if request.get("pty") is not None else None,
                    timeout_s=connect.timeout_of(exchange.head.headers) or None,
                    output_limit=limit_in(exchange.head.headers),
                    conclude=session.conclude,
                )
                session.began(process)
        except AgentError as error:
            refuse_stream(exchange, error)
            return
        kill = exchange.head.headers.get("cloche-kill-on-disconnect") == "1"
        if exchange.gone and kill:
            self._processes.kill_soon(process)
        self._stream(exchange, process, kill_on_gone=kill)

    async def connect(self, exchange: Exchange, user: User) -> None:
        """Follow a command that runs already, or tell the end of one that has ended.

        With an offset, what was printed from that byte on comes first, as far as it is kept.
        """
        del user
        try:
            request = await read_stream_request(exchange)
            process = self._selected(request, ended=True)
            offset = fields.whole(request, "offset") if request.get("offset") is not None else None
            if offset is not None and offset < 0:
                raise invalid_argument("offset must not be negative", "offset")
        except AgentError as error:
            refuse_stream(exchange, error)
            return
        self._stream(exchange, process, kill_on_gone=False, position=offset)

    async def stream_input(self, exchange: Exchange, user: User) -> None:
        """Write what the client streams to a command's input, for as long as it streams."""
        del user
        exchange.take_time()
        try:
            async with asyncio.timeout(connect.timeout_of(exchange.head.headers) or None):
                await take_input(exchange, self._input_of_selected)
        except TimeoutError:
            late = AgentError("deadline_exceeded", "the input did not end in time", "command_timeout")
            refuse_stream(exchange, late)
        except AgentError as error:
            refuse_stream(exchange, error)
        else:
            exchange.begin(200, connect.STREAM_TYPE)
            exchange.finish(connect.message({}) + connect.END_OK)

    def _input_of_selected(self, start: Json) -> Callable[[Json], tuple[InputPipe, bytes]]:
        process = self._selected(start)
        return lambda sent: _input_of(process, sent)

    # -- streams ------------------------------------------------------------------------------------------------

    def _stream(self, exchange: Exchange, process: Process, *, kill_on_gone: bool, position: int | None = None) -> None:
        keepalive = Keepalive(exchange, _KEEPALIVE, keepalive_interval(exchange))

        def write(frame: Frame) -> None:
            keepalive.touch()
            exchange.write(frame)

        def end(frame: Frame) -> None:
            keepalive.stop()
            exchange.finish(frame)

        subscriber = Subscriber(write, end, lambda: exchange.paused)

        def gone() -> None:
            keepalive.stop()
            process.unsubscribe(subscriber)
            if kill_on_gone:
                self._processes.kill_soon(process)

        exchange.on_gone = gone
        exchange.on_resume = process.resume
        exchange.begin(200, connect.STREAM_TYPE)
        process.subscribe(subscriber, position)
        if exchange.gone:
            gone()

    # -- unary --------------------------------------------------------------------------------------------------

    async def _list(self, _request: Json, _user: User) -> Json:
        found: list[object] = []
        for process in self._processes.running():
            entry: dict[str, object] = {"config": process.config, "pid": process.pid}
            if process.tag is not None:
                entry["tag"] = process.tag
            found.append(entry)
        return {"processes": found}

    async def _send_input(self, request: Json, _user: User) -> Json:
        process = self._selected(request)
        pipe, data = _input_of(process, fields.inner(request, "input"))
        pipe.send(data)
        return {}

    async def _send_signal(self, request: Json, _user: User) -> Json:
        process = self._selected(request)
        name = fields.text(request, "signal")
        if name not in _SIGNALS:
            raise invalid_argument("unknown signal", "signal")
        await self._processes.signal(process, _SIGNALS[name])
        return {}

    async def _close_stdin(self, request: Json, _user: User) -> Json:
        process = self._selected(request)
        if process.terminal is not None:
            text = "a terminal has no standard input to close; send the byte 4 (Ctrl+D)"
            raise AgentError("failed_precondition", text, "invalid_argument")
        if process.stdin is not None:
            process.stdin.finish()
        return {}

    async def _update(self, request: Json, _user: User) -> Json:
        process = self._selected(request)
        if request.get("pty") is not None:
            if process.terminal is None:
                raise AgentError("failed_precondition", "the process has no terminal", "invalid_argument")
            process.terminal.resize(size_of(request))
        return {}

    def _selected(self, request: Json, *, ended: bool = False) -> Process:
        selector = fields.inner(request, "process")
        pid = fields.whole(selector, "pid", -1)
        tag = fields.text(selector, "tag", "")
        if pid < 0 and not tag:
            raise invalid_argument("process needs a pid or a tag", "process")
        return self._processes.find(pid if pid >= 0 else None, tag or None, ended=ended)

    def _launch(self, request: Json, user: User) -> tuple[Launch, Json, str | None]:
        wanted = fields.inner(request, "process")
        command = fields.no_nul(fields.text(wanted, "cmd"), "cmd")
        arguments = fields.texts(wanted, "args")
        envs = fields.environment(wanted, "envs")
        cwd = fields.no_nul(fields.text(wanted, "cwd", ""), "cwd")
        if not command or any(len(word.encode()) > limits.ARGUMENT_BYTES for word in arguments):
            raise invalid_argument("the command is empty or too long", "cmd")
        tag = fields.text(request, "tag", "") or None
        config: dict[str, object] = {"cmd": command, "args": arguments, "envs": envs}
        if cwd:
            config["cwd"] = cwd
        launch = Launch(user, folders(self._config, user, cwd), envs, (command, *arguments))
        return launch, config, tag


def _input_of(process: Process, sent: Json) -> tuple[InputPipe, bytes]:
    """Return where a request's input goes, and the input."""
    kind = "pty" if process.terminal is not None else "stdin"
    if sent.get("stdin" if kind == "pty" else "pty") is not None:
        text = "a process on a terminal takes pty input, every other one stdin"
        raise AgentError("failed_precondition", text, "invalid_argument")
    if process.stdin is None or not process.stdin.open:
        raise AgentError("failed_precondition", "the process has no open standard input", "invalid_argument")
    return process.stdin, fields.data(sent, kind)


def folders(config: AgentConfig, user: User, cwd: str) -> tuple[str, ...]:
    """Return the folder to start in. Only a folder that nobody asked for has fallbacks."""
    if not cwd:
        first = config.workdir if config.workdir is not None and user.name == config.default_user else user.home
        return (first, user.home, "/")
    if cwd == "~" or cwd.startswith("~/"):
        cwd = user.home + cwd[1:]
    return (posixpath.join(user.home, cwd),)


async def read_stream_request(exchange: Exchange) -> Json:
    """Return the one message of a server-streaming request, as soon as it has arrived.

    Raises:
        AgentError: not one JSON message.
    """
    buffer = b""
    while (found := connect.split_envelope(buffer)) is None:
        piece = await exchange.read_some()
        if not piece:
            raise invalid_argument("the request has no message", "body")
        buffer += piece
    flags, payload = found
    if flags & connect.END_STREAM:
        raise invalid_argument("the request has no message", "body")
    return connect.parse_object(payload)


def refuse_stream(exchange: Exchange, error: AgentError) -> None:
    """Answer a streaming request with nothing but an error."""
    exchange.begin(200, connect.STREAM_TYPE)
    exchange.finish(connect.end_with(error))


def keepalive_interval(exchange: Exchange) -> float:
    """Return how many seconds of silence the client wants at most."""
    value = exchange.head.headers.get("keepalive-ping-interval", "")
    if value.isascii() and value.isdigit() and 0 < len(value) < 6 and int(value) > 0:
        return float(value)
    return limits.KEEPALIVE_DEFAULT_S


class Keepalive:
    """Sends a frame after each interval of silence."""

    def __init__(self, exchange: Exchange, frame: bytes, interval_s: float) -> None:
        self._exchange = exchange
        self._frame = frame
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_at(self._last + interval_s, self._check)

    def touch(self) -> None:
        """Something was sent just now."""
        self._last = self._loop.time()

    def stop(self) -> None:
        """Send no more."""
        self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        if now - self._last >= self._interval_s:
            if not self._exchange.paused:
                self._exchange.write(self._frame)
            self._last = now
        self._timer = self._loop.call_at(self._last + self._interval_s, self._check)
