"""A process that serves the application on one address, from its first connection to its end.

Source: decision D28; faults E5, E6; the issue's "slow clients". Needs the extra `[server]`.
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Generator

import anyio
import anyio.abc
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from cloche_mcp_http.addresses import is_loopback

logger = logging.getLogger(__name__)

# Sessions have 4 s to destroy what they own; after this the process ends whatever still runs.
MAX_ENDING_S = 4.6
_LAST_ANSWERS_S = 1
# From the connection to the end of the request's headers.
HEADERS_WITHIN_S = 15.0
BACKLOG = 1024


class AddressRefused(Exception):
    """Nothing is served on that address; the text says why and what to do."""


def bind(host: str, port: int, *, guarded: bool) -> socket.socket:
    """Bind the address that a server listens on.

    Raises:
        AddressRefused: it is no address of this machine, it is taken, or it can be reached from
            elsewhere and no token is needed to call.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise AddressRefused("--host is no name or address of this machine.") from error
    family, kind, protocol, _name, address = found[0]
    if not guarded and not is_loopback(str(address[0])):
        raise AddressRefused(
            "Anybody who reaches this address could run code: set ABX_MCP_AUTH_TOKEN or ABX_MCP_AUTH_TOKEN_FILE, "
            "or listen on 127.0.0.1."
        )
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressRefused("This address cannot be listened on: it is taken, or not this user's to take.") from error
    return listener


def serve(app: Starlette, listener: socket.socket) -> int:
    """Serve until a signal arrives; return the exit status of the process."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"Serving MCP on http://{shown}:{port}/mcp. End with Ctrl-C or SIGTERM.\n")
    sys.stderr.flush()
    anyio.run(HttpServer(app).serve_until_signal, listener)
    return 0


class HttpServer(uvicorn.Server):
    """uvicorn with the settings of this product, and an end in order and in time."""

    def __init__(self, app: Starlette) -> None:
        """Take an application that `create_mcp_app` made."""
        config = uvicorn.Config(
            app,
            http=_PatientOnce,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            backlog=BACKLOG,
        )
        super().__init__(config)
        self._begin_close = app.state.begin_close

    async def serve_until_signal(self, listener: socket.socket) -> None:
        """Serve; return when a signal has ended the server and everything that it owned."""
        async with anyio.create_task_group() as tasks:
            # First of all: what starts a process below must not hand it signals that are held back.
            await tasks.start(self._end_on_signal)
            await self.serve(sockets=[listener])
            tasks.cancel_scope.cancel()

    def end(self) -> None:
        """Start to end: sandboxes and connections side by side."""
        self.should_exit = True
        self._begin_close()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone: uvicorn would end the process by the signal, as if it had not been expected."""
        yield

    async def _end_on_signal(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        wanted = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means to outlive the terminal
            wanted.append(signal.SIGHUP)
        with anyio.open_signal_receiver(*wanted) as received:
            # One that was held back while the server started arrives now.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
            task_status.started()
            async for number in received:
                if not self.should_exit:
                    logger.info("ending", extra={"reason": number.name})
                    cut_off = threading.Timer(MAX_ENDING_S, _cut_off)
                    cut_off.daemon = True
                    cut_off.start()
                    self.end()


def most_connections() -> int:
    """How many connections are held at a time: half of the files that this process may open."""
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 16)


def _cut_off() -> None:
    os.write(2, b"cloche: cleaning up did not finish in time; sandboxes end at their own deadline\n")
    os._exit(1)


class _PatientOnce(H11Protocol):
    """Closes a connection whose first request does not come: half-open ones must not fill the table."""

    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            # Whatever is left of the descriptors belongs to the clients that are here, and to their sandboxes.
            transport.close()
            return
        self._hurry = self.loop.call_later(HEADERS_WITHIN_S, transport.close)

    def handle_events(self) -> None:
        super().handle_events()
        if self.headers:
            self._relax()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    def _relax(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None
