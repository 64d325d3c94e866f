"""Finding an engine and telling what is wrong with it: without one where possible, on a real one where not."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

import pytest

from cloche_contract.errors import BackendUnavailable, ImageNotFound
from cloche_docker_manager.doctor import diagnose
from cloche_docker_manager.engine import Engine, Place, find_engine
from tests import docker_engine
from tests.docker_engine import BUSYBOX, PYTHON
from tests.packages.docker_manager.conftest import Bench


@pytest.fixture
def docker_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose Docker context `elsewhere` is the chosen one."""
    folder = tmp_path / ".docker/contexts/meta" / hashlib.sha256(b"elsewhere").hexdigest()
    folder.mkdir(parents=True)
    endpoint = {"Host": f"unix://{tmp_path}/elsewhere.sock", "SkipTLSVerify": False}
    meta = {"Name": "elsewhere", "Metadata": {}, "Endpoints": {"docker": endpoint}}
    (folder / "meta.json").write_text(json.dumps(meta))
    (tmp_path / ".docker/config.json").write_text('{"currentContext": "elsewhere"}')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    return tmp_path


def test_e22_docker_host_wins_over_the_chosen_context(docker_home: Path) -> None:
    """Fault E22: what Docker's own client would use is used."""
    assert find_engine({"DOCKER_HOST": "unix:///x.sock"}) == Place("unix:///x.sock", "DOCKER_HOST")


def test_e22_the_chosen_context_is_honoured(docker_home: Path) -> None:
    """Fault E22."""
    found = find_engine({})
    assert (found.url, found.said_by) == (f"unix://{docker_home}/elsewhere.sock", "Docker context")


def test_e22_an_unknown_context_is_a_typed_error(docker_home: Path) -> None:
    """Fault E22; never silently another engine than the one that is named."""
    with pytest.raises(BackendUnavailable) as told:
        find_engine({"DOCKER_CONTEXT": "nowhere"})
    assert told.value.details == {"cause": "docker_context_unknown"}


def test_e22_rootless_docker_is_found_where_there_is_no_other(
    docker_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault E22: the socket of rootless Docker lies below XDG_RUNTIME_DIR."""
    (docker_home / "docker.sock").touch()
    there = Path.exists

    def exists(path: Path) -> bool:
        return str(path) != "/var/run/docker.sock" and there(path)

    monkeypatch.setattr(Path, "exists", exists)
    found = find_engine({"DOCKER_CONTEXT": "default", "XDG_RUNTIME_DIR": str(docker_home)})
    assert found.url == f"unix://{docker_home}/docker.sock"


def test_e23_no_engine_gives_one_line_of_cause_and_fix(tmp_path: Path) -> None:
    """Fault E23: no stack trace, and what to do."""
    with pytest.raises(BackendUnavailable) as told:
        Engine(Place(f"unix://{tmp_path}/docker.sock", "DOCKER_HOST"))
    assert told.value.details == {"cause": "docker_not_running"}
    assert "DOCKER_HOST" in told.value.hint


def test_e23_a_socket_of_somebody_else_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault E23: being refused is another thing than nobody being there."""

    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(BackendUnavailable) as told:
        Engine(Place(f"unix://{tmp_path}/docker.sock", "DOCKER_HOST"))
    assert told.value.details == {"cause": "docker_access_denied"}


def test_e23_the_doctor_names_what_is_missing_and_where_it_looked(tmp_path: Path) -> None:
    """Fault E23."""
    environ = {"HOME": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/docker.sock"}
    checks = diagnose(environ)
    assert [check.id for check in checks if not check.ok] == ["connection"]
    assert checks[-1].fix
    assert (
        next(check.detail for check in checks if check.id == "engine") == f"unix://{tmp_path}/docker.sock (DOCKER_HOST)"
    )


def test_the_doctor_finds_a_usable_engine_and_makes_nothing_in_it(bench: Bench) -> None:
    """Issue 7, part 6: touches only what is its own, and looking makes nothing."""
    checks = diagnose(bench.environ)
    assert [check for check in checks if not check.ok] == []
    assert bench.engine.api.containers(all=True) == []
    assert bench.engine.api.volumes()["Volumes"] in (None, [])


def test_every_local_image_is_listed_once_and_untagged_ones_by_id(bench: Bench) -> None:
    """Checklist 224, 225, 229."""
    engine = Engine(find_engine(bench.environ))
    try:
        made = bench.engine.api.import_image_from_data(_tar_of_nothing(), repository=None)
        untagged = json.loads(made.splitlines()[-1])["status"]
        listed = engine.images()
        assert listed == sorted({BUSYBOX, PYTHON, untagged})
        assert [engine.image(name)["Id"] for name in listed]
        with pytest.raises(ImageNotFound):
            engine.image("cloche-test/nothing:latest")
        bench.engine.api.remove_image(untagged)
    finally:
        engine.close()


@pytest.mark.skipif(bool(docker_engine.missing()), reason=docker_engine.missing() or "an engine can be started")
def test_an_engine_without_free_addresses_is_told_as_that() -> None:
    """Its own pool has 31 networks; whoever has made them needs to know what to remove."""
    with docker_engine.running_engine(address_pool="10.214.0.0/28") as started:
        engine = Engine(Place(started.url, "DOCKER_HOST"))
        try:
            engine.ensure_network("first", {}, {})
            engine.ensure_network("first", {}, {})
            with pytest.raises(BackendUnavailable) as told:
                engine.ensure_network("second", {}, {})
        finally:
            engine.close()
    assert told.value.details == {"cause": "docker_networks_used_up"}
    assert "docker network prune" in told.value.hint


def _tar_of_nothing() -> bytes:
    return b"\0" * 10240
