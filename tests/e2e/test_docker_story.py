"""Many agents on one project, from the first call of a client to the last byte on the host."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import shutil
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_agentd._gen import wire
from cloche_docker_manager.registry import Record
from tests import docker_engine
from tests.docker_engine import PYTHON
from tests.packages.docker_manager.conftest import manager_environ
from tests.packages.docker_manager.managed import ask, registry_of, run
from tests.packages.docker_manager.test_server import client
from tests.packages.docker_manager.unpacked import unpack

FILES = 5_000
Facts = dict[str, tuple[int, int, str]]

# Runs in a sandbox: kind with mode, time, and hash of content or target, of everything below the project.
_TELLER = """
import base64, hashlib, json, os, stat
found = {}
for folder, folders, files in os.walk(b"/workspace"):
    for name in folders + files:
        path = os.path.join(folder, name); facts = os.lstat(path); data = b""
        if stat.S_ISLNK(facts.st_mode): data = os.readlink(path)
        elif stat.S_ISREG(facts.st_mode): data = open(path, "rb").read()
        key = base64.b64encode(path[len(b"/workspace/"):]).decode()
        found[key] = [facts.st_mode, facts.st_mtime_ns, hashlib.sha256(data).hexdigest()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def engine_url() -> Generator[str]:
    if reason := docker_engine.missing():
        pytest.skip(reason)
    with docker_engine.running_engine() as engine:
        docker_engine.import_python(engine)
        yield engine.url


@pytest.fixture
def environ(engine_url: str, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "workspaces").mkdir()
    return manager_environ(engine_url, tmp_path, tmp_path / "cache")


def lay_out_project(folder: Path) -> None:
    """Five thousand files in fifty folders, each with a mode and a time of its own, and some that are special."""
    for number in range(FILES):
        path = folder / f"module{number % 50}/file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line one of {number}\nline two\nline three\nline four\n")
        path.chmod(0o755 if number % 7 == 0 else 0o644)
        os.utime(path, ns=(0, 1_600_000_000_000_000_001 + number * 1_000_000_007))
    (folder / "link").symlink_to("module1/file1.txt")
    (folder / "odd\nname é").write_bytes(bytes(range(256)))


def facts_below(folder: Path) -> Facts:
    """The same as the teller tells inside."""
    found: Facts = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        data = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
        if stat.S_ISREG(facts.st_mode):
            data = path.read_bytes()
        name = base64.b64encode(os.fsencode(path.relative_to(folder))).decode()
        found[name] = (facts.st_mode, facts.st_mtime_ns, hashlib.sha256(data).hexdigest())
    return found


async def merged_view(record: Record) -> Facts:
    """What a new session shows."""
    told = await run(record, python(_TELLER), timeout_s=60)
    assert told["exitCode"] == 0, told
    return {path: (mode, time_ns, digest) for path, (mode, time_ns, digest) in json.loads(told["stdout"]).items()}


def in_seconds(facts: Facts) -> Facts:
    """Archives keep times to the second; links there have no mode of their own."""
    return {path: (mode, time_ns // 1_000_000_000, digest) for path, (mode, time_ns, digest) in facts.items()}


# What agents do runs in the project, as Python: the image has nothing else.
AGENTS = {
    # Disjoint work, and different lines of a file that another one changes as well.
    "docs": """
os.mkdir("docs"); write("docs/README", "about"); os.chmod("docs/README", 0o600)
shutil.rmtree("module3"); os.unlink("link"); os.symlink("docs", "link")
edit("module1/file1.txt", "line one", "LINE ONE")
write("holes", ""); os.truncate("holes", 300_000)
os.utime("module2/file2.txt", (0, 1_000_000_000))
""",
    "code": """
edit("module1/file1.txt", "line four", "LINE FOUR"); write("module2/file52.txt", "ours")
shutil.rmtree("module4"); os.mkdir("module4"); write("module4/only", "again")
os.rename("module5/file5.txt", "module6/moved"); os.chmod("module7/file7.txt", 0o4755)
""",
    # Changes what `code` changes too.
    "late": """write("module2/file52.txt", "theirs"); write("lost", "lost")""",
}
_TOOLS = """
import os, shutil
from pathlib import Path
def write(path, text): Path(path).write_text(text)
def edit(path, old, new): write(path, Path(path).read_text().replace(old, new))
"""


def python(program: str) -> str:
    """The shell command that runs it."""
    return f"python3 -c {shlex.quote(program)}"


async def test_three_agents_work_on_one_project_and_the_host_gets_what_they_made_of_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """Issue 7: publish, conflict, squash with live sessions, dir and tar-zst; byte for byte the merged view."""
    project = tmp_path / "workspaces/project"
    lay_out_project(project)
    before = facts_below(project)
    with anyio.fail_after(240):
        async with client(environ) as session:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, result.structured_content
                return result.structured_content or {}

            made = await call("create_sandbox", image=PYTHON, workspace_root=str(project))
            record = registry_of(environ).get(made["id"])
            try:
                await _the_work(record)
                squashed = await call("squash_layerstacks", sandbox_id=record.id)
                dispositions = {one["session_id"]: one["disposition"] for one in squashed["swept_sessions"]}
                # `late` has read the base alone; `idle` what the others have published.
                assert dispositions == {"late": "identity", "idle": "migrated"}
                assert [one["replaced_layers"] for one in squashed["squashed_blocks"]] == ["reclaimed"]
                assert (await run(record, "cat module2/file52.txt", session="late"))["stdout"] == "theirs"
                view = await merged_view(record)
                folder, archive = tmp_path / "out", tmp_path / "out.tar.zst"
                shutil.copytree(project, folder, symlinks=True)
                told = await call("export_changes", sandbox_id=record.id, dest=str(folder))
                assert sorted(told["live_workspace_sessions"]) == ["idle", "late"]
                assert (told["deletes_applied"], told["opaque_clears_applied"]) == (2, 1)
                assert _without_set_ids(view) == facts_below(folder)
                await call("export_changes", sandbox_id=record.id, dest=str(archive), format="tar-zst")
                shutil.copytree(project, tmp_path / "unpacked", symlinks=True)
                unpack(archive, tmp_path / "unpacked")
                assert in_seconds(_without_set_ids(view)) == in_seconds(facts_below(tmp_path / "unpacked"))
            finally:
                await call("destroy_sandbox", sandbox_id=record.id)
    assert facts_below(project) == before


async def _the_work(record: Record) -> None:
    """Three agents work at the same time in sessions of their own; two are published, the third is in conflict."""
    for name in AGENTS:
        await ask(record, wire.LAYERS_CREATE_SESSION, {"session_id": name})

    async def work(name: str) -> None:
        done = await run(record, python(_TOOLS + AGENTS[name]), session=name)
        assert (done["exitCode"], done["stderr"]) == (0, ""), done

    async with anyio.create_task_group() as agents:
        for name in AGENTS:
            agents.start_soon(work, name)
    for name in ("docs", "code"):
        published = await ask(record, wire.LAYERS_PUBLISH_SESSION, {"session_id": name})
        assert published["outcome"] == "published", published
    refused = await ask(record, wire.LAYERS_PUBLISH_SESSION, {"session_id": "late"})
    assert (refused["outcome"], refused["reject_class"]) == ("rejected", "source_conflict")
    await ask(record, wire.LAYERS_CREATE_SESSION, {"session_id": "idle"})
    assert (await run(record, "cat module1/file1.txt", session="idle"))["stdout"].splitlines() == [
        *("LINE ONE of 1", "line two", "line three", "LINE FOUR"),
    ]


def _without_set_ids(facts: Facts) -> Facts:
    return {path: (mode & ~0o7000, time_ns, digest) for path, (mode, time_ns, digest) in facts.items()}
