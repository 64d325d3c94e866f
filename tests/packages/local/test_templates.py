"""Imported templates: what becomes of a hostile archive, and sandboxes that stand on a root of somebody's own."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.errors import TemplateNotFound
from cloche_contract.provider import CreateRequest, PruneRequest
from cloche_local import imported, oci
from cloche_local.state import StateFolder
from cloche_local.tree import Tree, TreeRefused
from tests.packages.local.images import Entry, Layout, entries_of, folder, hard, layer, link, small_root
from tests.packages.local.sandboxes import HOST_ROOT, made, make_provider, opened


@pytest.fixture
def state(folder: Path) -> StateFolder:
    found = StateFolder(str(folder / "state"))
    found.ensure()
    return found


def brought_in(state: StateFolder, source: Path, name: str = "mine") -> Path:
    """Import it; returns its root."""
    imported.import_template(state, name, str(source), owners=HOST_ROOT, now=0.0)
    found = imported.find(state.path, name)
    assert found is not None
    return Path(found[0])


def image(where: Path, *layers: Iterable[Entry], config: Mapping[str, Any] | None = None) -> Path:
    return Layout([layer(entries) for entries in layers], config or {}).archive(where / "image.tar")


BASE = (folder("etc"), Entry("etc/keep", b"kept"), Entry("etc/old", b"old"), folder("lib"), Entry("lib/a", b"a"))

HOSTILE = {
    "a name with ..": [folder("etc"), Entry("etc/../../escaped", b"x")],
    "an absolute name": [folder("etc"), Entry("/escaped", b"x")],
    "a hard link to a file of the host": [folder("etc"), hard("etc/stolen", "../../../../../../../etc/passwd")],
    "a hard link through a link that leads out": [folder("etc"), link("etc/up", "/etc"), hard("x", "etc/up/shadow")],
    "a file used as a folder": [folder("etc"), Entry("etc/a", b""), Entry("etc/a/b", b"x")],
    "links in a circle": [folder("etc"), link("etc/a", "b"), link("etc/b", "a"), Entry("etc/a/x", b"x")],
    "a deletion of the folder above": [folder("etc"), Entry("etc/.wh...", b"")],
    "a link to nowhere": [folder("etc"), link("etc/a", "")],
    "nothing of a root": [Entry("README", b"x")],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE.keys())
def test_p14_a_hostile_archive_is_refused_whole(entries: list[Entry], state: StateFolder, folder: Path) -> None:
    """KubeHound#427, node-tar CVE-2026-23950: nothing is written outside, and nothing of it stays."""
    before = sorted(path.name for path in folder.rglob("*"))
    with pytest.raises(TreeRefused) as told:
        brought_in(state, image(folder, entries))
    assert "escaped" not in str(told.value)
    assert sorted(path.name for path in folder.rglob("*")) == sorted([*before, "image.tar"])
    assert imported.find(state.path, "mine") is None


def test_p14_links_of_an_archive_are_followed_below_its_own_root(state: StateFolder, folder: Path) -> None:
    """node-tar CVE-2026-31802: what a link leads to is judged from the root of the template."""
    outside = folder / "outside"
    outside.mkdir()
    entries = [
        link("etc", "/usr/etc"),
        Entry("etc/inside", b"1"),
        folder_entry("lib"),
        link("lib/deep", "/usr/etc"),
        Entry("lib/deep/too", b"4"),
        link("out", str(outside)),
        Entry("out/inside", b"2"),
        link("up", "../../../../.."),
        Entry("up/inside", b"3"),
    ]
    root = brought_in(state, image(folder, entries))
    assert list(outside.iterdir()) == []
    assert (root / "usr/etc/inside").read_text() == "1"
    assert (root / "usr/etc/too").read_text() == "4"
    assert (root / str(outside).lstrip("/") / "inside").read_text() == "2"
    assert (root / "inside").read_text() == "3"
    assert os.readlink(root / "up") == "../../../../.."


def test_p14_no_device_and_no_set_id_bit_comes_out_of_an_archive(state: StateFolder, folder: Path) -> None:
    """ag2#2361: devices and pipes are left out and counted, set-id bits dropped, foreign ids nobody's."""
    entries = [
        Entry("etc/su", b"x", mode=0o6755, uid=70_000, gid=70_000),
        Entry("etc/sticky", kind=tarfile.DIRTYPE, mode=0o7777),
        Entry("etc/disk", kind=tarfile.BLKTYPE),
        Entry("etc/null", kind=tarfile.CHRTYPE),
        Entry("etc/pipe", kind=tarfile.FIFOTYPE),
    ]
    root = brought_in(state, image(folder, entries))
    facts = (root / "etc/su").stat()
    assert stat.S_IMODE(facts.st_mode) == 0o755
    assert stat.S_IMODE((root / "etc/sticky").stat().st_mode) == 0o1777
    assert sorted(os.listdir(root / "etc")) == ["group", "hostname", "hosts", "passwd", "resolv.conf", "sticky", "su"]
    found = imported.find(state.path, "mine")
    assert found is not None
    assert found[1].skipped == 3
    assert (facts.st_uid, facts.st_gid) == ((65534, 65534) if HOST_ROOT else (os.getuid(), os.getgid()))


def test_p6_a_folder_is_copied_without_following_what_is_in_it(state: StateFolder, folder: Path) -> None:
    """inspect_ai#5285: links stay links, sockets and pipes are left out, hard links stay one file."""
    source = folder / "source"
    (source / "etc/deep").mkdir(parents=True)
    (source / "etc/a").write_text("a")
    os.link(source / "etc/a", source / "etc/b")
    (source / "etc/out").symlink_to("/etc/passwd")
    os.mkfifo(source / "etc/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "s"))
    (source / "etc/su").write_text("")
    (source / "etc/su").chmod(0o4755)
    root = brought_in(state, source)
    assert os.readlink(root / "etc/out") == "/etc/passwd"
    assert (root / "etc/a").stat().st_ino == (root / "etc/b").stat().st_ino
    assert not (root / "etc/pipe").exists()
    assert not (root / "s").exists()
    assert stat.S_IMODE((root / "etc/su").stat().st_mode) == 0o755


def test_a_template_can_be_imported_from_the_folder_that_it_is_kept_in(state: StateFolder) -> None:
    """The root of the host holds the state folder too: the copy does not copy itself."""
    (Path(state.path) / "etc").mkdir()
    assert (brought_in(state, Path(state.path)) / "etc").is_dir()


@pytest.mark.parametrize("zipped", [False, True])
def test_layers_cover_each_other_and_whiteouts_delete(zipped: bool, state: StateFolder, folder: Path) -> None:
    """image-spec, "layer": whiteouts and opaque folders hide what is below, never what is of the same layer."""
    second = [
        Entry("etc/.wh.old"),
        Entry("lib/new", b"new"),
        Entry("lib/.wh..wh..opq"),
        Entry("lib/newer", b"newer"),
        Entry("etc/replaced", b"file"),
    ]
    third = [folder_entry("etc/replaced"), Entry("etc/replaced/in", b"in"), hard("etc/again", "etc/keep")]
    layout = Layout([layer(entries, zipped=zipped) for entries in (BASE, second, third)])
    for number, source in enumerate([layout.archive(folder / "image.tar"), layout.folder(folder / "layout")]):
        root = brought_in(state, source, f"mine{number}")
        assert sorted(os.listdir(root / "lib")) == ["new", "newer"]
        assert not (root / "etc/old").exists()
        assert (root / "etc/replaced/in").read_text() == "in"
        assert (root / "etc/again").stat().st_ino == (root / "etc/keep").stat().st_ino
        assert not list(root.rglob(".wh*"))


def folder_entry(name: str) -> Entry:
    return Entry(name, kind=tarfile.DIRTYPE, mode=0o755)


@pytest.mark.parametrize("damage", ["bytes", "missing", "index", "no layers", "other machine", "no tar", "zstd"])
def test_a_damaged_image_is_refused_before_anything_of_it_is_used(
    damage: str, state: StateFolder, folder: Path
) -> None:
    """Blobs are compared with their digests; what cannot be read is told, not guessed."""
    layout = Layout([layer(BASE)])
    name = next(name for name, content in layout.blobs.items() if content == layout.layers[0])
    match damage:
        case "bytes":
            layout.blobs[name] = layer([folder_entry("etc"), Entry("etc/other", b"x")])
        case "missing":
            del layout.blobs[name]
        case "index":
            layout.manifests = "none"
        case "no layers":
            layout = Layout([])
        case "other machine":
            layout = Layout([layer(BASE)], platforms=[{"os": "linux", "architecture": "s390x"}])
        case "no tar":
            layout = Layout([b"\x1f\x8bno gzip"])
        case _:
            layout = Layout([b"\x28\xb5\x2f\xfd zstandard"])
    with pytest.raises(TreeRefused):
        brought_in(state, layout.archive(folder / "image.tar"))
    assert not [name for name in os.listdir(state.path) if name.startswith((".template-", ".importing-"))]


def test_the_image_for_this_machine_is_taken_from_several(state: StateFolder, folder: Path) -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    layout = Layout([layer(BASE)], platforms=[{"os": "linux", "architecture": machine}])
    other = Layout([layer([folder_entry("etc"), Entry("etc/other", b"x")])], platforms=[{"os": "linux"}])
    layout.blobs.update(other.blobs)
    unknown = {"os": "unknown", "architecture": "unknown"}
    layout.manifests = [{"digest": other.manifests[0]["digest"], "platform": unknown}, *layout.manifests]
    assert (brought_in(state, layout.archive(folder / "image.tar")) / "etc/keep").exists()


def test_what_is_too_much_is_refused_while_it_is_read(folder: Path) -> None:
    """Sizes and counts are bounded, whatever an archive claims."""
    layout = Layout([layer([Entry("etc/a", b"x" * 1000), Entry("etc/b", b"x" * 1000)], zipped=True)])
    for most_bytes, most_entries in ((1500, 100), (10_000, 1)):
        root = folder / f"root-{most_bytes}"
        root.mkdir()
        with oci.opened(str(layout.archive(folder / "image.tar"))) as blobs:
            found = oci.read_image(blobs)
            with pytest.raises(TreeRefused):
                oci.apply_layer(blobs, found.layers[0], Tree(str(root), False, most_bytes, most_entries))


def test_a_name_is_given_once_and_a_failed_import_leaves_nothing(
    state: StateFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = image(folder, BASE)
    brought_in(state, source)
    with pytest.raises(imported.NameTaken):
        brought_in(state, source)
    monkeypatch.setattr(oci, "apply_layer", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        brought_in(state, source, "other")
    names = [name for name in os.listdir(state.path) if name.startswith((".template-", ".importing-"))]
    assert sorted(names) == [".template-mine", ".template-mine.json"]


def _interrupted(*_arguments: object) -> None:
    raise KeyboardInterrupt


async def test_a_prune_removes_an_import_that_broke_off_and_no_template(folder: Path, state: StateFolder) -> None:
    root = brought_in(state, image(folder, BASE))
    broken = Path(state.path, ".importing-abc")
    (broken / "deep").mkdir(parents=True)
    (broken / "deep").chmod(0)
    os.utime(broken, (0, 0))
    async with opened(make_provider(folder)) as provider:
        result = await provider.prune(PruneRequest(dry_run=False))
    assert [(each.kind, each.path) for each in result.removed] == [("unfinished", str(broken))]
    assert root.is_dir()
    assert not broken.exists()


@pytest.mark.usefixtures("usable")
@pytest.mark.parametrize("kind", ["folder", "image"])
async def test_a_sandbox_stands_on_an_imported_root_and_leaves_it_as_it_is(
    kind: str, folder: Path, state: StateFolder
) -> None:
    """Programs, files, user, workdir and variables are those of the template; code runs on the Python of the host."""
    source = small_root(folder / "root")
    (source / "srv").mkdir()
    if kind == "image":
        config = {"Env": ["GREETING=hello", "PATH=/bin", "HOME=/nowhere", "1=bad"], "WorkingDir": "/srv"}
        source = image(folder, entries_of(source), [Entry("etc/motd", b"second\n")], config=config)
    root = brought_in(state, source)
    before = sorted((str(path), path.lstat().st_mtime) for path in root.rglob("*"))
    async with opened(make_provider(folder)) as provider, made(provider, template="mine") as sandbox:
        assert sandbox.record.template == "mine"
        ran = await sandbox.run('id -u; cat /etc/motd; echo "$GREETING" > /etc/x || echo refused; env; ls -a /etc')
        assert ran.exit_code == 0, ran.stderr
        lines = ran.stdout.splitlines()
        assert lines[:2] == ["1000", "small" if kind == "folder" else "second"]
        assert "HOME=/home/user" in lines
        assert "shadow" not in lines
        if kind == "image":
            assert {"GREETING=hello", "PATH=/bin", "PWD=/srv"} <= set(lines)
        assert await sandbox.run("echo kept > /home/user/note; cat /home/user/note") != ""
        told = await sandbox.execute("import csv, sys; print(csv.__file__, sys.version_info[1])")
        printed = "".join(str(line.get("text", "")) for line in told)
        assert f"{imported.PYTHON_FOLDER}/csv.py {sys.version_info[1]}" in printed
        with pytest.raises(imported.InUse):
            imported.remove_template(state, "mine")
    assert sorted((str(path), path.lstat().st_mtime) for path in root.rglob("*")) == before


@pytest.mark.usefixtures("usable")
@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user has no other user inside")
async def test_owners_of_a_template_are_owners_inside(folder: Path, state: StateFolder) -> None:
    entries = [*entries_of(small_root(folder / "root")), Entry("etc/of-seven", b"", uid=7, gid=8, mode=0o600)]
    brought_in(state, image(folder, entries))
    async with opened(make_provider(folder)) as provider, made(provider, template="mine") as sandbox:
        ran = await sandbox.run("ls -ln /etc/of-seven; cat /etc/of-seven || echo refused")
        assert ran.stdout.split()[2:4] == ["7", "8"]
        assert ran.stdout.endswith("refused\n")


async def test_a_removed_template_is_gone_and_unknown_to_create(folder: Path, state: StateFolder) -> None:
    brought_in(state, image(folder, [*BASE, folder_entry("etc/closed"), Entry("etc/closed/x", b"")]))
    imported.remove_template(state, "mine")
    assert not [name for name in os.listdir(state.path) if "mine" in name]
    with pytest.raises(imported.NotThere):
        imported.remove_template(state, "mine")
    async with opened(make_provider(folder)) as provider:
        for name in ("mine", "../mine", ".template-mine", ""):
            with pytest.raises(TemplateNotFound):
                await provider.create(CreateRequest.model_construct(template=name, timeout=60))
