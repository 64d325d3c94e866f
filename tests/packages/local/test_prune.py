"""`prune` removes what is dead, tells what it was, and touches nothing alive and nothing of others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import TemplateNotFound
from cloche_contract.provider import CreateRequest, KillRequest, ListRequest, PruneRequest
from cloche_local import templates
from cloche_local.limits import find_hierarchy
from cloche_local.provider import LocalProvider
from cloche_local.state import StateFolder, try_lock
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened

_OLD = time.time() - 40 * 86400


def _plant(path: Path, *, old: bool = True) -> Path:
    """A folder with something in it, by default from long ago."""
    path.mkdir(parents=True)
    (path / "lock").touch()
    (path / "file").write_bytes(b"x" * 5000)
    if old:
        os.utime(path, (_OLD, _OLD))
    return path


async def _prune(provider: LocalProvider, *, dry_run: bool = False, logs_older_than: int = 604800) -> dict[str, str]:
    result = await provider.prune(PruneRequest(dry_run=dry_run, logs_older_than=logs_older_than))
    assert result.failed == []
    assert result.size == sum(each.size for each in result.removed)
    return {each.path: each.kind for each in result.removed}


async def test_l8_everything_dead_goes_and_everything_alive_stays(
    provider: LocalProvider, sandbox: Sandbox, folder: Path
) -> None:
    """L8: by the lock that a keeper holds, not by age or by a state that is written down."""
    state, run = folder / "state", folder / "run"
    planted = {
        "sandbox": _plant(state / "dead1"),
        "unfinished": _plant(state / ".new-stale"),
        "template": _plant(state / ".skeleton-base-ffff"),
    }
    log = state / ".logs" / "dead2.jsonl"
    log.write_text('{"seq":1,"time":1,"event":"ended"}\n')
    os.utime(log, (_OLD, _OLD))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(run / "dead3"))
    os.utime(run / "dead3", (_OLD, _OLD))
    expected = {str(path): kind for kind, path in planted.items()} | {str(log): "log", str(run / "dead3"): "socket"}
    kept = [_plant(state / ".new-fresh", old=False), _plant(state / "Not-an-id"), run / sandbox.id]
    kept += [state / sandbox.id, state / ".logs" / f"{sandbox.id}.jsonl"]
    assert await _prune(provider, dry_run=True) == expected
    assert all(Path(path).exists() for path in expected)
    assert await _prune(provider) == expected
    assert not any(Path(path).exists() for path in expected)
    assert all(path.exists() for path in kept)
    assert await _prune(provider) == {}
    assert (await sandbox.run("echo alive; cat /etc/hostname")).stdout == "alive\nsandbox\n"


async def test_a_locked_folder_is_alive_however_old_and_damaged(provider: LocalProvider, folder: Path) -> None:
    await provider.prune(PruneRequest())
    state = folder / "state"
    StateFolder(str(state)).ensure()
    _plant(state / "locked1")
    _plant(state / ".new-locked2")
    with try_lock(str(state / "locked1" / "lock")), try_lock(str(state / ".new-locked2" / "lock")):
        assert await _prune(provider) == {}
    assert set(await _prune(provider)) == {str(state / "locked1"), str(state / ".new-locked2")}


_HOLDER = """
import os, sys
from cloche_local import templates
folder, is_root = sys.argv[1], sys.argv[2] == "True"
plan = templates.plan_root(templates.find_template("base"), folder, host_root=is_root)
assert templates.hold(plan.skeleton)
print(plan.skeleton, flush=True)
sys.stdin.read()
"""


async def test_a_template_in_use_by_a_server_stays_without_a_sandbox(folder: Path) -> None:
    """Between planning a sandbox and its record there is nothing that names the template but its lock."""
    provider = make_provider(folder)
    StateFolder(str(folder / "state")).ensure()
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder / "state"), str(HOST_ROOT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        skeleton = holder.stdout.readline().strip()
        assert await _prune(provider) == {}
        holder.communicate()
    assert await _prune(provider) == {skeleton: "template"}


def test_a_template_that_was_removed_is_not_held(tmp_path: Path) -> None:
    """Whoever wants it then writes a new one."""
    folder = tmp_path / ".skeleton-base-1"
    assert not templates.hold(str(folder))
    folder.mkdir()
    assert templates.hold(str(folder))
    folder.rename(tmp_path / "gone")
    assert not templates.hold(str(folder))
    folder.mkdir()
    assert templates.hold(str(folder))


async def test_creates_and_prunes_at_once_do_each_other_no_harm(folder: Path, usable: None) -> None:
    """Issue 3, part 7: idempotent, and concurrent with creates: every sandbox works, whatever was removed meanwhile."""
    done = False

    async def prune_on() -> None:
        provider = make_provider(folder)
        while not done:
            await _prune(provider, logs_older_than=0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prune_on)
        tasks.start_soon(prune_on)
        for _ in range(5):
            async with opened(make_provider(folder)) as provider, made(provider) as sandbox:
                assert (await sandbox.run("cat /etc/hostname")).stdout == "sandbox\n"
                await provider.kill(KillRequest(sandbox_id=sandbox.id))
        done = True


async def test_sockets_and_groups_of_another_state_folder_are_not_ours(folder: Path, usable: None) -> None:
    """The folder of sockets is one for the whole host: a socket that somebody answers on stays."""
    other = folder / "other"
    async with opened(make_provider(other, local_runtime_dir=str(folder / "run"))) as theirs, made(theirs) as sandbox:
        os.utime(folder / "run" / sandbox.id, (_OLD, _OLD))
        ours = make_provider(folder)
        assert await _prune(ours) == {}
        assert (await sandbox.run("echo here")).stdout == "here\n"


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user makes no control groups here")
async def test_an_empty_control_group_goes(provider: LocalProvider, sandbox: Sandbox) -> None:
    """L8, of what a keeper left that was killed with its zygote."""
    hierarchy = find_hierarchy("/sys/fs/cgroup")
    if not hierarchy.holds("pids"):
        pytest.skip("this machine has no pids controller for us")
    group = Path(hierarchy.folders["pids"]) / "cloche-deadgroup1"
    group.mkdir()
    os.utime(group, (_OLD, _OLD))
    try:
        found = await _prune(provider)
    finally:
        if group.exists():
            group.rmdir()
    assert found == {str(group): "control_group"}


async def test_state_of_an_older_version_goes_when_nothing_in_it_lives(tmp_path: Path) -> None:
    """Newer ones are not ours to judge; a folder that is no version is none of ours."""
    provider = make_provider(tmp_path, local_state_dir=str(tmp_path / "local" / "v1"))
    for name in ("v0", "v2", "vault", "v0x"):
        _plant(tmp_path / "local" / name / "abc")
    (tmp_path / "local" / "v1").mkdir()
    with try_lock(str(tmp_path / "local" / "v0" / "abc" / "lock")):
        assert await _prune(provider) == {}
    assert await _prune(provider) == {str(tmp_path / "local" / "v0"): "old_state"}
    assert sorted(os.listdir(tmp_path / "local")) == ["v0x", "v1", "v2", "vault"]


async def test_links_lead_nowhere(tmp_path: Path) -> None:
    """A name that points elsewhere is neither followed nor measured."""
    outside = _plant(tmp_path / "outside")
    provider = make_provider(tmp_path)
    StateFolder(str(tmp_path / "state")).ensure()
    for name in ("abc", ".new-abc", ".skeleton-abc"):
        (tmp_path / "state" / name).symlink_to(outside)
    (_plant(tmp_path / "state" / "dead") / "inner").symlink_to(outside)
    result = await provider.prune(PruneRequest())
    assert [each.path for each in result.removed] == [str(tmp_path / "state" / "dead")]
    assert result.size < 100_000
    assert (outside / "file").stat().st_size == 5000


async def test_a_folder_that_is_not_there_is_nothing_to_prune(tmp_path: Path) -> None:
    assert await _prune(make_provider(tmp_path)) == {}


async def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make_provider(tmp_path)
    StateFolder(str(tmp_path / "state")).ensure()
    dead = _plant(tmp_path / "state" / "dead")

    def refuse(_path: str, *, ignore_errors: bool) -> None:
        assert ignore_errors

    monkeypatch.setattr("shutil.rmtree", refuse)
    result = await provider.prune(PruneRequest())
    assert (result.removed, [each.path for each in result.failed], result.size) == ([], [str(dead)], 0)


async def test_a_create_that_is_refused_leaves_nothing_to_prune(folder: Path, usable: None) -> None:
    async with opened(make_provider(folder)) as provider:
        with pytest.raises(TemplateNotFound):
            await provider.create(CreateRequest(template="no-such", timeout=60))
        assert (await provider.list(ListRequest())).sandboxes == []
        assert await _prune(provider) == {}
