"""The host through files: names, sizes and kinds that a program inside chooses, met by the keeper's file operations.

Source: issue 3, part 1; faults F14; local-runtime.md, Processes (a FIFO must not hang the keeper).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from cloche_contract.provider import InspectRequest
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import Sandbox, made, make_provider, opened

_PREPARE = """
import os, shutil, socket
shutil.rmtree("/home/user/odd", ignore_errors=True)
os.makedirs("/home/user/odd")
os.chdir("/home/user/odd")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/dev/zero", "zero")
os.symlink("/dev/ptmx", "terminal")
os.symlink("/proc/self/mem", "memory")
os.symlink("loop", "loop")
os.symlink("/proc/1/root/etc/passwd", "magic")
with open("sparse", "w") as file:
    os.truncate("sparse", 1 << 42)
"""
_NAMES = (b"new\nline", b"\x1b[2J", b"\xff\xfe", b"-rf", b"\xe2\x80\xae", b"x" * 255, b" ", b"\r", b'"', b"\\")


async def _rpc(sandbox: Sandbox, method: str, **fields: object) -> Mapping[str, Any]:
    # Nothing that a program inside made may hold the keeper up.
    with anyio.fail_after(20):
        answer = await sandbox.client.post(f"/filesystem.Filesystem/{method}", json=fields)
    return cast("Mapping[str, Any]", answer.json())


def _code(answer: Mapping[str, Any]) -> str:
    return str(answer["cloche"]["code"]) if "cloche" in answer else "ok"


@pytest.fixture(scope="module")
async def box(usable: None) -> AsyncGenerator[tuple[LocalProvider, Sandbox]]:
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        async with opened(make_provider(Path(path))) as provider, made(provider, timeout=600) as sandbox:
            yield provider, sandbox


@pytest.fixture
def sandbox(box: tuple[LocalProvider, Sandbox]) -> Sandbox:
    return box[1]


@pytest.fixture
async def odd(sandbox: Sandbox) -> Sandbox:
    ran = await sandbox.python(_PREPARE)
    assert ran.exit_code == 0, ran
    return sandbox


async def test_a_special_file_is_refused_at_once(odd: Sandbox) -> None:
    """Read and written: never opened where opening waits or has an effect; what exists is not replaced by a write."""
    for name in ("pipe", "socket", "zero", "terminal", "memory", "loop", "magic"):
        path = {"path": f"/home/user/odd/{name}"}
        with anyio.fail_after(20):
            read = await odd.client.get("/files", params=path)
            written = await odd.client.post("/files", params=path, content=b"x")
        assert {read.status_code, written.status_code} <= {400, 403, 404}, (name, read, written)
        kept = await odd.run(f"test -L /home/user/odd/{name} -o -p /home/user/odd/{name} -o -S /home/user/odd/{name}")
        assert kept.exit_code == 0, name


async def test_special_files_are_listed_and_removed_like_any_other(odd: Sandbox) -> None:
    """None is opened for it, none is followed."""
    listed = await _rpc(odd, "ListDir", path="/home/user/odd")
    assert len(listed["entries"]) == 8
    assert _code(await _rpc(odd, "Remove", path="/home/user/odd")) == "ok"
    assert (await odd.run("test -e /home/user/odd; echo $?; wc -l < /etc/passwd")).stdout == "1\n3\n"


async def test_a_sparse_file_of_four_terabytes_takes_no_memory(
    odd: Sandbox, box: tuple[LocalProvider, Sandbox]
) -> None:
    """Faults F14: it is sent piece by piece, and whoever goes away has not made the keeper fat."""
    facts = (await box[0].inspect(InspectRequest(sandbox_id=odd.id))).facts
    keeper = int(facts["keeper_pid"])
    before = _resident(keeper)
    with anyio.fail_after(20):
        async with odd.client.stream("GET", "/files", params={"path": "/home/user/odd/sparse"}) as answer:
            assert answer.headers["content-length"] == str(1 << 42)
            async for _piece in answer.aiter_bytes():
                break
        assert (await odd.run("echo alive")).stdout == "alive\n"
    assert _resident(keeper) - before < 16384


async def test_odd_names_are_listed_as_text(sandbox: Sandbox) -> None:
    """Control characters are escaped on the wire; bytes that are no UTF-8 are replaced; nothing fails for one name."""
    code = f"import os\nos.mkdir('/home/user/n')\nfor name in {_NAMES!r}: open(b'/home/user/n/' + name, 'w').close()"
    assert (await sandbox.python(code)).exit_code == 0
    with anyio.fail_after(20):
        answer = await sandbox.client.post("/filesystem.Filesystem/ListDir", json={"path": "/home/user/n"})
    assert not {ord(character) for character in answer.text} & set(range(32))
    names = {entry["name"] for entry in json.loads(answer.text)["entries"]}
    assert names == {name.decode("utf-8", "replace") for name in _NAMES}
    read = await sandbox.client.get("/files", params={"path": "/home/user/n/new\nline"})
    assert read.status_code == 200
    assert _code(await _rpc(sandbox, "Remove", path="/home/user/n")) == "ok"


async def test_a_tree_that_is_deeper_than_a_path_is_long_holds_nothing_up(sandbox: Sandbox) -> None:
    """Listing ends at its depth, removing says why it cannot, and the keeper answers on."""
    code = """
import os
os.mkdir("/home/user/deep")
os.chdir("/home/user/deep")
for _ in range(600):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
"""
    assert (await sandbox.python(code)).exit_code == 0
    assert len((await _rpc(sandbox, "ListDir", path="/home/user/deep", depth=32))["entries"]) == 32
    assert _code(await _rpc(sandbox, "Remove", path="/home/user/deep")) != "ok"
    assert _code(await _rpc(sandbox, "CreateWatcher", path="/home/user/deep", recursive=True)) in (
        "ok",
        "unsupported_operation",
    )
    assert (await sandbox.run("rm -rf /home/user/deep; echo alive")).stdout == "alive\n"


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
