"""The folders of the provider, without a sandbox in them: where they are, and what a sweep removes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from cloche_local import idempotency, paths
from cloche_local.state import NEW_PREFIX, StateFolder, is_sandbox_id, try_lock

_RECORD: dict[str, object] = {
    "version": 1,
    "sandbox_id": "abc",
    "template": "base",
    "metadata": {},
    "started_at": 1.0,
    "keeper_pid": 1,
    "keeper_start": 1,
    "init_pid": 1,
    "idempotency": "",
    "runtime_folder": "/nowhere",
    "socket_name": "abc",
    "pids": 1,
    "disk_mb": 1,
    "memory_mb": None,
    "cpus": None,
    "namespaces": [],
    "users": "single",
    "binds": [],
}


def _plant(state: StateFolder, sandbox_id: str, record: object = _RECORD) -> Path:
    folder = Path(state.folder(sandbox_id))
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "deadline").write_text(json.dumps({"boot": time.clock_gettime(time.CLOCK_BOOTTIME) + 60, "wall": 1e9}))
    return folder


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    state = StateFolder(str(tmp_path / "state"))
    state.ensure()
    return state


def test_a_folder_is_alive_as_long_as_its_lock_is_held(state: StateFolder) -> None:
    """local-runtime, State: liveness is a try-lock."""
    folder = _plant(state, "abc")
    assert state.read("abc") is None
    with try_lock(str(folder / "lock")) as taken:
        assert taken
        record = state.read("abc")
        assert record is not None
        assert (record.template, record.expired) == ("base", False)
        assert [found.sandbox_id for found in state.records()] == ["abc"]
        assert state.sweep() == []
    assert state.sweep() == ["abc"]
    assert not folder.exists()


def test_a_sweep_removes_the_socket_too(state: StateFolder, tmp_path: Path) -> None:
    """L8: by ownership of the lock, not by age."""
    (tmp_path / "abc").touch()
    _plant(state, "abc", {**_RECORD, "runtime_folder": str(tmp_path)})
    assert state.sweep() == ["abc"]
    assert not (tmp_path / "abc").exists()


@pytest.mark.parametrize("broken", ["", "[]", "{", '{"sandbox_id": "abc"}', json.dumps({**_RECORD, "pids": "many"})])
def test_a_damaged_record_is_no_sandbox_and_no_crash(state: StateFolder, broken: str) -> None:
    """A machine that lost power in the middle of a write."""
    folder = _plant(state, "abc")
    (folder / "record.json").write_text(broken)
    with try_lock(str(folder / "lock")):
        assert state.records() == []
    assert state.sweep() == ["abc"]


def test_a_link_in_place_of_a_record_is_not_followed(state: StateFolder, tmp_path: Path) -> None:
    """S12: open with O_NOFOLLOW."""
    (tmp_path / "elsewhere").write_text(json.dumps(_RECORD))
    folder = _plant(state, "abc")
    (folder / "record.json").unlink()
    (folder / "record.json").symlink_to(tmp_path / "elsewhere")
    with try_lock(str(folder / "lock")):
        assert state.records() == []


def test_a_folder_in_the_making_is_left_alone_and_an_abandoned_one_is_not(state: StateFolder) -> None:
    """The name of a sandbox appears with its lock held; before that only age tells."""
    fresh = Path(state.path) / f"{NEW_PREFIX}fresh"
    stale = Path(state.path) / f"{NEW_PREFIX}stale"
    for folder in (fresh, stale):
        folder.mkdir()
        (folder / "lock").touch()
    os.utime(stale, (time.time() - 3600, time.time() - 3600))
    state.sweep()
    assert fresh.exists()
    assert not stale.exists()


@pytest.mark.parametrize("name", ["", ".", "..", ".mnt", "a/b", "A", "a-b", "a" * 65, "\x00", "é"])
def test_only_our_ids_become_folders(state: StateFolder, name: str) -> None:
    """S12: a name from outside never becomes a path."""
    assert not is_sandbox_id(name)
    with pytest.raises(ValueError, match="id"):
        state.folder(name)


def test_folders_follow_settings_then_xdg_then_home(tmp_path: Path) -> None:
    """local-runtime, State and Reach."""
    settings = {"local_state_dir": str(tmp_path / "s"), "local_runtime_dir": str(tmp_path / "r")}
    found = paths.find_paths(settings, {"XDG_STATE_HOME": "/x"}, host_root=False)
    assert (found.state, found.runtime) == (str(tmp_path / "s"), str(tmp_path / "r"))
    found = paths.find_paths({}, {"XDG_STATE_HOME": "/x", "XDG_RUNTIME_DIR": str(tmp_path)}, host_root=False)
    assert (found.state, found.runtime) == ("/x/cloche/local/v1", str(tmp_path / "cloche"))
    found = paths.find_paths({}, {"HOME": "/h", "XDG_STATE_HOME": "relative"}, host_root=False)
    assert found.state == "/h/.local/state/cloche/local/v1"
    assert found.runtime == f"/tmp/cloche-{os.geteuid()}"
    found = paths.find_paths({}, {"HOME": "/h"}, host_root=True)
    assert (found.runtime, found.range_slots) == ("/run/cloche", "/run/cloche/ids")


def test_an_idempotency_key_cannot_be_read_from_its_mark() -> None:
    """local-runtime, State: no keys in the record."""
    from cloche_contract.provider import CreateRequest

    request = CreateRequest(template="base", timeout=60, envs={"A": "secret"}, idempotency_key="key-1")
    key_hash, mark = idempotency.marks(request, "key-1")
    assert mark.startswith(f"{key_hash}:")
    assert "key-1" not in mark
    other = CreateRequest(template="base", timeout=61, envs={"A": "secret"}, idempotency_key="key-1")
    assert idempotency.marks(other, "key-1")[1] != mark
    assert idempotency.marks(other, "key-1")[0] == key_hash
