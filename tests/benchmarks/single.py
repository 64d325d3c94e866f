"""Groups about one sandbox at a time: create, call, start."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio.to_thread

from tests.benchmarks.environment import PEERS
from tests.benchmarks.helper import Helper
from tests.benchmarks.measure import Contender, Goal, Group
from tests.benchmarks.programs import ABX, CODE, bare_python, bubblewrap, container, docker_image, plain_python, program
from tests.benchmarks.sandboxes import NUMPY_CODE, WARM_TEMPLATE, local_sandboxes
from tests.benchmarks.stdio_client import StdioClient

NO_ENGINE = "docker: no engine answers with an image `python` (or BENCHMARK_IMAGE)"
NO_PEERS = "llm-sandbox, ipykernel: not installed; `nox -s peers` makes their environment"
MODULES = (sys.executable, "-m")


def peers_python() -> str | None:
    """The interpreter of the environment with other people's libraries, where `nox -s peers` made one."""
    python = PEERS / "bin" / "python"
    return str(python) if python.exists() else None


@asynccontextmanager
async def create_group() -> AsyncGenerator[Group]:
    """From nothing to the first output of Python code."""
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(local_sandboxes())
        python = stack.enter_context(plain_python())
        bare_fork = stack.enter_context(Helper([*MODULES, "tests.benchmarks.bare_fork"]))
        cloche = Contender("cloche, template base", partial(sandboxes.create_to_first_result, "base"))
        plain = program("python3 -c, no sandbox", python, "-c", CODE)
        floor = bare_fork.contender("bare fork, same mounts")
        contenders = [
            cloche,
            Contender("  its kill, as the caller waits for it", sandboxes.kill),
            plain,
            program("python3 -I -S -c, no sandbox", *bare_python(), "-c", CODE),
            # Behind what gives time to prepare the next two, and before what takes one.
            Contender("cloche, right after another", partial(sandboxes.create_right_after, "base")),
            floor,
            Contender("cloche, AsyncSandbox.create of a program", sandboxes.alone_to_first_result),
        ]
        goals = [Goal(cloche.name, plain.name, at_most_ratio=1.2), Goal(cloche.name, floor.name, at_most_ratio=2)]
        skipped: list[str] = []
        if await sandboxes.is_warm():
            contenders.insert(
                2, Contender(f"cloche, {WARM_TEMPLATE}", partial(sandboxes.create_to_first_result, WARM_TEMPLATE))
            )
        else:
            skipped.append(f"cloche, {WARM_TEMPLATE}: numpy, pandas or matplotlib is not installed")
        _add_bubblewrap(contenders, skipped)
        _add_docker(contenders, goals, skipped, cloche)
        _add_peers(contenders, skipped, stack)
        yield Group("Create to the first Python result", contenders, goals, skipped=skipped)


def _add_bubblewrap(contenders: list[Contender], skipped: list[str]) -> None:
    found = bubblewrap("bubblewrap, python3 -I -S -c")
    if found is None:
        skipped.append("bubblewrap: not installed")
    else:
        contenders.append(found)


def _add_docker(contenders: list[Contender], goals: list[Goal], skipped: list[str], cloche: Contender) -> None:
    image = docker_image()
    if image is None:
        skipped.append(NO_ENGINE)
        return
    run = program("docker run, python3 -c", *f"docker run --rm --network none {image} python3 -c".split(), CODE)
    contenders.append(run)
    goals.append(Goal(cloche.name, run.name, at_least_times_faster=20))


def _add_peers(contenders: list[Contender], skipped: list[str], stack: AsyncExitStack) -> None:
    python = peers_python()
    if python is None:
        skipped.append(NO_PEERS)
        return
    peers = stack.enter_context(Helper([python, "-m", "tests.benchmarks.peers"]))
    if not any("bubblewrap: " in reason for reason in skipped):
        contenders.append(peers.contender("llm-sandbox, bubblewrap", "bubblewrap"))
    if docker_image() is not None:
        contenders.append(peers.contender("llm-sandbox, docker", "docker"))


@asynccontextmanager
async def warm_group() -> AsyncGenerator[Group]:
    """Python code in something that runs already, and that keeps its state where it can."""
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(local_sandboxes())
        sandbox = await sandboxes.create(timeout_s=600)
        stack.push_async_callback(sandbox.link.aclose)
        stack.push_async_callback(sandbox.kill)
        floor = stack.enter_context(Helper([*bare_python(), "-c", _FLOOR])).contender(
            "python3 behind a pipe, no sandbox"
        )
        run_code = Contender("cloche, run_code of the SDK", partial(sandboxes.answer, sandbox, CODE))
        contenders = [run_code, floor]
        goals = [Goal(run_code.name, floor.name, at_most_added_ms=2)]
        skipped: list[str] = []
        if await sandboxes.is_warm():
            numpy = Contender(
                "cloche, first code, with numpy", partial(sandboxes.first_call, WARM_TEMPLATE, NUMPY_CODE)
            )
            contenders += [
                numpy,
                Contender("cloche, first code, without", partial(sandboxes.first_call, WARM_TEMPLATE, CODE)),
            ]
            goals.append(Goal(numpy.name, at_most=2))
        else:
            skipped.append(f"cloche, {WARM_TEMPLATE}: numpy, pandas or matplotlib is not installed")
        python = peers_python()
        if python is None:
            skipped.append(NO_PEERS)
        else:
            contenders.append(
                stack.enter_context(Helper([python, "-m", "tests.benchmarks.peers"])).contender(
                    "ipykernel, no sandbox", "kernel"
                )
            )
        image = docker_image()
        if image is None:
            skipped.append(NO_ENGINE)
        else:
            name = stack.enter_context(container(image))
            contenders.append(program("docker exec, python3 -c", "docker", "exec", name, "python3", "-c", CODE))
        yield Group("Python code in what runs already", contenders, goals, skipped=skipped)


# One line of code in, one line of output out: what any warm interpreter behind a pipe takes.
_FLOOR = """
import io, json, sys, time
from contextlib import redirect_stdout
import subprocess
inner = subprocess.Popen([sys.executable, "-I", "-S", "-u", "-c", "import sys\\nfor line in sys.stdin: exec(line)"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for _ in sys.stdin:
    started = time.perf_counter()
    inner.stdin.write(b"print(6 * 7)\\n")
    inner.stdin.flush()
    output = inner.stdout.readline()
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds} if output == b"42\\n" else {"error": "another answer"}), flush=True)
inner.stdin.close()
inner.wait()
"""


@asynccontextmanager
async def call_group() -> AsyncGenerator[Group]:
    """One tool call over MCP stdio, in a session that is warm."""
    async with AsyncExitStack() as stack:
        cloche = stack.enter_context(StdioClient([str(ABX), "mcp", "start"]))
        bare = stack.enter_context(StdioClient([*MODULES, "tests.benchmarks.bare_server"]))
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
        goals = [
            Goal(echo.name, noop.name, at_most_added_ms=3),
            Goal(code.name, noop.name, at_most_added_ms=2),
            Goal(cheapest.name, noop.name, at_most_ratio=1.3),
        ]
        yield Group("One call over MCP stdio", [echo, noop, cheapest, listing, code], goals)


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
    bare = contender("bare mcp server", *MODULES, "tests.benchmarks.bare_server")
    goals = [Goal(cloche.name, bare.name, at_most_ratio=1.1)]
    yield Group("Process start to answered tools/list", [cloche, bare], goals)


@asynccontextmanager
async def one_shot_group() -> AsyncGenerator[Group]:
    """A whole command: nothing is warm."""
    with plain_python() as python:
        contenders = [program("abx run", str(ABX), "run", CODE), program("python3 -c, no sandbox", python, "-c", CODE)]
        yield Group("One-shot, cold", contenders)
