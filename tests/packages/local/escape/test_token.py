"""The agent's token in memory: code inside descends from forks of the zygote, and root of a sandbox from the keeper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cloche_local.provider import LocalProvider
from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened

_ROOT_ONLY = pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")
_BURST = 4

# The token is turned round in the code and looked for in halves: whoever looks must not find what it looks for with.
_LOOK = """
import os
turned = b"{turned}"
first_half, second_half = turned[: len(turned) // 2 - 1 : -1], turned[len(turned) // 2 - 1 :: -1]
found = 0
try:
    with open("/proc/{whose}/maps") as maps, open("/proc/{whose}/mem", "rb", 0) as memory:
        for line in maps:
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if not line.split()[1].startswith("rw"):
                continue
            memory.seek(first)
            try:
                content = memory.read(last - first)
            except OSError:
                continue  # what the kernel shows of no file
            found += sum(part.startswith(second_half) for part in content.split(first_half)[1:])
    print("found" if found else "nothing")
except PermissionError:
    print("refused")
"""


def _code(sandbox: Sandbox, whose: str) -> str:
    agent = sandbox.record.agent
    assert agent is not None
    turned = agent.access_token.get_secret_value()[::-1]
    return _LOOK.replace("{whose}", whose).replace("{turned}", turned)


async def test_an_interpreter_does_not_find_the_token(folder: Path, usable: None) -> None:
    """Of a sandbox that was built in advance, and of those that were made at once: it looks at its own memory."""
    found: list[str] = []

    async def look(provider: LocalProvider) -> None:
        async with made(provider) as sandbox:
            lines = await sandbox.execute(_code(sandbox, "self"))
            found.append("".join(str(line["text"]) for line in lines if line["type"] == "stdout").strip())

    async with opened(make_provider(folder)) as provider, anyio.create_task_group() as tasks:
        for _ in range(_BURST):
            tasks.start_soon(look, provider)
    assert found == ["nothing"] * _BURST


@_ROOT_ONLY
@pytest.mark.parametrize(
    ("without", "outcome"),
    [
        ((), "refused"),
        (("token_forgotten",), "refused"),
        (("non_dumpable",), "nothing"),
        (("non_dumpable", "token_forgotten"), "found"),
    ],
    ids=["whole", "token_kept", "memory_readable", "both"],
)
async def test_root_of_a_sandbox_does_not_find_the_token(
    folder: Path, usable: None, without: tuple[str, ...], outcome: str
) -> None:
    """It is in no memory that code inside may read, and two protections say so: each alone is enough."""
    protections = replace(Protections(), **dict.fromkeys(without, False))
    async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
        # The first process of root is started by the spawner, and so is this one.
        parent = (await sandbox.run("echo $PPID", user="root")).stdout.strip()
        ran = await sandbox.python(_code(sandbox, parent), user="root", timeout_s=60)
        assert ran.stdout.strip() == outcome, ran
