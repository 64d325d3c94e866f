"""Watches of the SDK: what changed, in order, from the moment that the watch is there; what was missed is said.

Source: issue 3, item 4; fault L27.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import FileNotFound
from cloche_sdk import AsyncSandbox, Doors, FileChange, Sandbox
from tests.packages.sdk.cutter import cut_line

WITHIN_S = 30


async def test_changes_from_the_watch_on_are_told_in_their_order(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "before").touch()
    async with await sandbox.files.watch(str(folder)) as watch:
        await sandbox.commands.run("echo x > a; mv a b; chmod 600 b; rm b", cwd=str(folder))
        seen: list[FileChange] = []
        with anyio.fail_after(WITHIN_S):
            while FileChange("b", "remove") not in seen:
                seen.append(await watch.next())
    assert seen == [
        FileChange("a", "create"),
        FileChange("a", "write"),
        FileChange("a", "rename"),
        FileChange("b", "create"),
        FileChange("b", "chmod"),
        FileChange("b", "remove"),
    ]


async def test_l27_what_lies_below_new_directories_is_told(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    """microsandbox#537: files in new sub-folders were missed."""
    watch = await sandbox.files.watch(str(tmp_path), recursive=True)
    await sandbox.commands.run(f"mkdir -p {tmp_path}/one/two && echo x > {tmp_path}/one/two/three")
    with anyio.fail_after(WITHIN_S):
        assert await watch.follow(lambda change: change.name != "one/two/three")


async def test_a_watch_ends_when_its_time_is_over(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    watch = await sandbox.files.watch(str(tmp_path))
    with anyio.fail_after(WITHIN_S):
        assert not await watch.follow(lambda change: True, timeout=0.01)


async def test_a_lost_connection_is_told_as_missed_changes(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    """What happened while nobody listened is not known; that it is not known is said."""
    folder = tmp_path / "w"
    folder.mkdir()
    async with cut_line(sandbox, tmp_path) as line, await sandbox.files.watch(str(folder)) as watch:
        line.cut()
        with anyio.fail_after(WITHIN_S):
            assert (await watch.next()).type == "overflow"
            (folder / "after").touch()
            assert await watch.next() == FileChange("after", "create")


async def test_what_is_not_there_cannot_be_watched(sandbox: AsyncSandbox) -> None:
    with pytest.raises(FileNotFound):
        await sandbox.files.watch("/nowhere")


def test_the_synchronous_half_watches_too(agent_doors: Doors, tmp_path: Path) -> None:
    with Sandbox.create(doors=agent_doors) as sandbox, sandbox.files.watch(str(tmp_path)) as watch:
        (tmp_path / "new").touch()
        assert watch.next() == FileChange("new", "create")
