"""A line to a real agent that can be cut: what a network does to a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cloche_sdk import AsyncSandbox


class Cutter:
    """Passes bytes on between clients and one socket, and cuts connections when it is told to."""

    def __init__(self, target: str) -> None:
        self.connections = 0
        self.cuts = 0
        self._target = target
        self._cut_after: list[int] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._refusing = False

    def cut_after(self, *sizes: int) -> None:
        """Cut one connection after another when so many bytes went to its client, wherever in a message that is."""
        self._cut_after = list(sizes)
        self.cut()

    def cut(self) -> None:
        """Cut every connection now."""
        for writer in list(self._writers):
            writer.transport.abort()

    def refuse(self) -> None:
        """Cut everything, and whatever comes."""
        self._refusing = True
        self.cut()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection."""
        self.connections += 1
        if self._refusing:
            writer.transport.abort()
            return
        upstream_reader, upstream_writer = await asyncio.open_unix_connection(self._target)
        self._writers |= {writer, upstream_writer}
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._copy(reader, upstream_writer, may_cut=False))
                tasks.create_task(self._copy(upstream_reader, writer, may_cut=True))
        finally:
            self._writers -= {writer, upstream_writer}

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, may_cut: bool) -> None:
        passed = 0
        with suppress(ConnectionError):
            while data := await source.read(8192):
                passed += len(data)
                if may_cut and self._cut_after and passed >= self._cut_after[0]:
                    too_many = passed - self._cut_after.pop(0)
                    sink.write(data[: max(0, len(data) - too_many)])
                    await sink.drain()
                    self.cuts += 1
                    break
                sink.write(data)
                await sink.drain()
        # Whatever was written leaves first: a cut in the middle of a message, not before it.
        sink.close()


@asynccontextmanager
async def cut_line(sandbox: AsyncSandbox, folder: Path) -> AsyncGenerator[Cutter]:
    """Have a fresh sandbox object reach its agent over a line that can be cut."""
    agent = sandbox.link.record.agent
    assert agent is not None
    assert agent.socket_path is not None
    cutter = Cutter(agent.socket_path)
    path = str(folder / "line.sock")
    server = await asyncio.start_unix_server(cutter.serve, path)
    line = agent.model_copy(update={"socket_path": path})
    sandbox.link.record = sandbox.link.record.model_copy(update={"agent": line})
    try:
        yield cutter
    finally:
        cutter.cut()
        server.close()
