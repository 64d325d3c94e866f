"""The shared base, without an engine: the same content once, and never a copy of something that changed meanwhile."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.errors import BaseUnusable, WorkspaceNotFound
from cloche_docker_manager import base
from cloche_docker_manager.base import ensure_base


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "sub/empty").mkdir(parents=True)
    (folder / "sub/script").write_text("#!/bin/sh\n")
    (folder / "sub/script").chmod(0o755)
    (folder / "link").symlink_to("sub/script")
    (folder / "dangling").symlink_to("/nowhere")
    os.utime(folder / "sub/script", ns=(1, 1_234_567_890_123_456_789))
    (folder / "sub/empty").chmod(0o500)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_the_same_content_is_the_same_base_and_an_unchanged_workspace_is_not_read_again(
    workspace: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 241, 252: by content; and where nothing has changed no file is opened."""
    first = ensure_base(cache, str(workspace))
    twin = workspace.parent / "twin"
    subprocess.run(["cp", "-a", workspace, twin], check=True)
    assert ensure_base(cache, str(twin)) == first
    with monkeypatch.context() as patched:
        patched.setattr(base, "_copy", _never)
        assert ensure_base(cache, str(workspace)) == first
    assert first.root_hash.startswith("sha256:")
    assert [path.name for path in (cache / "bases").iterdir() if not path.name.startswith(".")] == [
        first.root_hash.removeprefix("sha256:")
    ]


def _never(*_arguments: object) -> str:
    raise AssertionError("a file was read")


def test_a_copy_has_the_content_modes_times_and_links_of_the_original(workspace: Path, cache: Path) -> None:
    """Systems X9: not permissions alone."""
    copy = ensure_base(cache, str(workspace)).folder
    script = (copy / "sub/script").stat()
    assert (stat.S_IMODE(script.st_mode), script.st_mtime_ns) == (0o755, 1_234_567_890_123_456_789)
    assert os.readlink(copy / "link") == "sub/script"
    assert os.readlink(copy / "dangling") == "/nowhere"
    assert stat.S_IMODE((copy / "sub/empty").stat().st_mode) == 0o500
    for name in ("sub", "sub/empty", "link"):
        assert (copy / name).lstat().st_mtime_ns == (workspace / name).lstat().st_mtime_ns


def test_a_sparse_file_stays_sparse_and_attributes_are_kept(workspace: Path, cache: Path) -> None:
    with (workspace / "sparse").open("wb") as stream:
        stream.truncate(64 << 20)
        stream.seek(1 << 20)
        stream.write(b"in the middle")
    try:
        os.setxattr(workspace / "sparse", "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no attributes")
    copy = ensure_base(cache, str(workspace)).folder / "sparse"
    assert copy.stat().st_size == 64 << 20
    assert copy.stat().st_blocks * 512 < 8 << 20
    assert copy.read_bytes()[1 << 20 : (1 << 20) + 13] == b"in the middle"
    assert os.getxattr(copy, "user.note") == b"kept"


@pytest.mark.parametrize("change", ["size", "mtime", "ctime", "inode", "mode", "new name"])
def test_every_kind_of_change_makes_a_base_of_its_own_or_is_read_again(
    workspace: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Issue 7: change detection by size, mtime_ns, ctime_ns and inode."""
    first = ensure_base(cache, str(workspace))
    script = workspace / "sub/script"
    facts = script.stat()
    match change:
        case "size":
            script.write_text("#!/bin/sh -e\n")
        case "mtime" | "ctime":
            # The same size and time as before, put back after a change of content: only ctime tells.
            script.write_text("#!/bin/ba\n")
            os.utime(script, ns=(facts.st_atime_ns, facts.st_mtime_ns + (change == "mtime")))
        case "inode":
            other = workspace.parent / "other"
            other.write_text("#!/bin/ba\n")
            other.rename(script)
        case "mode":
            script.chmod(0o644)
        case _:
            script.rename(workspace / "sub/renamed")
    assert ensure_base(cache, str(workspace)).root_hash != first.root_hash


def test_ten_at_once_build_it_once(workspace: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 7: built once under races."""
    built: list[int] = []
    real = base._copy  # pyright: ignore[reportPrivateUsage]

    def counted(source: int, target: int, entries: Any) -> str:
        built.append(1)
        return real(source, target, entries)

    monkeypatch.setattr(base, "_copy", counted)
    with ThreadPoolExecutor(10) as pool:
        found = {one.result() for one in [pool.submit(ensure_base, cache, str(workspace)) for _ in range(10)]}
    assert (len(found), len(built)) == (1, 1)


@pytest.mark.parametrize("kind", ["fifo", "socket", "changing", "appearing"])
def test_what_cannot_be_copied_is_named_and_nothing_is_left(
    workspace: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Systems 5.5: any special, unreadable or changing file aborts the build."""
    real = base._copy  # pyright: ignore[reportPrivateUsage]

    def disturbed(source: int, target: int, entries: Any) -> str:
        found = real(source, target, entries)
        (workspace / "sub" / ("script" if kind == "changing" else os.urandom(4).hex())).write_text(os.urandom(8).hex())
        return found

    match kind:
        case "fifo":
            os.mkfifo(workspace / "pipe")
        case "socket":
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(f"/proc/self/fd/{os.open(workspace, os.O_PATH)}/s")
            listening.close()
        case _:
            monkeypatch.setattr(base, "_copy", disturbed)
    with pytest.raises(BaseUnusable) as told:
        ensure_base(cache, str(workspace))
    assert told.value.details == {"reason": "special_file" if kind in ("fifo", "socket") else "changing"}
    assert [path.name for path in (cache / "bases").iterdir() if not path.name.endswith(".lock")] == []


def test_a_workspace_that_is_not_there_is_a_typed_error(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceNotFound):
        ensure_base(cache, str(tmp_path / "nowhere"))
