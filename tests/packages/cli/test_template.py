"""`abx template`: imported, listed, used and removed by processes of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cloche_cli import templating
from tests.packages.cli.ran import Abx
from tests.packages.local.images import Entry, Layout, layer, small_root


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABX_LOCAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


def test_a_template_is_imported_listed_and_removed(abx: Abx, tmp_path: Path) -> None:
    """Part 4 of the issue: folder and OCI archive."""
    small_root(tmp_path / "rootfs")
    assert abx(["template", "import", "rootfs", "--name", "mine"]).out == "mine\n"
    Layout([layer([Entry("etc/a", b"a")])]).archive(tmp_path / "Some Image.oci.tar")
    ran = abx(["--json", "template", "import", "Some Image.oci.tar"])
    document = json.loads(ran.out)
    assert (document["name"], document["kind"], document["has_shell"]) == ("some-image", "image", False)
    assert document["digest"].startswith("sha256:")
    listed = json.loads(abx(["--json", "template", "list"]).out)["templates"]
    assert [one["name"] for one in listed] == ["base", "code-interpreter-v1", "mine", "some-image"]
    table = abx(["template", "list"]).out
    assert "no /bin/sh" in next(line for line in table.splitlines() if line.startswith("some-image"))
    assert abx(["template", "remove", "mine", "some-image"]).out == "removed mine\nremoved some-image\n"
    assert len(json.loads(abx(["--json", "template", "list"]).out)["templates"]) == 2


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["import", "nothing-here"], 4, "SOURCE"),
        (["import", "empty", "--name", "base"], 2, "--name"),
        (["import", "empty", "--name", "../s3cret"], 2, "--name"),
        (["import", "empty"], 2, "SOURCE cannot be a template"),
        (["import", "file"], 2, "SOURCE cannot be a template"),
        (["remove", "s3cret"], 4, "NAME"),
        (["remove", "base"], 4, "NAME"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(
    abx: Abx, tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"x" * 5000)
    ran = abx(["template", *words])
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
    assert "s3cret" not in ran.err


def test_a_name_that_is_taken_and_a_template_in_use_are_told(
    abx: Abx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloche_local import imported

    small_root(tmp_path / "rootfs")
    assert abx(["template", "import", "rootfs"]).status == 0
    assert "--name" in abx(["template", "import", "rootfs"]).err

    def in_use(*_arguments: object) -> None:
        raise imported.InUse

    monkeypatch.setattr(imported, "remove_template", in_use)
    assert "abx sandbox list" in abx(["template", "remove", "rootfs"]).err


def test_a_signal_ends_an_import_and_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C leaves nothing running, and nothing half imported."""
    state = tmp_path / "state"
    source = tmp_path / "source"
    (source / "etc").mkdir(parents=True)
    with (source / "etc/large").open("wb") as file:
        file.truncate(20 << 30)  # a hole: it takes nothing here, and a while to copy
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [sys.executable, "-m", "cloche_cli", "template", "import", str(source), "--name", "mine"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            while not list(state.glob(".importing-*/etc/large")):
                assert process.poll() is None
                os.sched_yield()
            process.send_signal(number)
            assert process.wait(60) == 128 + number
        assert not list(state.glob(".importing-*"))
        assert not list(state.glob(".template-*"))


def test_without_a_local_provider_the_command_says_so(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.10 there is none."""
    monkeypatch.setattr(templating, "find_spec", dict[str, object]().get)
    ran = abx(["template", "list"])
    assert (ran.status, ran.out) == (2, "")
    assert "Python 3.11" in ran.err
