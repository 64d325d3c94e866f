"""The store of layers: its manifest, its marks, and what is left of it when the machine stops."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cloche_agentd.layers import manifest as manifests
from cloche_agentd.layers.door import Door, open_folder
from cloche_agentd.layers.failure import StoreDamaged
from cloche_agentd.layers.removal import remove
from cloche_agentd.layers.squash import squash
from cloche_agentd.layers.store import Store
from cloche_agentd.layers.whiteout import adopt, is_opaque, is_whiteout
from tests.packages.agentd.layer_stores import Bench, Stopped, StoppingDoor, contents, golden, publish, shown


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A base of a few files, and an empty store."""
    return Bench(tmp_path, {"a.txt": b"one\n", "b.txt": b"two\n", "d/x": b"x", "d/y": b"y", "link": "a.txt"})


# -- the persisted format -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1"])
def test_a_store_of_every_released_version_opens_and_shows_what_it_held(tmp_path: Path, version: str) -> None:
    """schemas/layerstack: persisted formats are readable for ever."""
    path, base = golden(version, tmp_path)
    store = Store.open(str(path), str(base), "sha256:00", Door())
    assert store.manifest.ids == ("S000003-0badcafe", "L000002-00000001")
    assert contents(store) == {
        "docs": b"",
        "docs/hidden.txt": b"hidden\n",
        "docs/kept.txt": b"kept\n",
        "docs/new.txt": b"new\n",
        "src": b"",
        "src/a.txt": b"a = 1\n",
    }
    store.close()


def test_an_empty_folder_becomes_a_store_and_what_was_published_is_there_after_a_new_start(bench: Bench) -> None:
    """Systems 5.6: manifest of the layers, newest first."""
    store = bench.open(root_hash="sha256:11")
    first = bench.publish(store, "s1", {"a.txt": b"three\n", "b.txt": None, "d//": None, "d/z": b"z"})
    second = bench.publish(store, "s2", {"n/m": b"new"})
    before = contents(store)
    assert before == {"a.txt": b"three\n", "d": b"", "d/z": b"z", "link": b"a.txt", "n": b"", "n/m": b"new"}
    store.close()
    again = bench.open(root_hash="sha256:11")
    assert again.manifest.ids == (second, first)
    assert again.manifest.version == 3
    assert contents(again) == before
    again.close()


def _naming(layer_id: str) -> bytes:
    layer = f'{{"layer_id": "{layer_id}", "entries": 0, "bytes": 0}}'
    return f'{{"schema_version": 1, "version": 1, "layers": [{layer}]}}'.encode()


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"schema_version": 2, "version": 1, "layers": []}',
        b'{"schema_version": 1, "version": 0, "layers": []}',
        _naming("../../../../etc"),
        _naming("L000001-0000000\\n"),
        _naming("L000009-00000000"),
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused_and_nothing_is_removed(bench: Bench, wrong: bytes) -> None:
    """Systems 5.6: the sweep at the start deletes nothing if the manifest is missing, unparsable or wrong."""
    store = bench.open()
    layer = bench.publish(store, "s1", {"n": b"new"})
    store.close()
    (bench.path / "manifest.json").write_bytes(wrong)
    with pytest.raises(StoreDamaged):
        bench.open()
    assert (bench.path / "layers" / layer / "n").read_bytes() == b"new"


def test_layers_without_a_manifest_or_of_another_base_are_refused(bench: Bench) -> None:
    """Systems 5.6: the base root hash is verified at the start."""
    store = bench.open(root_hash="sha256:11")
    layer = bench.publish(store, "s1", {"n": b"new"})
    store.close()
    with pytest.raises(StoreDamaged, match="another base"):
        bench.open(root_hash="sha256:22")
    (bench.path / "manifest.json").unlink()
    with pytest.raises(StoreDamaged, match="no manifest"):
        bench.open(root_hash="sha256:11")
    assert (bench.path / "layers" / layer / "n").exists()


def test_a_store_is_open_in_one_process_only(bench: Bench) -> None:
    """Two writers of one manifest would lose each other's layers."""
    store = bench.open()
    with pytest.raises(StoreDamaged, match="in use"):
        bench.open()
    store.close()
    bench.open().close()


def test_the_checker_of_manifests_is_the_schema(bench: Bench) -> None:
    """schemas/layerstack/manifest.v1.json, by the generated table."""
    store = bench.open()
    bench.publish(store, "s1", {"n": b"new"})
    store.close()
    value = json.loads((bench.path / "manifest.json").read_text())
    assert manifests.parse(json.dumps(value).encode()).layers[0].size == 3
    value["layers"][0]["bytes"] = "3"
    with pytest.raises(StoreDamaged):
        manifests.parse(json.dumps(value).encode())


# -- whatever step the machine stops at -----------------------------------------------------------------------------


def _publish_three(bench: Bench, store: Store) -> None:
    bench.publish(store, "s1", {"a.txt": b"1", "n/one": b"1"})
    bench.publish(store, "s2", {"n/two": b"2", "b.txt": None})
    # a.txt is merged: both sides changed it, in lines of their own.
    bench.session(store, "s3", {"n//": None, "n/three": b"3"})


def _publish(bench: Bench, store: Store) -> None:
    del bench
    publish(store, "s3")


def _squash(bench: Bench, store: Store) -> None:
    del bench
    assert squash(store)
    store.reclaim()


@pytest.mark.parametrize("change", [_publish, _squash])
def test_a_stop_at_any_step_leaves_the_old_or_the_new_state(
    tmp_path: Path, change: Callable[[Bench, Store], None]
) -> None:
    """Issue 7: a door that stops before and after each write, sync and rename; every step is tried."""
    base = {"a.txt": b"one\n", "b.txt": b"two\n"}

    def run(name: str, stop_at: int) -> tuple[Bench, StoppingDoor, dict[str, bytes]]:
        bench = Bench(tmp_path / name, base)
        store = bench.open()
        _publish_three(bench, store)
        old = contents(store)
        door = StoppingDoor(stop_at)
        store.door = door
        try:
            change(bench, store)
        except Stopped:
            assert stop_at >= 0
        else:
            assert stop_at < 0
        store.close()
        return bench, door, old

    whole, door, old = run("whole", -1)
    store = whole.open()
    new = contents(store)
    store.close()
    assert {"after syncfs", "after fsync", "after rename"} <= set(door.steps)
    seen: set[str] = set()
    for stop_at in range(len(door.steps)):
        stopped, _, _ = run(str(stop_at), stop_at)
        store = stopped.open()
        found = contents(store)
        assert found in (old, new), (stop_at, door.steps[stop_at])
        seen.add("new" if found == new else "old")
        assert sorted(os.listdir(stopped.path / "layers")) == sorted(store.manifest.ids)
        assert not os.listdir(stopped.path / "staging")
        assert not os.listdir(stopped.path / "sessions")
        store.close()
    assert new == old or seen == {"old", "new"}


def test_a_stop_while_a_store_is_made_leaves_an_empty_one(tmp_path: Path) -> None:
    """Issue 7: also its first start."""
    whole = StoppingDoor()
    Bench(tmp_path / "whole").open(whole).close()
    for stop_at in range(len(whole.steps)):
        bench = Bench(tmp_path / str(stop_at))
        with pytest.raises(Stopped):
            bench.open(StoppingDoor(stop_at))
        store = bench.open()
        assert store.manifest == manifests.EMPTY
        store.close()


def test_a_layer_is_on_the_disk_before_the_manifest_names_it_with_one_sync_for_all_files(bench: Bench) -> None:
    """docker.md: one syncfs, not an fsync per file; renamed only after it."""
    store = bench.open()
    bench.session(store, "s1", {f"n/{number}": b"x" for number in range(50)})
    door = StoppingDoor()
    store.door = door
    publish(store, "s1")
    store.close()
    steps = [step for step in door.steps if step in ("after syncfs", "after fsync", "rename")][:7]
    # Out of the session; synced; installed; the folder of layers; the new manifest; in place; its folder.
    assert steps == ["rename", "after syncfs", "rename", "after fsync", "after fsync", "rename", "after fsync"]


# -- marks ----------------------------------------------------------------------------------------------------------


def test_w3_marks_of_every_tool_become_ours(tmp_path: Path) -> None:
    """overlayfs-tools#3, fuse-overlayfs#136: char devices, attributes of three kinds, names of archives."""
    tree = tmp_path / "tree"
    (tree / "opaque/deep").mkdir(parents=True)
    (tree / "fuse").mkdir()
    (tree / "archive").mkdir()
    os.mknod(tree / "device", stat.S_IFCHR, os.makedev(0, 0))
    (tree / "attribute").touch()
    os.setxattr(tree / "attribute", "user.overlay.whiteout", b"")
    (tree / ".wh.named").touch()
    (tree / "archive/.wh..wh..opq").touch()
    (tree / "archive/.wh..wh.aufs").touch()
    (tree / "archive/.wh...").touch()
    (tree / "kept").touch()
    (tree / "archive/kept").touch()
    (tree / ".wh.kept").touch()
    os.setxattr(tree / "opaque", "user.overlay.opaque", b"y")
    os.setxattr(tree / "opaque", "user.mine", b"1")
    os.setxattr(tree / "fuse", "user.fuseoverlayfs.opaque", b"y")
    if os.geteuid() == 0:
        os.setxattr(tree / "opaque/deep", "trusted.overlay.opaque", b"y")
    root = os.open(tree, os.O_RDONLY)
    adopt(Door(), root, archive_marks=True)
    os.close(root)
    whiteouts = {entry.name for entry in tree.iterdir() if is_whiteout(entry.lstat())}
    assert whiteouts == {"device", "attribute", "named"}
    assert sorted(os.listdir(tree / "archive")) == ["kept"]
    opaque = [name for name in ("opaque", "fuse", "archive", "opaque/deep") if _opaque(tree / name)]
    assert opaque == ["opaque", "fuse", "archive", *(["opaque/deep"] if os.geteuid() == 0 else [])]
    assert set(os.listxattr(tree / "opaque")) == {"user.overlay.opaque", "user.mine"}
    assert os.listxattr(tree / "fuse") == ["user.overlay.opaque"]


def _opaque(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        return is_opaque(fd)
    finally:
        os.close(fd)


def test_w1_a_folder_deleted_and_made_again_shows_nothing_of_the_old_one(bench: Bench) -> None:
    """try#163: the opaque mark was ignored, and old files came back."""
    store = bench.open()
    bench.publish(store, "s1", {"d//": None, "d/z": b"z"})
    bench.publish(store, "s2", {"d/w": b"w"})
    assert {path for path in shown(store.view(store.manifest)) if path.startswith("d")} == {"d", "d/w", "d/z"}
    squash(store)
    assert {path for path in shown(store.view(store.manifest)) if path.startswith("d")} == {"d", "d/w", "d/z"}
    store.close()


def test_a_tree_of_any_depth_and_mode_is_removed(tmp_path: Path) -> None:
    """A session can make trees deeper than any stack, and folders that nobody may enter."""
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d", dir_fd=here)
        inner = open_folder(here, "d")
        os.close(here)
        here = inner
    os.mkdir("closed", 0o000, dir_fd=here)
    os.symlink("/etc", "link", dir_fd=here)
    os.close(here)
    root = os.open(tmp_path, os.O_RDONLY)
    remove(Door(), root, "top")
    remove(Door(), root, "not there")
    os.close(root)
    assert os.listdir(tmp_path) == []
