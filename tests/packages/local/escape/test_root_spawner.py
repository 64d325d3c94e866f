"""What root of a sandbox finds in the memory that it descends from: the spawner of root is a fork of the keeper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, made, make_provider, opened

pytestmark = pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")

# The token is turned round in the code, so that the code itself is no find.
_LOOK = """
import os
token = "{turned}"[::-1].encode()
found = 0
try:
    with open(f"/proc/{os.getppid()}/maps") as maps, open(f"/proc/{os.getppid()}/mem", "rb", 0) as memory:
        for line in maps:
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                memory.seek(first)
                found += memory.read(last - first).count(token)
    print("found" if found else "nothing")
except PermissionError:
    print("refused")
"""


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
        agent = sandbox.record.agent
        assert agent is not None
        code = _LOOK.replace("{turned}", agent.access_token.get_secret_value()[::-1])
        # Twice: the second spawner would be forked from a keeper that has seen a request.
        for _ in range(2):
            assert (await sandbox.python(code, user="root")).stdout.strip() == outcome
