"""Records on disk, and what is done about those whose manager was killed."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cloche_contract.errors import BackendUnavailable, SandboxNotFound, SandboxStateConflict
from cloche_docker_manager.engine import Engine, find_engine
from cloche_docker_manager.owner import Owner, this_process
from cloche_docker_manager.prune import prune
from cloche_docker_manager.reconcile import reconcile
from cloche_docker_manager.registry import LABEL_MANAGER, Base, Record, Registry, State
from tests.docker_engine import BUSYBOX
from tests.packages.docker_manager.conftest import Bench


def record(name: str = "sbox-1", state: State = "ready", owner: Owner | None = None) -> Record:
    return Record(name, "/w", BUSYBOX, state, "token", owner, 1, 2, Base("/b", "/cloche/base", "sha256:0"))


def ended_owner() -> Owner:
    """A process that has been, and is no more."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        owner = Owner(process.pid, f"{boot}:{fields[19]}")
        assert owner.alive
    assert not owner.alive
    return owner


def test_records_are_read_back_whole_by_another_manager(tmp_path: Path) -> None:
    """Checklist 339: persisted, and sorted by id."""
    first = Registry(tmp_path)
    for name in ("sbox-b", "sbox-a"):
        first.put(record(name))
    second = Registry(tmp_path)
    assert second.all() == [record("sbox-a"), record("sbox-b")]
    assert second.manager == first.manager
    first.remove("sbox-a")
    with pytest.raises(SandboxNotFound):
        second.get("sbox-a")


def test_what_holds_a_token_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    """Systems 5.5: 0600; the token of a sandbox is in its record."""
    registry = Registry(tmp_path / "state")
    registry.put(record())
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state/records").iterdir()] == [0o600]


def test_a_damaged_record_hides_no_other_and_is_left_alone(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    registry.put(record("sbox-good"))
    damaged = tmp_path / "records/sbox-bad.json"
    damaged.write_text('{"version": 1, "id": "sbox-')
    assert [one.id for one in registry.all()] == ["sbox-good"]
    assert registry.knows("sbox-bad")
    assert damaged.exists()


def test_a_record_of_another_version_is_not_guessed_at(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    registry.put(record())
    path = tmp_path / "records/sbox-1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    assert registry.all() == []


@pytest.mark.parametrize("name", ["../x", "", "a/b", "a\0", "."])
def test_an_id_never_becomes_a_path_elsewhere(tmp_path: Path, name: str) -> None:
    """Checklist 336: ids have ASCII letters, digits and -_. alone."""
    with pytest.raises(SandboxNotFound):
        Registry(tmp_path).get(name)


def test_a_stop_in_the_middle_of_writing_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checklist 339: atomic."""
    registry = Registry(tmp_path)
    registry.put(record())
    for step in ("fsync", "rename"):
        with monkeypatch.context() as patched:
            patched.setattr(os, step, _stop)
            with pytest.raises(BackendUnavailable):
                registry.put(record(state="failed"))
        assert registry.all() == [record()]
        assert [path.name for path in (tmp_path / "records").iterdir()] == ["sbox-1.json"]


def _stop(*_arguments: object) -> None:
    raise OSError("stopped here")


def test_l9_a_process_number_that_was_used_again_is_another_owner() -> None:
    """Fault L9: number and start, never the number alone."""
    me = this_process()
    assert me.alive
    assert not Owner(me.pid, "another boot:1").alive
    assert not ended_owner().alive


@pytest.mark.parametrize("state", ["creating", "stopping"])
def test_a_record_that_somebody_works_on_is_refused_and_an_abandoned_one_taken(tmp_path: Path, state: State) -> None:
    """Checklist 340: destroy is refused in creating and stopping, and allowed from failed."""
    registry = Registry(tmp_path)
    registry.put(record(state=state, owner=this_process()))
    with pytest.raises(SandboxStateConflict) as told:
        registry.take("sbox-1", ("ready", "failed"), "stopping")
    assert told.value.details == {"state": state}
    registry.put(record(state=state, owner=ended_owner()))
    assert registry.take("sbox-1", ("ready", "failed"), "stopping").owner == this_process()


def test_a_record_that_cannot_be_written_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is the caller's to mend: cause and fix, not an internal error."""

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    registry = Registry(tmp_path)
    registry.put(record())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BackendUnavailable) as told:
        registry.settle(record(), "failed")
    assert told.value.details == {"cause": "docker_state_unusable"}
    assert registry.get("sbox-1") == record()


def test_a_state_directory_that_cannot_be_used_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendUnavailable) as told:
        Registry(tmp_path / "file")
    assert told.value.details == {"cause": "docker_state_unusable"}


def make_objects(bench: Bench, registry: Registry, one: Record) -> None:
    """What a creation has made in the engine before it ended."""
    api = bench.engine.api
    api.create_volume(one.volume, labels=registry.labels_of(one))
    api.create_container(BUSYBOX, ["/bin/busybox", "sleep", "60"], name=one.container, labels=registry.labels_of(one))


def names(bench: Bench) -> set[str]:
    """Every container and volume of the engine."""
    api = bench.engine.api
    found = {one["Names"][0].lstrip("/") for one in api.containers(all=True)}
    return found | {one["Name"] for one in api.volumes()["Volumes"] or ()}


def test_l7_l11_what_a_killed_manager_left_is_removed_at_the_next_start(bench: Bench) -> None:
    """Faults L7, L11; checklist 339: interrupted creations are rolled back, orphans go, by their label."""
    registry = Registry(Path(bench.environ["ABX_DOCKER_STATE_DIR"]))
    half_made, orphan = record("sbox-half", "creating", ended_owner()), record("sbox-orphan")
    registry.put(half_made)
    for one in (half_made, orphan):
        make_objects(bench, registry, one)
    engine = Engine(find_engine(bench.environ))
    try:
        reconcile(engine, registry)
    finally:
        engine.close()
    assert names(bench) == set()
    assert registry.all() == []


def test_l8_a_creation_in_progress_and_the_objects_of_others_are_left_alone(bench: Bench, tmp_path: Path) -> None:
    """Fault L8: by ownership, never by age or state."""
    registry = Registry(Path(bench.environ["ABX_DOCKER_STATE_DIR"]))
    mine, theirs = record("sbox-mine", "creating", this_process()), record("sbox-theirs")
    registry.put(mine)
    make_objects(bench, registry, mine)
    make_objects(bench, Registry(tmp_path / "another"), theirs)
    bench.engine.api.create_container(BUSYBOX, ["/bin/busybox", "true"], name="somebody")
    before = names(bench)
    assert prune(own_cache(bench, tmp_path), dry_run=False) == []
    assert names(bench) == before
    for name in ("somebody", mine.container, theirs.container):
        bench.engine.api.remove_container(name, force=True)
    for name in (mine.volume, theirs.volume):
        bench.engine.api.remove_volume(name)


def test_l18_a_ready_sandbox_whose_container_is_gone_becomes_failed(bench: Bench) -> None:
    """Fault L18; checklist 339."""
    registry = Registry(Path(bench.environ["ABX_DOCKER_STATE_DIR"]))
    registry.put(record())
    engine = Engine(find_engine(bench.environ))
    try:
        reconcile(engine, registry)
    finally:
        engine.close()
    assert registry.get("sbox-1").state == "failed"


def own_cache(bench: Bench, folder: Path) -> dict[str, str]:
    """What the other tests share is not pruned away."""
    return {**bench.environ, "ABX_DOCKER_CACHE_DIR": str(folder / "cache")}


def test_prune_tells_before_it_removes_what_nobody_uses(bench: Bench, tmp_path: Path) -> None:
    """Issue 7, part 6: orphans by label, and nothing else; a dry run removes nothing."""
    registry = Registry(Path(bench.environ["ABX_DOCKER_STATE_DIR"]))
    make_objects(bench, registry, record("sbox-orphan"))
    environ = own_cache(bench, tmp_path)
    told = prune(environ, dry_run=True)
    assert [one.kind for one in told if one.kind in ("container", "volume")] == ["container", "volume"]
    assert len(names(bench)) == 2
    assert [one for one in prune(environ, dry_run=False) if one.kind in ("container", "volume")] == told[:2]
    assert names(bench) == set()
    assert registry.labels == {LABEL_MANAGER: registry.manager}
