"""Files of the SDK: what is told of an entry, and what is kept with it.

Source: issue 3, item 4; agent-protocol, part 2.4.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche_contract.errors import ContextNotFound, FileNotFound, InvalidArgument, TaskNotFound
from cloche_sdk import AsyncSandbox


async def test_entries_have_their_facts_and_depths(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    await sandbox.files.write(f"{tmp_path}/d/e/f", "12345", mode="640")
    await sandbox.commands.run(f"ln -s e/f {tmp_path}/d/link")
    entries = (await sandbox.files.list(f"{tmp_path}/d", depth=2)).entries
    assert [entry.path.removeprefix(f"{tmp_path}/") for entry in entries] == ["d/e", "d/e/f", "d/link"]
    file, link = entries[1], entries[2]
    assert (file.size, file.mode, file.type) == (5, 0o640, "file")
    assert file.owner
    assert file.modified is not None
    assert file.modified.startswith("20")
    assert (link.type, link.target) == ("symlink", f"{tmp_path}/d/e/f")


async def test_metadata_stays_with_its_file_until_it_is_written_again(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    path = f"{tmp_path}/file"
    await sandbox.files.write(path, "x", metadata={"author": "some body", "run-id": "7"})
    info = await sandbox.files.get_info(path)
    if not info.metadata and "tmpfs" in (await sandbox.commands.run(f"stat -f -c %T {tmp_path}")).stdout:
        pytest.skip("the file system of this folder keeps no metadata")
    assert info.metadata == {"author": "some body", "run-id": "7"}
    (listed,) = (await sandbox.files.list(str(tmp_path))).entries
    assert listed.metadata == info.metadata
    await sandbox.files.write(path, "y")
    assert (await sandbox.files.get_info(path)).metadata == {}


@pytest.mark.parametrize("metadata", [{"Case": "x"}, {"": "x"}, {"a b": "x"}, {"a": "ü"}, {"a": " x"}, {"a": "x\ny"}])
async def test_metadata_of_another_form_is_refused(
    sandbox: AsyncSandbox, tmp_path: Path, metadata: dict[str, str]
) -> None:
    """What a header would change or end is refused, before anything is written."""
    with pytest.raises(InvalidArgument) as refused:
        await sandbox.files.write(f"{tmp_path}/file", "x", metadata=metadata)
    assert refused.value.details["field"] == "metadata"
    assert not (tmp_path / "file").exists()


async def test_f24_what_removes_or_ends_nothing_says_so(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    """container-use#320: a name with a slip in it must not look like work that is done."""
    await sandbox.files.make_dir(f"{tmp_path}/d/e")
    await sandbox.files.write(f"{tmp_path}/file", "x")
    for name in ("d", "file"):
        assert await sandbox.files.remove(f"{tmp_path}/{name}") is True
        assert await sandbox.files.remove(f"{tmp_path}/{name}") is False
    assert await sandbox.files.make_dir(f"{tmp_path}/new") is True
    assert await sandbox.files.make_dir(f"{tmp_path}/new") is False
    assert await sandbox.commands.kill(4_194_303) is False
    assert await sandbox.pty.kill(4_194_303) is False
    for call in (sandbox.contexts.remove, sandbox.contexts.restart, sandbox.contexts.interrupt):
        with pytest.raises(ContextNotFound):
            await call("nobody")
    for call in (sandbox.tasks.cancel, sandbox.tasks.get):
        with pytest.raises(TaskNotFound):
            await call("0" * 32)
    with pytest.raises(FileNotFound):
        await sandbox.files.rename(f"{tmp_path}/nothing", f"{tmp_path}/b")
    with pytest.raises(FileNotFound):
        await sandbox.files.watch(f"{tmp_path}/nothing")
