"""The zygote and what it has ready: nothing of it is left, and nothing of it is lost."""

from __future__ import annotations

import hashlib
import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from cloche_contract.provider import CreateRequest, InspectRequest, KillRequest, ListRequest
from cloche_local import templates
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import (
    Sandbox,
    made,
    make_provider,
    until_gone,
    zygote_pid,
)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _is_init(pid: int) -> bool:
    """Whether a process is pid 1 of a namespace below ours."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[2:] == ["1"]
    return False


def _keepers(zygote: int) -> set[int]:
    return {child for child in _children(zygote) if any(_is_init(below) for below in _children(child))}


async def _spares(zygote: int, known: set[int] | None = None, count: int = 1) -> set[int]:
    """So many keepers besides `known`, once they have made their inits."""
    with anyio.fail_after(20):
        while len(waiting := _keepers(zygote) - (known or set())) < count:
            await anyio.sleep(0.001)
    return waiting


async def _spare(zygote: int, known: set[int] | None = None) -> int:
    return (await _spares(zygote, known)).pop()


async def test_the_next_sandbox_is_begun_before_it_is_asked_for(provider: LocalProvider) -> None:
    """The waiting keeper becomes the sandbox's, and another is begun."""
    await provider.warm()
    zygote = zygote_pid()
    spares = await _spares(zygote, count=2)
    async with made(provider) as sandbox:
        keeper = await _keeper(provider, sandbox)
        assert keeper in spares
        assert len(await _spares(zygote, {keeper}, 2)) == 2


async def test_a_sandbox_that_is_asked_for_right_after_another_has_waited_too(provider: LocalProvider) -> None:
    """Issue 3, speed: nothing is built between two requests that follow each other."""
    await provider.warm()
    spares = await _spares(zygote_pid(), count=2)
    async with made(provider) as first, made(provider) as second:
        assert {await _keeper(provider, first), await _keeper(provider, second)} == spares


async def _keeper(provider: LocalProvider, sandbox: Sandbox) -> int:
    return int((await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts["keeper_pid"])


async def test_a_waiting_keeper_that_was_killed_is_replaced(provider: LocalProvider) -> None:
    """A request meets dead spares: it gets a keeper of its own."""
    await provider.warm()
    spares = await _spares(zygote_pid(), count=2)
    for spare in spares:
        os.kill(spare, signal.SIGKILL)
    for spare in spares:
        await until_gone(spare)
    async with made(provider) as sandbox:
        assert (await sandbox.run("echo yes")).stdout == "yes\n"


async def test_a_sandbox_that_waited_gets_the_environment_of_its_request(provider: LocalProvider) -> None:
    """Its first interpreter was there before the request; so has a second sandbox of another environment."""
    await provider.warm()
    for value in ("first", "x" * 30_000):
        await _spare(zygote_pid())
        async with made(provider, envs={"TOLD": value}) as sandbox:
            lines = await sandbox.execute("import os; print(os.environ['TOLD'])")
            assert "".join(line["text"] for line in lines if line["type"] == "stdout") == f"{value}\n"
            assert (await sandbox.run("printf %s $TOLD")).stdout == value
            await provider.kill(KillRequest(sandbox_id=sandbox.id))


# It knows the beginning and a hash only: it must not find what it holds itself.
_SEARCH = """
import hashlib
found, start, size, digest = 0, {start!r}, {size}, {digest!r}
for line in open("/proc/self/maps"):
    first, last = (int(part, 16) for part in line.split()[0].split("-"))
    if "rw" in line and "[v" not in line:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(first)
            content, place = memory.read(last - first), -1
            while (place := content.find(start, place + 1)) >= 0:
                found += hashlib.sha256(content[place : place + size]).hexdigest() == digest
print("found", found > 0)
"""


async def test_no_interpreter_has_the_token_in_its_memory(provider: LocalProvider) -> None:
    """Interpreters are forks: whatever init has read, user code can read. In a burst, and in one that waited."""

    async def search() -> None:
        async with made(provider) as sandbox:
            agent = sandbox.record.agent
            assert agent is not None
            token = agent.access_token.get_secret_value().encode()
            code = _SEARCH.format(start=token[:6], size=len(token), digest=hashlib.sha256(token).hexdigest())
            lines = await sandbox.execute(code)
            assert "found False\n" in [line.get("text") for line in lines]
            # What is there is found.
            lines = await sandbox.execute(f"kept = {token[:9]!r} + {token[9:]!r}\n{code}")
            assert "found True\n" in [line.get("text") for line in lines]

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(search)
    await _spare(zygote_pid())
    await search()


async def test_what_waits_for_one_template_is_not_given_to_another(provider: LocalProvider) -> None:
    """Each sandbox has the libraries of its own template, in whatever order they are asked for."""
    found = templates.find_template(templates.CODE_INTERPRETER)
    if found is None or found.missing:
        pytest.skip("numpy, pandas or matplotlib is not installed beside Cloche")
    await provider.warm()
    for template, listed in ((templates.BASE, False), (templates.CODE_INTERPRETER, True), (templates.BASE, False)):
        async with made(provider, template=template) as sandbox:
            shown = await sandbox.run("python3 -c 'import numpy'")
            assert (shown.exit_code == 0) is listed
            await provider.kill(KillRequest(sandbox_id=sandbox.id))


async def test_a_hundred_requests_at_once_are_all_served(provider: LocalProvider) -> None:
    """Issue 3, speed. More of them than the zygote's socket holds: the others wait for room, each by itself."""
    await provider.warm()
    zygote = zygote_pid()
    os.kill(zygote, signal.SIGSTOP)
    made_ids: list[str] = []

    async def one() -> None:
        record = await provider.create(CreateRequest(template="base", timeout=120))
        made_ids.append(record.sandbox_id)
        await provider.kill(KillRequest(sandbox_id=record.sandbox_id))

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        os.kill(zygote, signal.SIGCONT)
    assert len(set(made_ids)) == 100
    assert (await provider.list(ListRequest())).sandboxes == []


def _tree(pid: int) -> list[int]:
    return [pid, *(below for child in _children(pid) for below in _tree(child))]


async def test_closing_leaves_no_process(folder: Path, usable: None) -> None:
    """The zygote, its warm stage and the waiting keepers end with the provider."""
    provider = make_provider(folder)
    await provider.warm()
    zygote = zygote_pid()
    await _spare(zygote)
    begun = _tree(zygote)
    assert len(begun) >= 3
    await provider.close()
    for pid in begun:
        await until_gone(pid, 10)


async def test_a_killed_zygote_takes_what_waits_and_nothing_else(provider: LocalProvider) -> None:
    """Sandboxes do not depend on it."""
    async with made(provider) as sandbox:
        zygote = zygote_pid()
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        waiting = await _spare(zygote, {int(facts["keeper_pid"])})
        os.kill(zygote, signal.SIGKILL)
        await until_gone(waiting, 5)
        assert (await sandbox.run("echo alive")).stdout == "alive\n"


async def test_warm_code_interpreters_have_everything_imported(provider: LocalProvider) -> None:
    """local-runtime, Processes: the second stage serves once it is ready."""
    found = templates.find_template(templates.CODE_INTERPRETER)
    if found is None or found.missing:
        pytest.skip("numpy, pandas or matplotlib is not installed beside Cloche")
    await provider.warm()
    with anyio.fail_after(60):
        while True:
            async with made(provider, template=templates.CODE_INTERPRETER) as sandbox:
                lines = await sandbox.execute("import sys; print('pandas' in sys.modules)")
                await provider.kill(KillRequest(sandbox_id=sandbox.id))
            if "True\n" in [line.get("text") for line in lines]:
                break
        async with made(provider, template=templates.CODE_INTERPRETER) as sandbox:
            # Its font was open when the context was forked.
            lines = await sandbox.execute("import matplotlib.pyplot as plot; plot.plot([1, 2]); plot.show()")
            assert [line["png"][:4] for line in lines if line["type"] == "result"] == ["iVBO"], lines


async def test_what_was_rehearsed_is_not_the_users(provider: LocalProvider) -> None:
    """A sandbox that waited has answered a request of its own: it counts from one, and nothing of it shows."""
    await provider.warm()
    await _spare(zygote_pid())
    async with made(provider) as sandbox:
        lines = await sandbox.execute("1 / 0")
        assert lines[0] == {"type": "number_of_executions", "execution_count": 1} | lines[0]
        (error,) = [line for line in lines if line["type"] == "error"]
        assert "<execution 1>" in error["traceback"]
        assert [line for line in lines if line["type"] in ("context_restarted", "stdout", "result")] == []
        lines = await sandbox.execute("print(sorted(name for name in globals() if not name.startswith('__')))")
        assert "['display']\n" in [line.get("text") for line in lines]
        lines = await sandbox.execute("import os; print(os.listdir('.'))")
        assert "[]\n" in [line.get("text") for line in lines]
