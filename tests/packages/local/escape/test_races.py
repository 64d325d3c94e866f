"""The keeper's file operations against a program inside that swaps a folder and a link, as fast as it can.

The keeper acts for a user with that user's rights and inside the sandbox's root, so a path that changes under it leads
to what the user may reach anyway. Source: issue 3, part 1; faults P6, P8; security.md, Judge0 and runc.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened

_TRIES = 60
_WATCHERS = 20
_SWAP = """
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs("/home/user/race/a")
open("/home/user/race/a/f", "w").write("mine")
os.symlink("{secret}", "/home/user/race/b")
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2):
        os.close(fd)
    while True:
        libc.renameat2(-100, b"/home/user/race/a", -100, b"/home/user/race/b", 2)
print("started")
"""


@asynccontextmanager
async def _racing(folder: Path, secret: str, protections: Protections) -> AsyncGenerator[Sandbox]:
    """A sandbox in which /home/user/race/a is a folder, then a link to `secret`, then the folder again, for ever."""
    async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
        if HOST_ROOT:
            await sandbox.run(f"mkdir -m 700 {secret}; cd {secret}; echo secret > f; touch kept", user="root")
        started = await sandbox.python(_SWAP.replace("{secret}", secret))
        assert started.stdout == "started\n", started
        yield sandbox


@pytest.fixture(params=["root-of-the-sandbox", "the-host"])
async def race(request: pytest.FixtureRequest, folder: Path, usable: None) -> AsyncGenerator[tuple[Sandbox, str]]:
    """The race, and the folder that the link leads to: of root inside, or of the host."""
    if request.param == "root-of-the-sandbox":
        if not HOST_ROOT:
            pytest.skip("an ordinary user maps one id: the sandbox has no root")
        async with _racing(folder, "/root/secret", Protections()) as sandbox:
            yield sandbox, "/root/secret"
        return
    with tempfile.TemporaryDirectory(prefix="cl-") as secret:
        for name, text in (("f", "secret"), ("kept", "")):
            (Path(secret) / name).write_text(text)
        for path in (Path(secret), *Path(secret).iterdir()):
            path.chmod(0o777)
        async with _racing(folder, secret, Protections()) as sandbox:
            yield sandbox, secret


async def _rpc(sandbox: Sandbox, method: str, **fields: object) -> Mapping[str, Any]:
    answer = await sandbox.client.post(f"/filesystem.Filesystem/{method}", json=fields)
    return cast("Mapping[str, Any]", answer.json())


async def _names(sandbox: Sandbox, secret: str) -> set[str]:
    """What is in the secret folder, as its owner sees it."""
    if secret.startswith("/root/"):
        return set((await sandbox.run(f"ls -1 {secret}", user="root")).stdout.split())
    return {path.name for path in Path(secret).iterdir()}


async def test_p6_a_path_that_changes_between_check_and_use_leads_nowhere_new(race: tuple[Sandbox, str]) -> None:
    """Faults P6: read, write, list, make, move, remove and watch, each many times while the path is swapped."""
    sandbox, secret = race
    seen: set[str] = set()
    for number in range(_TRIES):
        read = await sandbox.client.get("/files", params={"path": "/home/user/race/a/f"})
        seen.add(read.text if read.status_code == 200 else "refused")
        await sandbox.client.post("/files", params={"path": f"/home/user/race/a/new{number}"}, content=b"x")
        listed = await _rpc(sandbox, "ListDir", path="/home/user/race/a")
        assert "kept" not in [entry["name"] for entry in listed.get("entries", ())]
        await _rpc(sandbox, "MakeDir", path=f"/home/user/race/a/folder{number}/below")
        await _rpc(sandbox, "Move", source="/home/user/race/a/kept", destination=f"/home/user/taken{number}")
        await _rpc(sandbox, "Remove", path="/home/user/race/a/kept")
    # Whichever state of the path was met: nothing of the secret folder was read or changed.
    assert seen <= {"mine", "refused"}
    assert await _names(sandbox, secret) == {"f", "kept"}
    assert "taken" not in (await sandbox.run("ls /home/user")).stdout


async def test_p6_a_watch_of_a_path_that_changes_tells_nothing_new(race: tuple[Sandbox, str]) -> None:
    """Faults P6: a watch is of a folder that the user may read, or it is refused."""
    sandbox, secret = race
    replies = [await _rpc(sandbox, "CreateWatcher", path="/home/user/race/a") for _ in range(_WATCHERS)]
    if secret.startswith("/root/"):
        await sandbox.run(f"touch {secret}/told", user="root")
    else:
        (Path(secret) / "told").touch()
    for reply in replies:
        if "watcherId" in reply:
            told = await _rpc(sandbox, "GetWatcherEvents", watcherId=reply["watcherId"])
            assert "told" not in json.dumps(told)


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")
async def test_p8_a_link_is_judged_by_what_it_leads_to(folder: Path, usable: None) -> None:
    """Faults P8: refused because the keeper acts with the user's rights; without that, root's file is read."""
    outcomes: dict[bool, int] = {}
    for acts in (True, False):
        protections = replace(Protections(), acts_as_user=acts)
        async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
            await sandbox.run("mkdir -m 700 /root/secret && echo secret > /root/secret/f", user="root")
            await sandbox.run("ln -s /root/secret /home/user/link")
            outcomes[acts] = (await sandbox.client.get("/files", params={"path": "link/f"})).status_code
    assert outcomes == {True: 403, False: 200}
