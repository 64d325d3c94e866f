"""`abx mcp start --transport http` as a process of its own, on a port that the system chose."""

import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.abc

from tests.e2e.servers import SERVER


@dataclass(frozen=True)
class HttpProcess:
    """A server process that listens."""

    process: anyio.abc.Process
    origin: str

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return await self.process.wait()


@asynccontextmanager
async def http_server(
    environ: Mapping[str, str], *arguments: str, command: Sequence[str] = SERVER, within_s: float = 60
) -> AsyncGenerator[HttpProcess]:
    """Start the server and wait until it says where it listens; make sure that it is gone afterwards."""
    with anyio.fail_after(within_s):
        argv = [*command, "--transport", "http", "--port", "0", *arguments]
        process = await anyio.open_process(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(environ)
        )
        try:
            async with anyio.create_task_group() as pumps:
                assert process.stderr is not None
                said = b""
                while (found := re.search(rb"Serving MCP on (http://\S+)/mcp", said)) is None:
                    said += await process.stderr.receive()
                pumps.start_soon(_drain, process.stderr)
                yield HttpProcess(process, found[1].decode())
                if process.returncode is None:
                    process.terminate()
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()
                await process.aclose()


async def _drain(stream: anyio.abc.ByteReceiveStream) -> None:
    async for _ in stream:
        pass
