"""Files arrive as they were sent."""

import hashlib
import os

import anyio
import pytest

from cloche_testkit.agent_client import AgentRefused, TestAgent
from cloche_testkit.conformance.base import WITHIN_S, ProviderSuite


class FileConformance(ProviderSuite):
    """GET and POST /files, filesystem.Filesystem/ListDir."""

    @pytest.fixture
    async def folder(self, agent: TestAgent) -> str:
        """An empty folder that the default user may write to."""
        outcome = await agent.run('mktemp -d "${HOME:-/tmp}/conformance.XXXXXX"')
        return outcome.stdout.decode().strip()

    @pytest.mark.parametrize(
        "data",
        [b"", bytes(range(256)), b"\x00\xff\x01\x80", b"a\r\nb\n\n", "naïve 😀\u2028".encode(), os.urandom(1 << 20)],
        ids=["empty", "every byte", "four bytes", "line ends", "text", "1 MiB"],
    )
    async def test_f1_bytes_come_back_equal(self, agent: TestAgent, folder: str, data: bytes) -> None:
        """Faults F1 and F2: SHA-256 equal both ways, seen from inside too."""
        await agent.write(f"{folder}/data", data)
        assert await agent.read(f"{folder}/data") == data
        inside = await agent.run(f"sha256sum < {folder}/data")
        assert inside.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()

    @pytest.mark.parametrize("name", ["😀.txt", "résumé.pdf", '"a b".txt', "a?b&c=d#e%20.txt", "-rf", " lead"])
    async def test_f16_any_name_comes_back(self, agent: TestAgent, folder: str, name: str) -> None:
        """Fault F16."""
        await agent.write(f"{folder}/{name}", b"content")
        assert await agent.read(f"{folder}/{name}") == b"content"
        assert [entry["name"] for entry in await agent.list(folder)] == [name]

    async def test_a_write_makes_the_folders_above(self, agent: TestAgent, folder: str) -> None:
        await agent.write(f"{folder}/a/b/c.txt", b"deep")
        assert (await agent.run(f"cat {folder}/a/b/c.txt")).stdout == b"deep"

    async def test_f18_a_mode_is_set_and_kept(self, agent: TestAgent, folder: str) -> None:
        """Fault F18."""
        await agent.write(f"{folder}/tool", b"#!/bin/sh\necho one\n", mode="755")
        assert (await agent.run(f"{folder}/tool")).stdout == b"one\n"
        await agent.write(f"{folder}/tool", b"#!/bin/sh\necho two\n")
        assert (await agent.run(f"{folder}/tool")).stdout == b"two\n"

    async def test_f23_what_was_written_is_there_in_the_next_call(self, agent: TestAgent, folder: str) -> None:
        """Fault F23: by a command or by the file API, seen by the other."""
        await agent.run(f"echo command > {folder}/a")
        await agent.write(f"{folder}/b", b"api\n")
        assert await agent.read(f"{folder}/a") == b"command\n"
        assert (await agent.run(f"cat {folder}/b")).stdout == b"api\n"

    async def test_f27_a_reader_never_sees_half_a_file(self, agent: TestAgent, folder: str) -> None:
        """Fault F27: a write replaces the file at once."""
        old, new = b"o" * 200_000, b"n" * 200_000
        await agent.write(f"{folder}/f", old)
        seen: set[bytes] = set()
        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:
                for data in (new, old, new, old):
                    tasks.start_soon(agent.write, f"{folder}/f", data)
                seen = {await agent.read(f"{folder}/f") for _ in range(8)}
        assert seen <= {old, new}

    async def test_the_kind_of_each_entry_is_told(self, agent: TestAgent, folder: str) -> None:
        await agent.run(f"cd {folder} && echo hi > file && mkdir dir && ln -s file link")
        entries = {entry["name"]: entry for entry in await agent.list(folder)}
        assert sorted(entries) == ["dir", "file", "link"]
        assert entries["dir"]["type"] == "FILE_TYPE_DIRECTORY"
        assert (entries["file"]["type"], int(entries["file"]["size"])) == ("FILE_TYPE_FILE", 3)
        assert entries["link"].get("symlinkTarget")

    @pytest.mark.parametrize(
        ("path", "code"),
        [("missing", "file_not_found"), ("dir", "file_is_directory"), ("file/below", "file_not_directory")],
    )
    async def test_a_path_that_is_no_file_has_its_own_error(
        self, agent: TestAgent, folder: str, path: str, code: str
    ) -> None:
        await agent.run(f"cd {folder} && mkdir dir && echo hi > file")
        with pytest.raises(AgentRefused) as refusal:
            await agent.read(f"{folder}/{path}")
        assert refusal.value.code == code

    async def test_a_pipe_or_device_is_refused_and_does_not_hang(self, agent: TestAgent, folder: str) -> None:
        await agent.run(f"mkfifo {folder}/pipe")
        for path in (f"{folder}/pipe", "/dev/zero"):
            with anyio.fail_after(WITHIN_S), pytest.raises(AgentRefused) as refusal:
                await agent.read(path)
            assert refusal.value.code == "file_special"

    async def test_a_folder_that_is_missing_cannot_be_listed(self, agent: TestAgent, folder: str) -> None:
        with pytest.raises(AgentRefused) as refusal:
            await agent.list(f"{folder}/missing")
        assert refusal.value.code == "file_not_found"
