"""The unmodified Python SDK of E2B against a local sandbox: files, their watches, their signed addresses.

Source: issue 3, "Shown by"; decision D24; agent-protocol, parts 2.3 and 2.4.
"""

# e2b annotates a bare IO.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Generator

import anyio
import e2b_code_interpreter as e2b
import httpx
import pytest
from e2b import FileNotFoundException, FilesystemEvent, FilesystemEventType, FileType
from e2b.sandbox.filesystem.filesystem import WriteEntry

from cloche_sdk import Endpoint, Sandbox
from tests.e2e.e2b_clients import async_client, client, listening_sandbox

pytestmark = pytest.mark.anyio

WITHIN_S = 30


@pytest.fixture(scope="module")
def place() -> Generator[Endpoint]:
    sandbox: Sandbox
    with listening_sandbox("base") as sandbox:
        yield sandbox.endpoint()


@pytest.fixture(scope="module")
def theirs(place: Endpoint) -> e2b.Sandbox:
    return client(place)


def test_text_bytes_and_streams_make_the_round_trip(theirs: e2b.Sandbox) -> None:
    assert theirs.files.write("/home/user/a/text.txt", "grüße\n").path == "/home/user/a/text.txt"
    assert theirs.files.read("/home/user/a/text.txt") == "grüße\n"
    every = bytes(range(256)) * 400
    theirs.files.write("a/every.bin", every)
    assert bytes(theirs.files.read("a/every.bin", format="bytes")) == every
    theirs.files.write("a/stream.bin", io.BytesIO(every))
    assert b"".join(theirs.files.read("a/stream.bin", format="stream")) == every


def test_metadata_stays_with_its_file(theirs: e2b.Sandbox) -> None:
    written = theirs.files.write("/home/user/noted.txt", "text", metadata={"Author": "Ada", "stage": "draft"})
    assert written.metadata == {"author": "Ada", "stage": "draft"}
    assert theirs.files.get_info("/home/user/noted.txt").metadata == {"author": "Ada", "stage": "draft"}


def test_many_files_are_written_in_one_call(theirs: e2b.Sandbox) -> None:
    written = theirs.files.write_files([WriteEntry(path=f"/home/user/many/{n}", data=str(n)) for n in range(3)])
    assert [entry.name for entry in written] == ["0", "1", "2"]
    assert theirs.files.read("/home/user/many/2") == "2"


def test_directories_are_made_listed_renamed_and_removed(theirs: e2b.Sandbox) -> None:
    assert theirs.files.make_dir("/home/user/d/e")
    assert not theirs.files.make_dir("/home/user/d/e")
    theirs.files.write("/home/user/d/f", "f")
    shown = {entry.name: entry.type for entry in theirs.files.list("/home/user/d")}
    assert shown == {"e": FileType.DIR, "f": FileType.FILE}
    assert theirs.files.rename("/home/user/d/f", "/home/user/d/g").path == "/home/user/d/g"
    assert theirs.files.exists("/home/user/d/g")
    theirs.files.remove("/home/user/d")
    assert not theirs.files.exists("/home/user/d")


def test_info_tells_size_mode_owner_and_target(theirs: e2b.Sandbox) -> None:
    theirs.files.write("/home/user/i/file", "12345")
    theirs.commands.run("chmod 640 i/file && ln -s file i/link", cwd="/home/user")
    info = theirs.files.get_info("/home/user/i/file")
    assert (info.size, info.permissions, info.owner, info.type) == (5, "-rw-r-----", "user", FileType.FILE)
    assert theirs.files.get_info("/home/user/i/link").symlink_target == "/home/user/i/file"


def test_what_is_not_there_is_not_found(theirs: e2b.Sandbox) -> None:
    for call in (theirs.files.read, theirs.files.list, theirs.files.get_info):
        with pytest.raises(FileNotFoundException):
            call("/home/user/nowhere")


def test_signed_addresses_work_without_a_token(theirs: e2b.Sandbox) -> None:
    theirs.files.write("/home/user/signed", "content")
    with httpx.Client(trust_env=False) as plain:
        url = theirs.download_url("/home/user/signed", use_signature_expiration=60)
        assert plain.get(url).text == "content"
        assert plain.get(url.replace("signature=v1_", "signature=v1_0")).status_code == 401
        upload = theirs.upload_url("/home/user/up", use_signature_expiration=60)
        assert plain.post(upload, files={"file": b"sent"}).status_code == 200
    assert theirs.files.read("/home/user/up") == "sent"


def test_changes_below_a_directory_are_told_when_asked(theirs: e2b.Sandbox) -> None:
    """Their synchronous client polls a watcher."""
    theirs.files.make_dir("/home/user/w")
    watch = theirs.files.watch_dir("/home/user/w", recursive=True)
    theirs.files.write("/home/user/w/sub/new.txt", "x")
    seen = _until(lambda: watch.get_new_events(), ("sub/new.txt", FilesystemEventType.CREATE))
    assert ("sub", FilesystemEventType.CREATE) in seen
    watch.stop()


def _until(
    poll: Callable[[], list[FilesystemEvent]], wanted: tuple[str, FilesystemEventType]
) -> set[tuple[str, FilesystemEventType]]:
    seen: set[tuple[str, FilesystemEventType]] = set()
    # Changes are told in order, and each of these requests takes its time: no pause is needed.
    for _ in range(2000):
        seen |= {(event.name, event.type) for event in poll()}
        if wanted in seen:
            return seen
    raise AssertionError(f"{wanted} was not told, but {seen}")


# -- the asynchronous client ------------------------------------------------------------------------------------


async def test_async_files_make_the_round_trip(place: Endpoint) -> None:
    theirs = async_client(place)
    every = bytes(range(256)) * 400
    await theirs.files.write("/home/user/async/every.bin", every)
    assert bytes(await theirs.files.read("/home/user/async/every.bin", format="bytes")) == every
    stream = await theirs.files.read("/home/user/async/every.bin", format="stream")
    assert b"".join([piece async for piece in stream]) == every
    assert [entry.name for entry in await theirs.files.list("/home/user/async")] == ["every.bin"]
    assert (await theirs.files.rename("/home/user/async/every.bin", "/home/user/async/b")).name == "b"
    await theirs.files.remove("/home/user/async")
    assert not await theirs.files.exists("/home/user/async")


async def test_async_changes_are_streamed(place: Endpoint) -> None:
    """Their asynchronous client follows a stream."""
    theirs = async_client(place)
    await theirs.files.make_dir("/home/user/wa")
    told = asyncio.Event()
    seen: list[tuple[str, FilesystemEventType]] = []

    def note(event: FilesystemEvent) -> None:
        seen.append((event.name, event.type))
        if event.name == "last.txt":
            told.set()

    watch = await theirs.files.watch_dir("/home/user/wa", on_event=note)
    await theirs.files.write("/home/user/wa/first.txt", "x")
    await theirs.files.remove("/home/user/wa/first.txt")
    await theirs.files.write("/home/user/wa/last.txt", "x")
    with anyio.fail_after(WITHIN_S):
        await told.wait()
    await watch.stop()
    assert ("first.txt", FilesystemEventType.REMOVE) in seen
