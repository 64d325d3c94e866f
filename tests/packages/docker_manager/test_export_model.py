"""Random work over real overlays, exported by the manager onto a real folder, equals a plain model."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

import hypothesis
import pytest
from hypothesis import given, settings

from cloche_agentd._gen import wire
from cloche_docker_manager.apply import Written, apply_to_folder
from cloche_docker_manager.archive import write_archive
from cloche_docker_manager.export_stream import Spool
from tests.packages.agentd.layer_model import State
from tests.packages.agentd.test_layer_model import PLAIN_NAMES, SETTINGS, Story, World, stories, tell
from tests.packages.docker_manager.unpacked import unpack

# Names with the prefix of whiteouts are refused by the manager; in layers they are names.
_STORIES = stories(PLAIN_NAMES)


def on_disk(folder: Path) -> State:
    """What a folder holds, as the model has it."""
    found: State = {}
    for path in folder.rglob("*"):
        mode, name = path.lstat().st_mode, str(path.relative_to(folder))
        if stat.S_ISLNK(mode):
            found[name] = ("link", 0, os.fsencode(os.readlink(path)))
        elif stat.S_ISDIR(mode):
            found[name] = ("folder", stat.S_IMODE(mode), b"")
        else:
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found


def without_set_ids(state: State) -> State:
    """What is left of modes on the host."""
    return {path: (kind, mode & 0o777, content) for path, (kind, mode, content) in state.items()}


def exports_equal_the_model(world: World) -> None:
    """The folder, the same export again, and the archive unpacked over the base as container layers are."""
    base = world.desk.folder / "base"
    body = world.desk.client.call("POST", wire.ROUTE_EXPORT_LAYERS, b"{}").body
    with tempfile.TemporaryDirectory(prefix="cl-out-") as name, tempfile.TemporaryFile() as file:
        spool = Spool(file)
        spool.feed(body)
        spool.end()
        out, wanted = Path(name), without_set_ids(world.head)
        assert _applied(file, base, out / "dir") == wanted
        again = Written()
        _apply(file, out / "dir", again)
        assert (again.files, again.symlinks, again.deletes, again.bytes) == (0, 0, 0, 0)
        assert on_disk(out / "dir") == wanted
        write_archive(file, out / "out.tar", "draft", Written(), compressed=False, host_executed=False)
        shutil.copytree(base, out / "unpacked", symlinks=True)
        unpack(out / "out.tar", out / "unpacked")
        assert on_disk(out / "unpacked") == wanted


def _applied(file: BinaryIO, base: Path, place: Path) -> State:
    shutil.copytree(base, place, symlinks=True)
    _apply(file, place, Written())
    return on_disk(place)


def _apply(file: BinaryIO, place: Path, written: Written) -> None:
    root = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        apply_to_folder(file, root, written, draft=b".draft", host_executed=False)
    finally:
        os.close(root)


@SETTINGS
@given(_STORIES)
def test_w3_f18_what_the_manager_exports_equals_a_plain_model(story: Story) -> None:
    """Issue 7, checklist 349, fault F18: real overlays, the manager's own writer, nothing simulated between them."""
    tell(story, exports_equal_the_model)


@pytest.mark.soak
def test_w3_many_random_exports_equal_the_model(scale: int, seed: int) -> None:
    """Issue 7: the same, as often as asked for, with the stories of the seed."""
    many = settings(SETTINGS, max_examples=2 * scale, derandomize=False)

    def check(story: Story) -> None:
        tell(story, exports_equal_the_model)

    hypothesis.seed(seed)(many(given(_STORIES)(check)))()
