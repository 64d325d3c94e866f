"""Groups about Docker sandboxes: making them, commands, disk, squash and export, each beside what the system does."""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio.to_thread

from cloche_docker_manager.registry import Record
from tests import docker_engine
from tests.benchmarks.docker_bench import NETWORK, Commands, DockerBench, blocks_below, docker_bench, fill
from tests.benchmarks.measure import MEGABYTES, Contender, Goal, Group, Unit
from tests.docker_engine import BUSYBOX

SMALL_FILES = 5_000
LARGE_FILES, LARGE_BYTES = 64, 4 << 20
PERCENT = Unit("%", 1)
MIB = 1 << 20


def _not_here(title: str) -> Group | None:
    """The group without contenders, where this machine cannot have an engine."""
    reason = docker_engine.missing() or ("" if shutil.which("docker") else "docker: its own client is not installed")
    return Group(title, [], skipped=[f"docker: {reason}"]) if reason else None


@asynccontextmanager
async def docker_create_group() -> AsyncGenerator[Group]:
    """A sandbox on a project that has not changed, ready to work, against a container of the same image."""
    title = f"A Docker sandbox on an unchanged project of {SMALL_FILES:,} files"
    if missing := _not_here(title):
        yield missing
        return
    async with docker_bench() as bench:
        fill(bench.workspace, SMALL_FILES, 200)
        (first,) = await bench.create()

        async def ours() -> float:
            started = time.perf_counter()
            (record,) = await bench.create()
            seconds = time.perf_counter() - started
            await bench.destroy(record)
            return seconds

        async def plain() -> float:
            mount = f"type=bind,src={bench.workspace},dst=/workspace,readonly"
            words = ("run", "--detach", "--name", "plain", "--network", NETWORK, "--publish", "127.0.0.1::80")
            command = ("docker", "--host", bench.engine.url, *words, "--mount", mount, BUSYBOX, "sleep", "600")
            try:
                return await bench.seconds_of(*command)
            finally:
                await anyio.to_thread.run_sync(bench.docker, "rm", "--force", "plain")

        contenders = [Contender("cloche, create_sandbox", ours), Contender("docker run --detach", plain)]
        yield Group(title, contenders, [Goal(contenders[0].name, contenders[1].name, at_most_ratio=1.5)])
        await bench.destroy(first)


@asynccontextmanager
async def docker_call_group() -> AsyncGenerator[Group]:
    """One command in a sandbox that runs."""
    title = "A command in a Docker sandbox that runs: true"
    if missing := _not_here(title):
        yield missing
        return
    async with docker_bench() as bench:
        (record,) = await bench.create()
        async with Commands(record) as commands:
            await commands.ask("/cloche.Layers/CreateSession", {"session_id": "bench"})

            async def in_session() -> float:
                started = time.perf_counter()
                await commands.run("true", "bench")
                return time.perf_counter() - started

            async def alone() -> float:
                started = time.perf_counter()
                await commands.run("true")
                return time.perf_counter() - started

            async def plain() -> float:
                words = ("docker", "--host", bench.engine.url, "exec", record.container, "/bin/sh", "-c", "true")
                return await bench.seconds_of(*words)

            contenders = [
                Contender("cloche, in a workspace session", in_session),
                Contender("cloche, in a session of its own that is published", alone),
                Contender("docker exec", plain),
            ]
            yield Group(title, contenders, [Goal(contenders[0].name, "docker exec", at_least_times_faster=10)])


@asynccontextmanager
async def docker_disk_group() -> AsyncGenerator[Group]:
    """What eight sandboxes on a project of a gibibyte take on the disk."""
    title = "Disk that sandboxes on a project of 1 GiB take, in % of the project"
    if missing := _not_here(title):
        yield missing
        return
    async with docker_bench() as bench:
        await anyio.to_thread.run_sync(fill, bench.workspace, 256, 4 << 20)
        places = (bench.folder / "cache", bench.folder / "state", _data_of(bench))

        async def first() -> float:
            before = blocks_below(*places)
            (record,) = await bench.create()
            await bench.destroy(record)
            return (blocks_below(*places) - before) / (1 << 30) * 100

        async def eight() -> float:
            before = blocks_below(*places)
            made = await bench.create(8)
            grown = blocks_below(*places) - before
            for record in made:
                await bench.destroy(record)
            return grown / (1 << 30) * 100

        contenders = [Contender("the shared base, made once", first), Contender("eight sandboxes on it", eight)]
        yield Group(title, contenders, [Goal(contenders[1].name, at_most=1)], PERCENT)


def _data_of(bench: DockerBench) -> Path:
    return Path(bench.engine.url.removeprefix("unix://")).parent / "data"


@asynccontextmanager
async def docker_large_group() -> AsyncGenerator[Group]:
    """Files of several mebibytes: squash and export against what copies them."""
    title = f"Squash and export of {LARGE_FILES} files of {LARGE_BYTES // MIB} MiB"
    if missing := _not_here(title):
        yield missing
        return
    async with AsyncExitStack() as stack:
        work = await _layers(stack, LARGE_FILES, LARGE_BYTES)
        contenders = [
            Contender("cloche, squash of two layers", work.squash),
            Contender("cloche, export to a directory", work.directory),
            Contender("cloche, export to a tar archive", work.archive),
            Contender("cp -a", work.copied),
            Contender("tar -cf", work.packed),
        ]
        goals = [Goal(one.name, "cp -a", at_most_ratio=1.5) for one in contenders[:2]]
        goals.append(Goal(contenders[2].name, "tar -cf", at_most_ratio=1.5))
        yield Group(title, contenders, goals)


@asynccontextmanager
async def docker_small_group() -> AsyncGenerator[Group]:
    """Thousands of small files: milliseconds for each."""
    title = f"Squash and export of {SMALL_FILES:,} files of 200 bytes, for each"
    if missing := _not_here(title):
        yield missing
        return
    async with AsyncExitStack() as stack:
        work = await _layers(stack, SMALL_FILES, 200)
        names = {
            "cloche, squash of two layers": work.squash,
            "cloche, export to a directory": work.directory,
            "cloche, export to a tar archive": work.archive,
            "cp -a": work.copied,
            "tar -cf": work.packed,
        }
        contenders = [Contender(name, trial) for name, trial in names.items()]
        goals = [Goal(one.name, at_most=0.4) for one in contenders[:3]]
        yield Group(title, contenders, goals, Unit("ms", 1000 / SMALL_FILES))


class _Layers:
    """A sandbox whose files stand in two layers."""

    def __init__(self, bench: DockerBench, record: Record, commands: Commands, files: int, size: int) -> None:
        self._bench = bench
        self._record = record
        self._commands = commands
        self._half = files // 2
        self._size = size
        self._out = bench.folder / "out"

    async def publish(self) -> None:
        """Two layers more, each with half of the files."""
        for half in ("a", "b"):
            loop = f"i=0; while [ $i -lt {self._half} ]; do d=d$((i / 100)); [ -d $d ] || mkdir $d; "
            await self._commands.run(f"{loop} head -c {self._size} /dev/urandom >$d/{half}$i; i=$((i + 1)); done")

    async def squash(self) -> float:
        """Seconds of one squash; the layers are made before it."""
        await self.publish()
        started = time.perf_counter()
        await self._bench.squash(self._record)
        return time.perf_counter() - started

    async def directory(self) -> float:
        """Seconds of an export into a directory that is not there."""
        shutil.rmtree(self._out, ignore_errors=True)
        started = time.perf_counter()
        await self._bench.export(self._record, self._out, "dir")
        return time.perf_counter() - started

    async def archive(self) -> float:
        """Seconds of an export into an archive."""
        started = time.perf_counter()
        await self._bench.export(self._record, self._bench.folder / "ours.tar", "tar")
        return time.perf_counter() - started

    async def copied(self) -> float:
        """Seconds of a copy of the same files."""
        target = self._bench.folder / "copy"
        shutil.rmtree(target, ignore_errors=True)
        return await self._bench.seconds_of("cp", "-a", str(self._out), str(target))

    async def packed(self) -> float:
        """Seconds of an archive of the same files."""
        return await self._bench.seconds_of("tar", "-cf", f"{self._bench.folder}/plain.tar", "-C", str(self._out), ".")


async def _layers(stack: AsyncExitStack, files: int, size: int) -> _Layers:
    bench = await stack.enter_async_context(docker_bench())
    (record,) = await bench.create()
    commands = await stack.enter_async_context(Commands(record))
    return _Layers(bench, record, commands, files, size)


@asynccontextmanager
async def docker_memory_group() -> AsyncGenerator[Group]:
    """How much the manager grows while it exports a gibibyte."""
    title = "Memory that the manager takes more while it exports 1 GiB"
    if missing := _not_here(title):
        yield missing
        return
    async with docker_bench() as bench:
        (record,) = await bench.create()
        async with Commands(record) as commands:
            for number in range(4):
                await commands.run(f"head -c {256 * MIB} /dev/urandom >large{number}")

        async def grown(kind: str) -> float:
            dest = bench.folder / f"out-{kind}"
            shutil.rmtree(dest, ignore_errors=True)
            before = _resident("VmRSS")
            # 5: the peak begins anew (proc(5), clear_refs).
            Path("/proc/self/clear_refs").write_text("5")
            await bench.export(record, dest, kind)
            return _resident("VmHWM") - before

        async def directory() -> float:
            return await grown("dir")

        async def archive() -> float:
            return await grown("tar")

        contenders = [Contender("to a directory", directory), Contender("to a tar archive", archive)]
        yield Group(title, contenders, [Goal(one.name, at_most=40) for one in contenders], MEGABYTES)


def _resident(key: str) -> float:
    """Megabytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{key}:"))) / 1024
