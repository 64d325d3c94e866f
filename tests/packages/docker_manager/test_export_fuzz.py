"""Streams that nobody wrote by hand: names, links and bytes by chance. Nothing outside changes, whatever they say."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cloche_contract.errors import ExportRejected
from cloche_docker_manager.apply import Written, apply_to_folder
from cloche_docker_manager.archive import write_archive
from cloche_docker_manager.export_stream import Spool
from tests.packages.docker_manager.lying_agent import lay_out_destination, named, stream, tree

Record = tuple[str, bytes, bytes, int]

_PARTS = st.sampled_from(
    [b"kept", b"file", b"away", b"a", b"b", b"a", b"..", b".", b"", b".wh.a", b".wh..wh..opq", b"\xff", b"x" * 300]
)
_PATHS = st.lists(_PARTS, min_size=1, max_size=4).map(b"/".join)
_TARGETS = st.sampled_from([b"../outside", b"/etc", b"a", b"", b"away/file", b"../../.."])
_RECORDS = st.tuples(
    st.sampled_from(["clear", "delete", "folder", "folder", "file", "file", "symlink", "symlink", "data", "hardlink"]),
    _PATHS,
    _TARGETS,
    st.integers(0, 0o7777),
)
_LISTS = st.lists(_RECORDS, max_size=8)
_IN_ORDER = st.booleans()
# Where bytes are changed, and to what.
_DAMAGE = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2)
_SETTINGS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
_ORDER = ("clear", "delete")


def made(records: list[Record], *, in_order: bool, damage: list[tuple[int, int]]) -> bytes:
    """The stream; in the order of an honest one it gets further."""
    if in_order:
        later = len(_ORDER)
        records = sorted(records, key=lambda one: (_ORDER.index(one[0]) if one[0] in _ORDER else later, one[1]))
    data = bytearray(stream(*(_record(*one) for one in records)))
    for place, value in damage:
        if place < len(data):
            data[place] = value
    return bytes(data)


def _record(kind: str, path: bytes, target: bytes, mode: int) -> bytes:
    more: dict[str, Any] = {"mode": mode} if kind in ("folder", "file", "symlink") else {}
    if kind == "symlink":
        more["target"] = base64.b64encode(target).decode()
    return named(kind, path, target if kind in ("file", "data") else b"", **more)


def _changes_nothing_outside(records: list[Record], in_order: bool, damage: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory(prefix="cl-fuzz-") as name, tempfile.TemporaryFile() as file:
        dest = lay_out_destination(Path(name))
        whole, outside = tree(dest.parent), tree(dest.parent / "outside")
        spool = Spool(file)
        try:
            spool.feed(made(records, in_order=in_order, damage=damage))
            spool.end()
        except ExportRejected:
            assert tree(dest.parent) == whole
            return
        root = os.open(dest, os.O_RDONLY | os.O_DIRECTORY)
        try:
            apply_to_folder(file, root, Written(), draft=b".draft", host_executed=True)
        finally:
            os.close(root)
        write_archive(file, dest.parent / "a.tar", ".draft", Written(), compressed=False, host_executed=True)
        assert sorted(os.listdir(dest.parent)) == ["a.tar", "dest", "outside"]
        assert tree(dest.parent / "outside") == outside
        assert os.listdir(name) == ["out"]
        assert not [path for path in dest.rglob("*") if path.lstat().st_mode & 0o7000]


@_SETTINGS
@given(_LISTS, _IN_ORDER, _DAMAGE)
def test_p14_p6_no_stream_by_chance_writes_outside(
    records: list[Record], in_order: bool, damage: list[tuple[int, int]]
) -> None:
    """Checklist 344, faults P6, P14: refused as a whole with nothing written, or applied inside alone."""
    _changes_nothing_outside(records, in_order, damage)


@pytest.mark.soak
def test_p14_many_streams_by_chance_write_nothing_outside(scale: int, seed: int) -> None:
    """Issue 7: the same, as often as asked for, with the streams of the seed."""
    many = settings(_SETTINGS, max_examples=50 * scale, derandomize=False)
    hypothesis.seed(seed)(many(given(_LISTS, _IN_ORDER, _DAMAGE)(_changes_nothing_outside)))()
