"""Publish, squash and export on what few programs write: odd names, attributes, holes, devices, depth, links."""

from __future__ import annotations

import errno
import gc
import os
import stat
from pathlib import Path

import pytest

from cloche_agentd.layers import export
from cloche_agentd.layers.door import open_folder
from cloche_agentd.layers.failure import NoSpace
from cloche_agentd.layers.merge import merge_text
from cloche_agentd.layers.publish import commit, examine, forget, stage_merged
from cloche_agentd.layers.squash import blocks_of, squash
from cloche_agentd.layers.store import Store
from cloche_agentd.layers.view import Folder
from tests.packages.agentd.layer_stores import Bench, QuickDoor, contents, publish, shown

ODD = [b"\xff\xfe", b"new\nline", b"n" * 255, b".wh.real", b".wh..wh..opq", b" ", b"a\\b", b"*"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A base of a few files, and an empty store."""
    return Bench(tmp_path, {"a.txt": b"1\n2\n3\n4\n5\n", "d/x": b"x", "d/y": b"y", "link": "a.txt"})


def _export(store: Store) -> list[tuple[dict[str, object], bytes]]:
    with store.view(store.manifest, base=False) as layers, store.open_layers((), base=True) as base:
        return list(export.fold(layers.fds, base, (store.manifest.version, store.manifest.ids, ()), names_only=False))


# -- odd but right --------------------------------------------------------------------------------------------------


def test_w3_odd_names_holes_links_and_attributes_keep_their_meaning(bench: Bench) -> None:
    """overlayfs-tools#3, containers/storage#141: also after a squash, where files are links of the old layers."""
    store = bench.open()
    upper = bench.session(store, "s1")
    for name in ODD:
        (upper / os.fsdecode(name)).write_bytes(name)
    (upper / "one").write_bytes(b"shared")
    os.link(upper / "one", upper / "two")
    os.setxattr(upper / "one", "user.mine", b"value")
    os.setxattr(upper / "one", "user.overlay.origin", b"of the kernel")
    with (upper / "sparse").open("wb") as stream:
        stream.seek(64 * 1024 * 1024)
        stream.write(b"end")
    os.utime(upper / "one", ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    (upper / "folder").mkdir(mode=0o711)
    (upper / "folder").chmod(0o2711)
    publish(store, "s1")
    bench.publish(store, "s2", {"more": b"more"})
    before = shown(store.view(store.manifest))
    records = _export(store)
    squash(store)
    store.reclaim()
    assert shown(store.view(store.manifest)) == before
    assert _export(store)[1:] == records[1:]
    layer = bench.path / "layers" / store.manifest.ids[0]
    assert {os.fsencode(name) for name in os.listdir(layer)} >= set(ODD)
    one = (layer / "one").stat()
    assert (one.st_ino, one.st_nlink) == ((layer / "two").stat().st_ino, 2)
    assert one.st_mtime_ns == 1_600_000_000_123_456_789
    assert os.listxattr(layer / "one") == ["user.mine"]
    assert (layer / "sparse").stat().st_blocks * 512 < 1024 * 1024
    assert stat.S_IMODE((layer / "folder").stat().st_mode) == 0o2711
    store.close()


def test_f18_a_change_of_the_mode_alone_is_published_and_a_merge_keeps_it(bench: Bench) -> None:
    """vm0#373, systems X7: merged files lost their executable bit."""
    store = bench.open()
    for name, content in (("s1", b"one\n2\n3\n4\n5\n"), ("s2", b"1\n2\n3\n4\n5\n"), ("s3", b"1\n2\n3\n4\nfive\n")):
        upper = bench.session(store, name, {"a.txt": content})
        (upper / "a.txt").chmod(0o755 if name == "s2" else 0o644)
    publish(store, "s1")
    publish(store, "s2")
    assert shown(store.view(store.manifest))["a.txt"] == ("file", 0o755, b"one\n2\n3\n4\n5\n")
    publish(store, "s3")
    assert shown(store.view(store.manifest))["a.txt"] == ("file", 0o755, b"one\n2\n3\n4\nfive\n")
    store.close()


def test_two_sessions_that_make_the_same_new_folder_share_it(bench: Bench) -> None:
    """A new folder is opaque for the kernel although it hides nothing: it must not hide the other session's."""
    store = bench.open()
    bench.session(store, "s1", {"new//": None, "new/one": b"1"})
    bench.session(store, "s2", {"new//": None, "new/two": b"2"})
    publish(store, "s1")
    publish(store, "s2")
    assert {path for path in contents(store) if path.startswith("new")} == {"new", "new/one", "new/two"}
    store.close()


def test_a_file_that_was_opened_and_not_changed_does_not_undo_what_others_did(bench: Bench) -> None:
    """Copied up by being opened for writing: no change of this session."""
    store = bench.open()
    bench.session(store, "s1", {"a.txt": b"theirs\n", "d/x": None})
    bench.session(store, "s2", {"a.txt": b"1\n2\n3\n4\n5\n", "d/x": b"x", "mine": b"mine"})
    publish(store, "s1")
    publish(store, "s2")
    assert contents(store) == {"a.txt": b"theirs\n", "d": b"", "d/y": b"y", "link": b"a.txt", "mine": b"mine"}
    store.close()


def test_a_session_that_changed_nothing_makes_no_layer(bench: Bench) -> None:
    """Systems 5.6: an empty publish, or one that is what is in force, is a no-op."""
    store = bench.open()
    bench.session(store, "s1", {"d/": None})
    upper = bench.session(store, "s2", {"a.txt": b"1\n2\n3\n4\n5\n", "gone": None})
    times = (bench.base / "a.txt").stat()
    os.utime(upper / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [examine(store, name).effective for name in ("s1", "s2")] == [False, False]
    store.close()


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        ({"a.txt": b"ours\n"}, {"a.txt": b"theirs\n"}, "content"),
        ({"a.txt": b"\0"}, {"a.txt": b"2\n3\n4\n5\n"}, "content"),
        ({"a.txt": None}, {"a.txt": b"theirs\n"}, "deleted"),
        ({"a.txt": b"ours\n"}, {"a.txt": None}, "deleted"),
        ({"new": b"ours"}, {"new": b"theirs"}, "added"),
        ({"new": "ours"}, {"new": "theirs"}, "added"),
        ({"d": None}, {"d/new": b"new"}, "deleted"),
        ({"d//": None, "d/z": b"z"}, {"d/x": b"other"}, "deleted"),
        ({"d": b"a file now"}, {"d/x": b"other"}, "kind"),
        ({"d/x": b"ours"}, {"d": None}, "deleted"),
        ({"a.txt/": None, "a.txt/z": b"z"}, {"a.txt": b"theirs"}, "kind"),
        ({"new//": None, "new/z": b"z"}, {"new": b"theirs"}, "kind"),
        ({"link": "elsewhere"}, {"link": "nowhere"}, "kind"),
    ],
)
def test_what_both_sides_changed_is_refused_and_nothing_moves(
    bench: Bench, ours: dict[str, bytes | str | None], theirs: dict[str, bytes | str | None], reason: str
) -> None:
    """Issue 7: conflict detection by content; systems 5.6: all or nothing."""
    store = bench.open()
    bench.session(store, "s1", theirs)
    bench.session(store, "s2", ours)
    publish(store, "s1")
    before, version = contents(store), store.manifest.version
    made = examine(store, "s2")
    assert made.reject_class == "source_conflict"
    assert {why for _, why in made.conflicts} == {reason}
    assert (contents(store), store.manifest.version) == (before, version)
    assert store.leases.of("s2") is not None
    store.close()


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", b"A\nb\nC\n"),
        (b"a\nb\nc\n", b"a\nc\n", b"a\nb\nc\nd\n", b"a\nc\nd\n"),
        (b"a\r\nb\nc", b"a\r\nB\nc", b"a\r\nb\nc\n", None),
        (b"a\r\nb\n-\nc", b"A\r\nb\n-\nc", b"a\r\nb\n-\nc\n", b"A\r\nb\n-\nc\n"),
        (b"", b"new\n", b"", b"new\n"),
        (b"", b"one\n", b"two\n", None),
        (b"x\n", b"x\n", b"", b""),
        (b"a\nb\n", b"a\nnew\nb\n", b"a\nother\nb\n", None),
        (b"a\nb\n", b"a\nnew\nb\n", b"a\nnew\nb\n", b"a\nnew\nb\n"),
        (b"\xff\n1\n", b"\xff\n2\n", b"\xfe\n1\n", None),
        (b"a\n" * 3000, b"b\n" + b"a\n" * 3000 + b"c\n", b"c\n" + b"a\n" * 2999 + b"x\n", None),
    ],
)
def test_texts_are_merged_byte_for_byte_or_not_at_all(
    base: bytes, ours: bytes, theirs: bytes, merged: bytes | None
) -> None:
    """Systems 5.6: byte-exact three-way merge; UTF-8, no NUL, no markers; the last case would take for ever."""
    assert merge_text(base, ours, theirs) == merged
    assert merge_text(base, theirs, ours) == merged


# -- hostile --------------------------------------------------------------------------------------------------------


def test_p14_devices_are_refused_and_sockets_and_pipes_are_told_and_left_out(bench: Bench) -> None:
    """KubeHound#427 and others: no special file enters a layer."""
    store = bench.open()
    upper = bench.session(store, "s1", {"kept": b"kept"})
    os.mkfifo(upper / "pipe")
    os.mknod(upper / "sock", stat.S_IFSOCK | 0o600)
    made = examine(store, "s1")
    assert (made.reject_class, made.dropped) == ("", ["pipe", "sock"])
    layer = publish(store, "s1")
    assert os.listdir(bench.path / "layers" / layer) == ["kept"]
    if os.geteuid() == 0:
        upper = bench.session(store, "s2")
        os.mknod(upper / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        assert examine(store, "s2").reject_class == "special_file"
    store.close()


def test_p14_links_out_of_the_tree_are_never_followed(bench: Bench, tmp_path: Path) -> None:
    """Judge0 CVE-2024-28185 and others: no read or write outside the store by a link in a layer."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (outside / "secret").chmod(0o600)
    before = sorted((path.name, path.lstat().st_ctime_ns) for path in outside.iterdir())
    store = bench.open()
    bench.publish(store, "s1", {"d//": None, "d/f": b"1", "n/f": b"1"})
    bench.session(store, "s2", {"n": None})
    link = bench.path / "sessions/s2/upper/n"
    link.unlink()
    link.symlink_to(outside)
    (link.parent / "f").symlink_to(outside / "secret")
    (link.parent / "up").symlink_to("../../../../../../../../etc/passwd")
    publish(store, "s2")
    bench.session(store, "s3", {"f": b"now a file", "n//": None, "n/secret": b"mine"})
    publish(store, "s3")
    squash(store)
    store.reclaim()
    assert contents(store)["n/secret"] == b"mine"
    for head, payload in _export(store):
        assert payload not in (b"secret",), head
    assert sorted((path.name, path.lstat().st_ctime_ns) for path in outside.iterdir()) == before
    assert (outside / "secret").read_bytes() == b"secret"
    store.close()


def test_a_tree_that_is_too_deep_is_refused_and_can_be_destroyed(bench: Bench) -> None:
    """A session can make folders deeper than any stack; nothing of ours may break on it."""
    store = bench.open()
    upper = bench.session(store, "s1")
    here = os.open(upper, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 50, dir_fd=here)
        inner = open_folder(here, "d" * 50)
        os.close(here)
        here = inner
    os.close(here)
    assert examine(store, "s1").reject_class == "too_deep"
    forget(store, "s1")
    assert os.listdir(bench.path / "sessions") == []
    store.close()


def test_what_the_host_may_not_read_is_told_and_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems X7: a capture that failed lost changes silently. Root without capabilities may not read mode 000."""
    store = bench.open()
    upper = bench.session(store, "s1", {"d/closed": b"x", "open": b"y"})
    (upper / "d").chmod(0o000)
    (upper / "open").chmod(0o200)

    def refused(*_given: object, **_more: object) -> bool:
        # As the kernel answers where no capability is held; whoever runs this test may have them all.
        return False

    monkeypatch.setattr(os, "access", refused)
    made = examine(store, "s1")
    assert (made.reject_class, made.conflicts) == ("unreadable", [("d", "unreadable"), ("open", "unreadable")])
    monkeypatch.undo()
    forget(store, "s1")
    assert os.listdir(bench.path / "sessions") == []
    store.close()


class _FullDoor(QuickDoor):
    """A disk that is full at one change of a kind."""

    def __init__(self, step: str, after: int) -> None:
        self._step, self._left = step, after

    def before(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == -1:
                raise OSError(errno.ENOSPC, "full")


@pytest.mark.parametrize(("step", "after"), [("create", 0), ("write", 0), ("write", 1), ("create", 1), ("syncfs", 0)])
def test_a_full_disk_at_a_publish_is_told_and_the_session_is_whole(bench: Bench, step: str, after: int) -> None:
    """Issue 7: all or nothing; what was not published is still there to be published."""
    store = bench.open()
    bench.session(store, "s1", {"a.txt": b"one\n2\n3\n4\n5\n"})
    bench.session(store, "s2", {"a.txt": b"1\n2\n3\n4\nfive\n", "n/x": b"x"})
    publish(store, "s1")
    before = contents(store)
    store.door = _FullDoor(step, after)
    made = examine(store, "s2")
    with pytest.raises(NoSpace):
        commit(store, "s2", made, stage_merged(store, "s2", made))
    assert contents(store) == before
    store.door = QuickDoor()
    publish(store, "s2")
    assert contents(store)["a.txt"] == b"one\n2\n3\n4\nfive\n"
    assert contents(store)["n/x"] == b"x"
    store.close()


@pytest.mark.parametrize("step", ["mkdir", "link", "mknod", "syncfs", "create", "rename"])
def test_a_full_disk_at_a_squash_is_told_and_nothing_has_changed(bench: Bench, step: str) -> None:
    """Issue 7: a squash that fails leaves the layers as they were."""
    store = bench.open()
    bench.publish(store, "s1", {"n/x": b"x", "a.txt": None})
    bench.publish(store, "s2", {"n/y": b"y"})
    before, ids = contents(store), store.manifest.ids
    store.door = _FullDoor(step, 0)
    with pytest.raises(NoSpace):
        squash(store)
    store.door = QuickDoor()
    assert (contents(store), store.manifest.ids) == (before, ids)
    assert sorted(os.listdir(bench.path / "layers")) == sorted(ids)
    assert os.listdir(bench.path / "staging") == []
    assert squash(store)
    store.close()


# -- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leased", "blocks"),
    [
        (set[str](), [("5", "4", "3", "2", "1")]),
        ({"3"}, [("5", "4"), ("3", "2", "1")]),
        ({"5"}, [("5", "4", "3", "2", "1")]),
        ({"4", "2"}, [("4", "3"), ("2", "1")]),
        ({"1"}, [("5", "4", "3", "2")]),
        ({"5", "4", "3", "2", "1"}, []),
    ],
)
def test_a_block_never_reaches_across_the_newest_layer_of_a_lease(
    leased: set[str], blocks: list[tuple[str, ...]]
) -> None:
    """Checklist 341: squash never splits a lease; systems 5.6: maximal runs of two and more."""
    assert blocks_of(("5", "4", "3", "2", "1"), leased) == blocks


def test_squash_never_touches_the_base_and_a_publish_that_came_between_stays_on_top(bench: Bench) -> None:
    """Checklist 341: the base is not squashed, a racing publish survives; marks that hide nothing go."""
    store = bench.open()
    bench.publish(store, "s1", {"n/x": b"x", "temporary": b"t"})
    bench.publish(store, "s2", {"temporary": None, "a.txt": None})
    base = sorted(str(path) for path in bench.base.rglob("*"))

    class Racing(QuickDoor):
        def after(self, step: str) -> None:
            if step == "syncfs" and len(store.manifest.layers) == 2:
                store.door = QuickDoor()
                bench.publish(store, "s3", {"raced": b"raced"})

    store.door = Racing()
    (block,) = squash(store)
    assert [layer_id[0] for layer_id in store.manifest.ids] == ["L", "S"]
    assert contents(store) == {
        "d": b"",
        "d/x": b"x",
        "d/y": b"y",
        "link": b"a.txt",
        "n": b"",
        "n/x": b"x",
        "raced": b"raced",
    }
    assert block.layer.entries == 3
    assert sorted(str(path) for path in bench.base.rglob("*")) == base
    store.close()


def test_a_stack_at_its_limit_refuses_the_next_layer_until_it_is_squashed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overlays take so many layers; a publish beyond is refused, not broken."""
    limit = 5
    monkeypatch.setattr("cloche_agentd.layers.publish.MAX_LAYERS", limit)
    store = bench.open()
    for number in range(limit):
        bench.publish(store, f"s{number}", {f"f{number}": b""})
    bench.session(store, "more", {"more": b""})
    assert examine(store, "more").reject_class == "layer_limit"
    squash(store)
    store.reclaim()
    publish(store, "more")
    assert len(contents(store)) == limit + 6
    store.close()


def test_folders_given_up_are_closed(bench: Bench) -> None:
    """No descriptor stays open, whatever was looked at."""
    store = bench.open()
    bench.publish(store, "s1", {"n/x/y": b"x", "a.txt": None})
    bench.publish(store, "s2", {"n/x/z": b"y", "d//": None})
    open_before = len(os.listdir("/proc/self/fd"))
    contents(store)
    _export(store)
    squash(store)
    store.reclaim()
    assert isinstance(store.view(store.manifest), Folder)
    gc.collect()
    store.view(store.manifest).close()
    assert len(os.listdir("/proc/self/fd")) <= open_before + 2
    store.close()
