"""The contenders: Cloche, and the yardsticks beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from cloche_contract.provider import CreateRequest
from cloche_sdk import AsyncSandbox
from cloche_sdk.providers import Doors, ProviderPool
from tests.benchmarks.measure import Contender, Goal, Group
from tests.benchmarks.stdio_client import StdioClient

ABX = Path(sys.executable).parent / "abx"
CODE = "print(6 * 7)"
ANSWER = "42"


def plain_python() -> str:
    """The interpreter that a sandbox uses too, without our environment around it."""
    return os.path.realpath(sys.executable)


def run_program(command: Sequence[str]) -> float:
    """Seconds from the start of a program to its end; its output must be the answer."""
    started = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0 or done.stdout.strip() != ANSWER:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-120:]}")
    return seconds


def program(name: str, *command: str) -> Contender:
    """A contender that starts a program for each trial."""

    async def trial() -> float:
        return await anyio.to_thread.run_sync(partial(run_program, command))

    return Contender(name, trial)


def bubblewrap() -> Contender:
    """bubblewrap with namespaces and a root comparable to ours, and the same interpreter."""
    python = plain_python()
    command = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--ro-bind",
        "/usr",
        "/usr",
    ]
    for name in ("bin", "lib", "lib64", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    if not python.startswith("/usr/"):
        command += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home", "--chdir", "/home"]
    return program("bubblewrap, python3 -c", *command, python, "-c", CODE)


def docker_image() -> str | None:
    """An image with Python that the engine has already, or None where no engine answers."""
    if not shutil.which("docker"):
        return None
    wanted = os.environ.get("BENCHMARK_IMAGE", "python")
    asked = subprocess.run(["docker", "image", "inspect", wanted], capture_output=True, timeout=20, check=False)
    return wanted if asked.returncode == 0 else None


class BareFork:
    """A helper that forks, enters the same namespaces, makes the same mounts and runs the code. Nothing else."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.bare_fork"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def trial(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the helper ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return float(answer["seconds"])

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(timeout=10)


class LocalSandboxes:
    """Create, run and kill through the SDK; one trial of a create gives one for `kill`."""

    def __init__(self, pool: ProviderPool) -> None:
        self._pool = pool
        self._kill_seconds: list[float] = []

    async def create_to_first_result(self, template: str) -> float:
        """In a process that has made sandboxes before, as a server has."""
        started = time.perf_counter()
        request = CreateRequest(template=template, timeout=60)
        return await self._use(await AsyncSandbox.create_in(self._pool, request, "local"), started)

    async def alone_to_first_result(self) -> float:
        """As a program does that makes one sandbox: the provider is opened for it."""
        started = time.perf_counter()
        return await self._use(await AsyncSandbox.create("base", timeout=60, provider="local"), started)

    async def _use(self, sandbox: AsyncSandbox, started: float) -> float:
        try:
            execution = await sandbox.run_code(CODE)
            seconds = time.perf_counter() - started
            if execution.stdout.strip() != ANSWER:
                raise RuntimeError("the code did not print its answer")
        finally:
            killed = time.perf_counter()
            await sandbox.kill()
            self._kill_seconds.append(time.perf_counter() - killed)
        return seconds

    async def kill(self) -> float:
        """What the last kill took for its caller."""
        return self._kill_seconds[-1]


@asynccontextmanager
async def create_group() -> AsyncGenerator[Group]:
    """From nothing to the first output of Python code."""
    pool = ProviderPool(Doors())
    bare = BareFork()
    try:
        sandboxes = LocalSandboxes(pool)
        cloche = Contender("cloche, template base", partial(sandboxes.create_to_first_result, "base"))
        kill = Contender("  its kill, as the caller waits for it", sandboxes.kill)
        plain = program("python3 -c, no sandbox", plain_python(), "-c", CODE)
        floor = Contender("bare fork, same mounts", partial(anyio.to_thread.run_sync, bare.trial))
        warm = Contender(
            "cloche, code-interpreter-v1", partial(sandboxes.create_to_first_result, "code-interpreter-v1")
        )
        alone = Contender("cloche, first of a process", sandboxes.alone_to_first_result)
        contenders = [cloche, kill, plain, floor, warm, alone]
        goals = [
            Goal(cloche.name, plain.name, at_most_ratio=1.2),
            Goal(cloche.name, floor.name, at_most_ratio=2),
        ]
        if shutil.which("bwrap"):
            contenders.append(bubblewrap())
        image = docker_image()
        if image is not None:
            docker = program("docker run, python3 -c", "docker", "run", "--rm", image, "python3", "-c", CODE)
            contenders.append(docker)
            goals.append(Goal(cloche.name, docker.name, at_least_times_faster=20))
        yield Group("Create to the first Python result", contenders, goals)
    finally:
        bare.close()
        await pool.aclose()


@asynccontextmanager
async def call_group() -> AsyncGenerator[Group]:
    """One tool call over MCP stdio, in a session that is warm."""
    async with AsyncExitStack() as stack:
        cloche = stack.enter_context(StdioClient([str(ABX), "mcp", "start"]))
        bare = stack.enter_context(StdioClient([sys.executable, "-m", "tests.benchmarks.bare_server"]))
        for client in (cloche, bare):
            await anyio.to_thread.run_sync(client.initialize)
        # The default sandbox, which the other calls are about.
        await anyio.to_thread.run_sync(partial(cloche.call, "run_command", {"command": "true"}))

        def contender(name: str, client: StdioClient, tool: str, arguments: Mapping[str, object]) -> Contender:
            return Contender(name, partial(anyio.to_thread.run_sync, partial(client.call, tool, arguments)))

        echo = contender('run_command("echo")', cloche, "run_command", {"command": "echo"})
        cheapest = contender("get_sandbox, the cheapest call", cloche, "get_sandbox", {})
        listing = contender("list_sandboxes", cloche, "list_sandboxes", {"limit": 1})
        noop = contender("bare mcp server, no-op tool", bare, "noop", {})
        code = contender('run_code("x = 1")', cloche, "run_code", {"code": "x = 1"})
        yield Group(
            "One call over MCP stdio",
            [echo, noop, cheapest, listing, code],
            [Goal(echo.name, noop.name, at_most_added_ms=3), Goal(cheapest.name, noop.name, at_most_ratio=1.3)],
        )


def start_to_tools(command: Sequence[str]) -> float:
    """Seconds from the start of a server process to its answer to tools/list."""
    with StdioClient(command) as client:
        client.initialize()
        client.request("tools/list", {})
        return time.perf_counter() - client.started


@asynccontextmanager
async def start_group() -> AsyncGenerator[Group]:
    """A server process, from its start to the answered tools/list."""

    def contender(name: str, *command: str) -> Contender:
        return Contender(name, partial(anyio.to_thread.run_sync, partial(start_to_tools, command)))

    cloche = contender("abx mcp start", str(ABX), "mcp", "start")
    bare = contender("bare mcp server", sys.executable, "-m", "tests.benchmarks.bare_server")
    yield Group(
        "Process start to answered tools/list", [cloche, bare], [Goal(cloche.name, bare.name, at_most_ratio=1.1)]
    )


@asynccontextmanager
async def one_shot_group() -> AsyncGenerator[Group]:
    """A whole command: nothing is warm."""
    yield Group(
        "One-shot, cold",
        [program("abx run", str(ABX), "run", CODE), program("python3 -c, no sandbox", plain_python(), "-c", CODE)],
    )
