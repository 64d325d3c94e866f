"""An engine of our own, a manager on it, and sandboxes: what the groups about Docker sandboxes share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from cloche_contract.wire.connect import StreamDecoder, encode_message
from cloche_docker_manager.export import Exported, Order
from cloche_docker_manager.manager import Manager
from cloche_docker_manager.registry import Record
from tests import docker_engine
from tests.docker_engine import BUSYBOX, TestEngine

NETWORK = "benchmark"


async def silent(_progress: float, _message: str) -> None:
    """What hears the progress of a benchmark."""


class DockerBench:
    """A manager on an engine, with a workspace; everything lies below one folder."""

    def __init__(self, engine: TestEngine, folder: Path, manager: Manager) -> None:
        self.engine = engine
        self.folder = folder
        self.workspace = folder / "workspaces/project"
        self._manager = manager

    async def create(self, count: int = 1) -> list[Record]:
        """Sandboxes on the workspace."""
        return await self._manager.create(BUSYBOX, str(self.workspace), count, silent)

    async def destroy(self, record: Record) -> None:
        """One sandbox less."""
        await self._manager.destroy(record.id)

    async def squash(self, record: Record) -> None:
        """Make one layer of all."""
        if not (await self._manager.squash(record.id)).squashed_blocks:
            raise RuntimeError("there was nothing to squash")

    async def export(self, record: Record, dest: Path, kind: str) -> Exported:
        """Write what was published."""
        return await self._manager.export(record.id, Order(str(dest), kind), silent)

    def docker(self, *words: str) -> str:
        """Docker's own client on this engine.

        Raises:
            RuntimeError: it failed.
        """
        done = subprocess.run(
            ["docker", "--host", self.engine.url, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-200:])
        return done.stdout.strip()

    async def seconds_of(self, *words: str) -> float:
        """How long a program takes.

        Raises:
            RuntimeError: it failed.
        """
        started = time.perf_counter()
        done = await anyio.run_process(words, check=False)
        seconds = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace")[-200:])
        return seconds


class Commands:
    """Commands in a sandbox over one kept-alive connection."""

    def __init__(self, record: Record) -> None:
        headers = {"X-Access-Token": record.token}
        url = f"http://127.0.0.1:{record.agent_port}"
        self._client = httpx.AsyncClient(base_url=url, headers=headers, timeout=300, trust_env=False)

    async def __aenter__(self) -> Commands:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, path: str, message: Mapping[str, Any]) -> None:
        """Call a method of the agent."""
        (await self._client.post(path, json=dict(message))).raise_for_status()

    async def run(self, command: str, session: str = "") -> None:
        """Run a shell command, in that session or in one of its own that is published.

        Raises:
            RuntimeError: its exit code is not 0.
        """
        where = {"workspaceSession": session} if session else {}
        body = encode_message({"process": {"cmd": "/bin/sh", "args": ["-c", command]}, **where})
        sent = {"Content-Type": "application/connect+json"}
        answer = await self._client.post("/process.Process/Start", content=body, headers=sent)
        ends = [
            frame["event"]["end"] for frame in StreamDecoder().feed(answer.content) if "end" in frame.get("event", {})
        ]
        if not ends or ends[0].get("exitCode", 0):
            raise RuntimeError(f"the command failed: {answer.content[-200:]!r}")


@asynccontextmanager
async def docker_bench() -> AsyncGenerator[DockerBench]:
    """Start an engine with the image, and a manager; both end with it."""
    folder = Path(tempfile.mkdtemp(prefix="cloche-bench-"))
    (folder / "workspaces/project").mkdir(parents=True)
    try:
        with docker_engine.running_engine() as engine:
            docker_engine.import_busybox(engine)
            engine.api.create_network(NETWORK, driver="bridge")
            manager = Manager(environ_of(engine, folder))
            try:
                yield DockerBench(engine, folder, manager)
                for record in await manager.records():
                    await manager.destroy(record.id)
            finally:
                await manager.aclose()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environ_of(engine: TestEngine, folder: Path) -> dict[str, str]:
    """What the manager is told."""
    return {
        "HOME": str(folder / "home"),
        "DOCKER_HOST": engine.url,
        "ABX_DOCKER_STATE_DIR": str(folder / "state"),
        "ABX_DOCKER_CACHE_DIR": str(folder / "cache"),
        "ABX_DOCKER_WORKSPACE_ROOTS": str(folder / "workspaces"),
    }


def fill(folder: Path, files: int, size: int) -> None:
    """Files of random content, a hundred in a folder."""
    for number in range(files):
        path = folder / f"d{number // 100}/f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))


def blocks_below(*folders: Path) -> int:
    """Bytes that folders take on the disk, each file once; not what is mounted there, as the view of a container is."""
    seen: set[int] = set()
    total = 0
    for top in filter(Path.exists, folders):
        device = os.lstat(top).st_dev
        for folder, below, files in os.walk(top):
            below[:] = [name for name in below if os.lstat(os.path.join(folder, name)).st_dev == device]
            for name in (*files, "."):
                facts = os.lstat(os.path.join(folder, name))
                if facts.st_ino not in seen:
                    seen.add(facts.st_ino)
                    total += facts.st_blocks * 512
    return total
