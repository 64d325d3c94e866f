"""Exports: from a real sandbox, and from one that lies. Whatever it sends, nothing is written elsewhere."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
import zstandard

from cloche_contract.errors import DestinationNotAllowed, DestinationUnusable, ExportRejected, ProviderUnavailable
from cloche_docker_manager import archive as archive_writer
from cloche_docker_manager.agent_link import AgentLink
from cloche_docker_manager.destination import allowed_destination
from cloche_docker_manager.export import Order, export
from cloche_docker_manager.registry import Record
from cloche_docker_manager.settings import ManagerSettings
from tests.docker_engine import BUSYBOX
from tests.packages.docker_manager.conftest import Bench
from tests.packages.docker_manager.lying_agent import (
    RECORD,
    exported,
    frame,
    lay_out_destination,
    left_in,
    named,
    settings_in,
    stream,
    tree,
)
from tests.packages.docker_manager.managed import Heard, opened, registry_of, run


@pytest.fixture
def settings(tmp_path: Path) -> ManagerSettings:
    return settings_in(tmp_path)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return lay_out_destination(tmp_path)


LONG = b"x" * 256
HOSTILE: dict[str, bytes] = {
    "parent": stream(named("file", b"../evil", b"x")),
    "parent below": stream(named("folder", b"a"), named("file", b"a/../../evil", b"x")),
    "absolute": stream(named("file", b"/etc/evil", b"x")),
    "dot": stream(named("file", b"./evil", b"x")),
    "empty part": stream(named("folder", b"a"), named("file", b"a//evil", b"x")),
    "no name": stream(named("file", b"", b"x")),
    "nul": stream(named("file", b"a\0b", b"x")),
    "long name": stream(named("file", LONG, b"x")),
    "deep": stream(*(named("folder", b"/".join([b"d"] * depth)) for depth in range(1, 260))),
    "clear of the root": stream(named("clear", b"")),
    "clear of the parent": stream(named("clear", b"..")),
    "delete of the parent": stream(named("delete", b"../outside/file")),
    "reserved name": stream(named("file", b".wh.kept", b"")),
    "reserved folder": stream(named("folder", b".wh..wh..opq")),
    "link then file below it": stream(
        named("symlink", b"link", target=base64.b64encode(b"/etc").decode()), named("file", b"link/evil", b"x")
    ),
    "file below no folder": stream(named("file", b"away/file", b"x")),
    "twice": stream(named("file", b"a", b"x"), named("file", b"a", b"y")),
    "out of order": stream(named("file", b"b", b"x"), named("file", b"a", b"y")),
    "hard link": stream(frame({"kind": "hardlink", "path": "YQ=="})),
    "device": stream(frame({"kind": "device", "path": "YQ==", "mode": 0o644, "mtime_s": 0, "mtime_ns": 0})),
    "clear after content": stream(named("file", b"a", b"x"), named("clear", b"kept")),
    "data without a file": stream(frame({"kind": "data", "offset": 0}, b"x")),
    "data beyond the file": stream(named("file", b"a", b"", size=1), frame({"kind": "data", "offset": 5}, b"x")),
    "data backwards": stream(named("file", b"a", b"xy", size=9), frame({"kind": "data", "offset": 1}, b"x")),
    "sparse bomb": stream(named("file", b"a", b"", size=1 << 60)),
    "payload bomb": stream(named("file", b"a", b"", size=5, payload=1 << 40)),
    "head bomb": (1 << 31).to_bytes(4, "big"),
    "not JSON": stream() + b"\0\0\0\2{{",
    "nested JSON": (60000).to_bytes(4, "big") + b"[" * 60000,
    "wrong count": stream(named("file", b"a", b"x"), end=7),
    "cut": stream(named("file", b"a", b"x"))[:-9],
    "no end": stream(named("file", b"a", b"x")).rpartition(b'{"kind": "end"')[0][:-4],
    "more after the end": stream() + named("file", b"a", b"x"),
    "begin twice": stream(frame({"kind": "begin", "manifest_version": 1, "layer_ids": [], "session_ids": []})),
    "no base64": stream(frame({"kind": "clear", "path": "*"})),
    "mode that is none": stream(named("file", b"a", b"x", mode=1 << 20)),
    "time that is none": stream(named("file", b"a", b"x", mtime_s="now")),
    "empty link": stream(named("symlink", b"a", target="")),
    "nothing at all": b"",
}


@pytest.mark.parametrize("kind", ["dir", "tar"])
@pytest.mark.parametrize("case", HOSTILE)
async def test_p14_p6_a_hostile_stream_writes_nothing_anywhere(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings, case: str, kind: str
) -> None:
    """Checklist 344, 345; faults P6, P14: refused as a whole, and the destination is as it was."""
    place = dest if kind == "dir" else dest.parent / "archive.tar"
    if kind == "tar":
        place.write_text("the one before\n")
    before = tree(dest.parent)
    with pytest.raises(ExportRejected):
        await exported(monkeypatch, HOSTILE[case], place, settings, kind)
    assert tree(dest.parent) == before
    assert left_in(settings) == []


async def test_an_honest_stream_is_applied_clears_then_deletions_then_content(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Checklist 279, 289, 342, 343, 349: modes and times; set-id bits stay behind; a link in the way is replaced."""
    data = stream(
        named("clear", b"kept"),
        named("delete", b"gone/where"),
        named("folder", b"away", mode=0o755),
        named("file", b"away/file", b"mine", mode=0o4755),
        named("folder", b"kept", mode=0o750),
        named("file", b"kept/.dotfile", b"winner"),
        named("file", b"sparse", b"", size=1 << 20),
        named("symlink", b"zlink", target=base64.b64encode(b"kept/.dotfile").decode()),
    )
    found = await exported(monkeypatch, data, dest, settings)
    assert (found.version, found.layers) == (3, ("L000003-00000000",))
    assert (found.written.clears, found.written.files, found.written.symlinks) == (1, 3, 1)
    assert (dest / "away/file").read_text() == "mine"
    assert stat.S_IMODE((dest / "away/file").stat().st_mode) == 0o755
    assert (dest / "away/file").stat().st_mtime_ns == 1_000_000_000_000_000_005
    assert [path.name for path in (dest / "kept").iterdir()] == [".dotfile"]
    assert (dest.parent / "outside/file").read_text() == "outside\n"
    again = await exported(monkeypatch, data, dest, settings)
    assert (again.written.files, again.written.symlinks, again.written.bytes) == (0, 0, 0)


async def test_w6_what_the_host_would_execute_is_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Fault W6: hooks and settings of tools, wherever they lie in the tree."""
    data = stream(
        named("folder", b".git"),
        named("file", b".git/config", b"[core] fsmonitor=evil"),
        named("folder", b".git/hooks"),
        named("file", b".git/hooks/pre-commit", b"evil"),
        named("file", b".gitignore", b"fine"),
        named("folder", b"sub"),
        named("folder", b"sub/.vscode"),
        named("file", b"sub/.vscode/tasks.json", b"evil"),
    )
    found = await exported(monkeypatch, data, dest, settings)
    assert found.written.left_out == [".git/config", ".git/hooks/pre-commit", "sub/.vscode/tasks.json"]
    assert not (dest / ".git/config").exists()
    assert (dest / ".gitignore").read_text() == "fine"
    asked = await exported(monkeypatch, data, dest, settings, host_executed=True)
    assert (asked.written.left_out, asked.written.files) == ([], 3)
    assert (dest / "sub/.vscode/tasks.json").read_text() == "evil"


async def test_an_archive_replaces_the_one_before_only_when_it_is_whole(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Checklist 280, 346: a sibling, then a rename; deterministic bytes."""
    place = dest.parent / "out.tar"
    place.write_text("the one before\n")
    data = stream(named("delete", b"a/b"), named("folder", b"a"), named("file", b"a/c", b"content"))

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(archive_writer, "_write_members", full)
        with pytest.raises(DestinationUnusable):
            await exported(patched, data, place, settings, "tar")
    assert place.read_text() == "the one before\n"
    await exported(monkeypatch, data, place, settings, "tar")
    first = place.read_bytes()
    await exported(monkeypatch, data, place, settings, "tar")
    assert place.read_bytes() == first
    with tarfile.open(place) as archive:
        assert archive.getnames() == ["a/.wh.b", "a", "a/c"]
    assert sorted(path.name for path in dest.parent.iterdir()) == ["dest", "out.tar", "outside"]


async def test_f20_a_sandbox_that_dies_while_it_sends_is_an_error_never_half_an_export(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Fault F20: nothing is written of what had come by then."""
    before, environ = tree(dest.parent), {"HOME": str(settings.workspace_roots[0])}

    async def die(_link: AgentLink, *, names_only: bool) -> AsyncIterator[bytes]:
        yield stream(named("file", b"a", b"x"))[:-20]
        raise ProviderUnavailable

    monkeypatch.setattr(AgentLink, "export", die)
    for kind, place in (("dir", dest), ("tar", dest.parent / "out.tar")):
        with pytest.raises(ProviderUnavailable):
            await export(RECORD, Order(str(place), kind), settings, environ, Heard().report)
    assert tree(dest.parent) == before


async def test_f27_two_exports_into_one_folder_leave_each_file_whole(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Fault F27: of one or of the other, never a mixture and never empty."""
    environ = {"HOME": str(settings.workspace_roots[0])}
    sent = [stream(*(named("file", b"f%02d" % n, who * 50_000) for n in range(20))) for who in (b"a", b"b")]

    async def send(_link: AgentLink, *, names_only: bool) -> AsyncIterator[bytes]:
        yield sent.pop()

    monkeypatch.setattr(AgentLink, "export", send)
    async with anyio.create_task_group() as both:
        for _ in range(2):
            both.start_soon(export, RECORD, Order(str(dest)), settings, environ, Heard().report)
    found = [(dest / f"f{n:02}").read_bytes() for n in range(20)]
    assert all(one in (b"a" * 50_000, b"b" * 50_000) for one in found)
    assert not [name for name in os.listdir(dest) if name.startswith(".cloche-")]


async def test_an_empty_delta_is_a_clean_no_op(
    monkeypatch: pytest.MonkeyPatch, dest: Path, settings: ManagerSettings
) -> None:
    """Checklist 350."""
    before = tree(dest.parent)
    found = await exported(monkeypatch, stream(), dest, settings)
    assert (found.written.files, found.written.deletes, found.written.bytes) == (0, 0, 0)
    assert tree(dest.parent) == before


def test_p13_no_export_goes_over_what_cannot_be_lost(settings: ManagerSettings, tmp_path: Path) -> None:
    """Checklist 283 to 286, 347; fault P13: judged by the real place, whatever link leads there."""
    home = settings.workspace_roots[0]
    (tmp_path / "to-home").symlink_to(home)
    (tmp_path / "to-state").symlink_to(settings.state_dir)
    refused: Iterable[Path] = (Path("/"), home, home.parent, settings.state_dir, settings.state_dir / "records")
    for place in (*refused, tmp_path / "to-home", tmp_path / "to-state", tmp_path / "to-state/x", home / "x/.."):
        for archive in (False, True):
            with pytest.raises((DestinationNotAllowed, DestinationUnusable)):
                allowed_destination(str(place), archive=archive, settings=settings, environ={"HOME": str(home)})
    (tmp_path / "file").touch()
    for place, archive in ((tmp_path / "file", False), (tmp_path / "home/..", True), (tmp_path / "no/x", True)):
        with pytest.raises((DestinationUnusable, DestinationNotAllowed)):
            allowed_destination(str(place), archive=archive, settings=settings, environ={"HOME": str(home)})
    assert allowed_destination(f"{home}/out", archive=False, settings=settings, environ={"HOME": str(home)})


async def test_work_of_a_real_sandbox_is_squashed_and_exported_in_every_format(bench: Bench, tmp_path: Path) -> None:
    """Checklist 267, 268, 270, 276 to 281, 288 to 290: the same changes before and after a squash, byte by byte."""
    project = bench.workspaces / "project"
    (project / "deep/er").mkdir(parents=True)
    for name in ("a", "b", "deep/er/c"):
        (project / name).write_text(f"{name}\n")
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(project))
        record, sandbox = registry_of(bench.environ).get(made["id"]), made["id"]
        for command in ("echo new >a; chmod 755 a; ln -s a link", "rm b", "rm -r deep; mkdir deep; echo x >deep/x"):
            assert (await run(record, command))["exitCode"] == 0
        first, second, packed = tmp_path / "1.tar", tmp_path / "2.tar", tmp_path / "3.tar.zst"
        told = await tools.ok("export_changes", sandbox_id=sandbox, dest=str(first), format="tar")
        assert (told["files_written"], told["symlinks_written"], told["whiteouts_emitted"]) == (2, 1, 2)
        assert len(told["layers_exported"]) == 3
        assert "live_workspace_sessions" not in told
        assert told["bytes_written"] == first.stat().st_size
        squashed = await tools.ok("squash_layerstacks", sandbox_id=sandbox)
        (block,) = squashed["squashed_blocks"]
        assert (block["replaced_layer_ids"], block["replaced_layers"]) == (told["layers_exported"], "reclaimed")
        await tools.ok("export_changes", sandbox_id=sandbox, dest=str(second), format="tar")
        await tools.ok("export_changes", sandbox_id=sandbox, dest=str(packed), format="tar-zst")
        assert second.read_bytes() == first.read_bytes()
        with packed.open("rb") as stream_in, zstandard.ZstdDecompressor().stream_reader(stream_in) as unpacked:
            assert unpacked.read() == first.read_bytes()
        assert dry_run(bench, sandbox) == [
            *(("clear", "deep", False), ("delete", "b", False), ("file", "a", False), ("folder", "deep", False)),
            *(("file", "deep/x", False), ("symlink", "link", False)),
        ]
        applied = await tools.ok("export_changes", sandbox_id=sandbox, dest=str(project))
        assert (applied["deletes_applied"], applied["opaque_clears_applied"]) == (1, 1)
        assert sorted(str(path.relative_to(project)) for path in project.rglob("*")) == ["a", "deep", "deep/x", "link"]
        assert ((project / "a").read_text(), os.access(project / "a", os.X_OK)) == ("new\n", True)
        assert await tools.refused("export_changes", sandbox_id=sandbox, dest="/") == (
            "invalid_request",
            "destination_not_allowed",
        )


def abx(bench: Bench, *words: str) -> Any:
    """What `abx --json docker …` prints."""
    command = [str(Path(sys.executable).parent / "abx"), "--json", "docker", *words]
    done = subprocess.run(command, env=bench.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def dry_run(bench: Bench, sandbox_id: str) -> list[tuple[str, str, bool]]:
    """Kind and path of each change, and whether the host would execute it."""
    found = abx(bench, "export", sandbox_id, "--dry-run")["changes"]
    return [(one["kind"], one["path"], one["host_executed"]) for one in found]


async def test_w6_w8_a_person_lists_the_changes_first_and_asks_for_what_would_be_executed(
    bench: Bench, tmp_path: Path
) -> None:
    """Faults W6, W8; issue 7, part 5: the list names every change, tracked by git or not, and nothing is written."""
    project = bench.workspaces / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(project))
        record = registry_of(bench.environ).get(made["id"])
        await run(record, "mkdir -p .git/hooks .vscode; echo evil >.git/hooks/pre-commit; echo {} >.vscode/tasks.json")
        await run(record, "echo new >untracked")
        before = tree(tmp_path / "workspaces")
        listed = dry_run(bench, record.id)
        assert [path for _kind, path, executed in listed if executed] == [".git/hooks/pre-commit", ".vscode/tasks.json"]
        assert ("file", "untracked", False) in listed
        assert tree(tmp_path / "workspaces") == before
        told = await tools.ok("export_changes", sandbox_id=record.id, dest=str(tmp_path / "out"))
        assert told["left_out"] == [".git/hooks/pre-commit", ".vscode/tasks.json"]
        assert not (tmp_path / "out/.git/hooks/pre-commit").exists()
        asked = abx(bench, "export", record.id, str(tmp_path / "out"), "--include-host-executed")
        assert (asked["files_written"], "left_out" in asked) == (2, False)
        assert (tmp_path / "out/.git/hooks/pre-commit").read_text() == "evil\n"


async def test_an_agent_without_layers_and_a_sandbox_that_is_not_ready_are_typed_errors(bench: Bench) -> None:
    """Checklist 275: a stale daemon is an operation_failed, and has to be made anew."""
    registry = registry_of(bench.environ)
    registry.put(Record("sbox-failed", "/w", BUSYBOX, "failed", "token"))
    async with opened(bench.environ) as tools:
        for tool, more in (("squash_layerstacks", {}), ("export_changes", {"dest": "/srv/out"})):
            told = await tools.refused(tool, sandbox_id="sbox-failed", **more)
            assert told == ("invalid_request", "sandbox_state_conflict")
            assert await tools.refused(tool, sandbox_id="sbox-none", **more) == ("not_found", "sandbox_not_found")
