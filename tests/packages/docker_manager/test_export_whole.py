"""An export is whole or has not been: whatever fails at whatever step, the destination is as it was."""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.errors import DestinationUnusable
from cloche_docker_manager import apply, staging
from cloche_docker_manager.drafts import Drafts
from cloche_docker_manager.exchange import exchange
from cloche_docker_manager.settings import ManagerSettings
from tests.packages.docker_manager.lying_agent import (
    exported,
    lay_out_destination,
    left_in,
    named,
    settings_in,
    stream,
    tree,
)

ROOT = Path(__file__).parents[3]
# Clears, deletes, replaces a link by a folder, a file by another, and adds some of each kind.
EVERYTHING = stream(
    named("clear", b"kept"),
    named("delete", b"gone"),
    named("folder", b"away"),
    named("file", b"away/file", b"mine"),
    named("folder", b"kept", mode=0o750),
    named("file", b"kept/.dotfile", b"winner"),
    named("folder", b"new"),
    named("folder", b"new/er", mode=0o500),
    named("file", b"new/er/file", b"x" * 100_000),
    named("file", b"plain", b"after"),
    named("symlink", b"zlink", target=base64.b64encode(b"kept/.dotfile").decode()),
)
PLACED = {".", "away", "away/file", "kept", "kept/.dotfile", "new", "new/er", "new/er/file", "plain", "zlink"}


@pytest.fixture
def settings(tmp_path: Path) -> ManagerSettings:
    return settings_in(tmp_path)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    folder = lay_out_destination(tmp_path)
    (folder / "gone").mkdir()
    (folder / "gone/file").write_text("gone\n")
    (folder / "plain").write_text("before\n")
    os.utime(folder / "gone", ns=(7, 7))
    return folder


class Failing:
    """Calls that change the file system, of which the n-th one fails."""

    def __init__(self, at: int) -> None:
        self.calls = 0
        self._at = at

    def of(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named_arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **named_arguments)

        return call


CALLS = ("mkdir", "rename", "symlink", "pwrite", "fchmod", "utime", "ftruncate")


def _cannot(*_arguments: object) -> int:
    return 0


async def _with_failure(
    monkeypatch: pytest.MonkeyPatch, at: int, place: Path, settings: ManagerSettings
) -> tuple[bool, int]:
    failing = Failing(at)
    with monkeypatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, failing.of(getattr(os, name)))
        patched.setattr(staging, "exchange", failing.of(exchange))
        patched.setattr(apply, "_copy_in_kernel", _cannot)
        try:
            await exported(patched, EVERYTHING, place, settings)
        except DestinationUnusable:
            return False, failing.calls
    return True, failing.calls


async def test_a_disk_that_is_full_at_any_step_leaves_the_folder_as_it_was(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Issue 7, part 5; checklist 345: content, modes and times of everything, and nothing left beside it."""
    before = tree(dest.parent)
    done, at = False, 0
    while not done:
        at += 1
        # Notes and drafts of this export are made by the same calls: those before the first step fail as well.
        done, _calls = await _with_failure(monkeypatch, at, dest, settings)
        if not done:
            assert tree(dest.parent) == before, at
            assert left_in(settings) == []
    assert at > 30
    assert set(tree(dest)) == PLACED
    assert (dest / "away/file").read_text() == "mine"
    assert (dest.parent / "outside/file").read_text() == "outside\n"


async def test_a_new_folder_appears_when_it_is_whole_and_else_not_at_all(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Issue 7, part 5: written beside its place, then renamed."""
    place, before = dest.parent / "fresh", set(os.listdir(dest.parent))
    done, at = False, 0
    while not done:
        at += 3
        done, _calls = await _with_failure(monkeypatch, at, place, settings)
        assert set(os.listdir(dest.parent)) == (before | {"fresh"} if done else before)
    assert at > 20
    assert set(tree(place)) == PLACED


async def test_the_same_export_again_touches_nothing(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Checklist 343: zero bytes, and not even a time of a folder changes."""
    await exported(monkeypatch, EVERYTHING, dest, settings)
    before, inodes = tree(dest), {path: path.lstat().st_ino for path in dest.rglob("*")}
    again = (await exported(monkeypatch, EVERYTHING, dest, settings)).written
    assert (again.files, again.symlinks, again.bytes, again.deletes) == (0, 0, 0, 0)
    assert tree(dest) == before
    assert {path: path.lstat().st_ino for path in dest.rglob("*")} == inodes


async def test_a_path_whose_kind_has_changed_is_written_once(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Checklist 342, 343: deleted first and written again, a rerun finds it as it shall be."""
    data = stream(
        named("delete", b"gone"),
        named("delete", b"plain"),
        named("file", b"gone", b"now a file"),
        named("folder", b"plain"),
        named("file", b"plain/inside", b"now a folder"),
    )
    first = (await exported(monkeypatch, data, dest, settings)).written
    assert (first.deletes, first.files) == (2, 2)
    assert ((dest / "gone").read_text(), (dest / "plain/inside").read_text()) == ("now a file", "now a folder")
    (dest / "plain/more").write_text("not of the sandbox")
    again = (await exported(monkeypatch, data, dest, settings)).written
    assert (again.deletes, again.files) == (0, 0)
    assert os.listdir(dest / "plain") == ["inside"]


def test_two_entries_change_places_also_where_the_kernel_cannot_do_it_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """renameat2(2): EINVAL where the file system does not know RENAME_EXCHANGE."""
    for one_step in (True, False):
        if not one_step:
            monkeypatch.setattr("cloche_docker_manager.exchange._libc", object())
        (tmp_path / "a").write_text("a")
        (tmp_path / "b").mkdir(exist_ok=True)
        fd = os.open(tmp_path, os.O_RDONLY)
        exchange(fd, b"a", fd, b"b")
        assert ((tmp_path / "a").is_dir(), (tmp_path / "b").read_text()) == (True, "a")
        with pytest.raises(FileNotFoundError):
            exchange(fd, b"none", fd, b"b")
        exchange(fd, b"a", fd, b"b")
        os.close(fd)
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]


_FILL = """
import sys
from pathlib import Path
import pytest, anyio
from tests.packages.docker_manager.lying_agent import exported, left_in, named, settings_in, stream, tree
from cloche_contract.errors import DestinationUnusable

async def main(folder: Path, kind: str) -> None:
    settings = settings_in(folder)
    small = folder / "small"
    place = small / "dest"
    if kind == "dir":
        place.mkdir()
        (place / "file").write_text("before")
    before = tree(small)
    large = [named("file", b"f%d" % n, bytes([65 + n]) * 300_000) for n in range(9)]
    data = stream(*large, named("file", b"file", b"after"))
    with pytest.MonkeyPatch.context() as patched:
        try:
            await exported(patched, data, place, settings, kind if kind != "fresh" else "dir")
        except DestinationUnusable:
            assert {**tree(small), ".": before["."]} == before
            assert left_in(settings) == []
            print("as it was")

anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.parametrize("kind", ["dir", "fresh", "tar"])
def test_a_real_disk_that_fills_half_way_keeps_what_it_had(tmp_path: Path, kind: str) -> None:
    """Issue 7, part 5: a file system of one megabyte and an export of three."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine")
    (tmp_path / "small").mkdir()
    mount = f'mount -t tmpfs -o size=1m none {tmp_path}/small && exec "$@"'
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = [sys.executable, "-c", _FILL, str(tmp_path), kind]
    command = ["unshare", *user, "--mount", "sh", "-c", mount, "sh", *inside]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "as it was\n", done.stderr


_KILLED = """
import os, signal, sys
from pathlib import Path
import anyio, pytest
from cloche_docker_manager import apply, archive, staging
from tests.packages.docker_manager import lying_agent
from tests.packages.docker_manager.test_export_whole import EVERYTHING
from cloche_docker_manager.settings import read_settings

calls = 0
def deadly(real):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call

async def main(folder: Path) -> None:
    settings = read_settings({"HOME": f"{folder}/home", "ABX_DOCKER_STATE_DIR": f"{folder}/state"})
    for name in ("mkdir", "rename", "symlink", "pwrite", "fchmod"):
        setattr(os, name, deadly(getattr(os, name)))
    staging.exchange = deadly(staging.exchange)
    kind = "tar" if sys.argv[2].endswith(".tar") else "dir"
    with pytest.MonkeyPatch.context() as patched:
        await lying_agent.exported(patched, EVERYTHING, Path(sys.argv[2]), settings, kind)

anyio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.soak
def test_l7_a_manager_killed_while_it_exports_leaves_no_draft_and_no_file_in_part(
    tmp_path: Path, dest: Path, settings: ManagerSettings, seed: int, scale: int
) -> None:
    """Issue 7: the next start removes what was being written; each file is the old or the new one."""
    import random

    choose = random.Random(seed)
    archive = dest.parent / "out.tar"
    for turn in range(3 * scale):
        place = (dest, dest.parent / f"fresh{turn}", archive)[turn % 3]
        archive.write_text("the one before")
        moment = choose.randint(1, 40 if place == dest else 8)
        arguments = [sys.executable, "-c", _KILLED, str(tmp_path), str(place), str(moment)]
        killed = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
        assert killed.returncode in (-signal.SIGKILL, 0), killed.stderr
        Drafts(settings.state_dir).sweep()
        names = {path.name for path in dest.parent.rglob("*")}
        assert not [name for name in names if name.startswith(".cloche-export-")], moment
        assert left_in(settings) == []
        assert (dest / "plain").read_text() in ("before\n", "after")
        if place != dest and killed.returncode:
            assert not (dest.parent / f"fresh{turn}").exists() or set(tree(place)) == PLACED
        assert archive.read_text() == "the one before" or place == archive


def test_a_note_that_names_another_file_removes_nothing(settings: ManagerSettings, dest: Path) -> None:
    """What is removed has a name that an export gives; notes of managers that live are left alone."""
    before = tree(dest)
    notes = settings.state_dir / "drafts"
    notes.mkdir()
    for name in (".cloche-export-x.json", ".cloche-export-..json", f".cloche-export-{'0' * 16}.json"):
        (notes / name).write_text(json.dumps({"parent": str(dest), "owner": {"pid": 1, "started": "never"}}))
    with Drafts(settings.state_dir).noted(dest) as draft:
        (dest / draft).mkdir()
        Drafts(settings.state_dir).sweep()
        assert (dest / draft).is_dir()
        (dest / draft).rmdir()
    assert set(tree(dest)) == set(before)
