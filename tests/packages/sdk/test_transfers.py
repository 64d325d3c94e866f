"""upload_file and download_file: exact bytes, in parts where they are many, and errors that say what to do.

The agent runs here without isolation; checklist 314 to 317 and the fault rows that the tests name.
"""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from cloche_contract.errors import FileTooLarge, ProviderFailed, ProviderUnavailable
from cloche_sdk import AsyncSandbox
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.stub_agent import Answer, Peer, Request, stub
from tests.packages.sdk.tools import Tools

MIB = 1_048_576
ALL_BYTES = bytes(range(256))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("data", [b"", b"\x00\xff\x01\x80", ALL_BYTES * 4096], ids=["empty", "four", "1 MiB"])
async def test_f2_f6_bytes_make_the_round_trip_exactly(tools: Tools, tmp_path: Path, data: bytes) -> None:
    """agentscope-java#2447, Termix#216: the file holds the bytes, not their base64."""
    path = tmp_path / "a.bin"
    written = await tools.call("upload_file", path=str(path), content_base64=encoded(data))
    assert written == {
        "success": True,
        "bytes_written": len(data),
        "size": len(data),
        "sha256": sha(data),
        "complete": True,
    }
    assert path.read_bytes() == data
    read = await tools.call("download_file", path=str(path))
    assert read == {
        "content_base64": encoded(data),
        "bytes_read": len(data),
        "sha256": sha(data),
        "size": len(data),
        "offset": 0,
        "eof": True,
    }


async def test_f7_f30_a_binary_file_is_told_by_its_content(tools: Tools, tmp_path: Path) -> None:
    """upstash/box#95 and a cloudflare changelog: whatever the name says; the error names the way that works."""
    for name in ("picture.png", "table.xlsx", "looks-like.txt"):
        path = tmp_path / name
        path.write_bytes(b"PK\x03\x04\xff\xfe\x89PNG" + ALL_BYTES)
        failure = await tools.refused("read_file", path=str(path))
        assert (failure["code"], "base64" in failure["suggestion"]) == ("not_text", True)
        read = await tools.call("download_file", path=str(path))
        assert base64.b64decode(read["content_base64"]) == path.read_bytes()


async def test_f9_a_read_gives_the_content_and_nothing_around_it(tools: Tools, tmp_path: Path) -> None:
    """sandbox-sdk#10: no form, no header, no newline."""
    (tmp_path / "a").write_bytes(b"--boundary\r\ncontent-type: x\r\n\r\nbody")
    assert (await tools.call("read_file", path=str(tmp_path / "a")))[
        "content"
    ] == "--boundary\r\ncontent-type: x\r\n\r\nbody"


@pytest.mark.parametrize("size", [12_288, 18_000, 30_000, 486_000])
async def test_f10_f13_what_was_written_is_told_by_size_and_hash(tools: Tools, tmp_path: Path, size: int) -> None:
    """OpenSandbox#1016, claude-code#50358: never cut in silence."""
    data = os.urandom(size)
    written = await tools.call("upload_file", path=str(tmp_path / "a"), content_base64=encoded(data))
    assert (written["bytes_written"], written["sha256"]) == (size, sha(data))
    assert (tmp_path / "a").read_bytes() == data


async def test_f12_more_than_one_call_may_carry_is_refused_with_the_limit(tools: Tools, tmp_path: Path) -> None:
    """fastmcp#854: before anything is decoded or sent; the description says how large files go."""
    failure = await tools.refused("upload_file", path=str(tmp_path / "a"), content_base64="A" * 5_000_000)
    assert failure["error"] == "content_base64: is longer than allowed; characters at most: 1398104."
    failure = await tools.refused("upload_file", path=str(tmp_path / "a"), content_base64=encoded(b"x" * (MIB + 1)))
    assert failure["error"] == "content_base64: is longer than allowed; bytes at most: 1048576."
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_too_large_is_refused_whole_and_read_in_parts(tools: Tools, tmp_path: Path) -> None:
    """Checklist 316: no partial success; the parts meet."""
    data = os.urandom(2 * MIB + 5)
    path = tmp_path / "big"
    path.write_bytes(data)
    failure = await tools.refused("download_file", path=str(path))
    assert (failure["code"], failure["details"]) == ("file_too_large", {"size": 2 * MIB + 5, "limit": MIB})
    assert "parts" in failure["suggestion"]
    found, eof = b"", False
    while not eof:
        part = await tools.call("download_file", path=str(path), offset=len(found), length=MIB)
        assert (part["offset"], part["size"]) == (len(found), len(data))
        found, eof = found + base64.b64decode(part["content_base64"]), part["eof"]
    assert sha(found) == sha(data)


async def test_a_part_beyond_the_end_is_empty(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "empty").touch()
    part = await tools.call("download_file", path=str(tmp_path / "a"), offset=3)
    assert (part["content_base64"], part["size"], part["eof"]) == ("", 3, True)
    part = await tools.call("download_file", path=str(tmp_path / "empty"), length=10)
    assert (part["content_base64"], part["size"], part["eof"]) == ("", 0, True)
    part = await tools.call("download_file", path=str(tmp_path / "a"), offset=1, length=1)
    assert (part["content_base64"], part["bytes_read"], part["eof"]) == (encoded(b"b"), 1, False)


async def test_an_upload_in_parts_leaves_the_old_file_until_the_last(tools: Tools, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    first = await tools.call("upload_file", path=str(path), content_base64=encoded(b"abc"), last=False, mode="755")
    assert (first["complete"], first["size"], path.read_bytes()) == (False, 3, b"old")
    more = {"path": str(path), "transfer_id": first["transfer_id"]}
    failure = await tools.refused("upload_file", **more, content_base64=encoded(b"x"), offset=7)
    assert (failure["code"], failure["details"]) == ("transfer_conflict", {"offset": 3})
    last = await tools.call("upload_file", **more, content_base64=encoded(b"def"), offset=first["size"])
    assert (last["complete"], last["size"], last["sha256"]) == (True, 6, sha(b"abcdef"))
    assert "transfer_id" not in last
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"abcdef", 0o755)
    failure = await tools.refused("upload_file", **more, content_base64="", offset=6)
    assert failure["code"] == "transfer_not_found"


@pytest.mark.parametrize("path", ["~/x", "$HOME/x", "x", "/a/../x", "/a\0b", "/" + "é" * 2048])
async def test_f21_only_absolute_paths_are_taken(tools: Tools, unsandboxed_plane: ScriptedPlane, path: str) -> None:
    """execd#726: refused before anything is asked, never taken literally; checklist 315."""
    for tool, more in (("upload_file", {"content_base64": ""}), ("download_file", {})):
        failure = await tools.refused(tool, path=path, **more)
        assert (failure["code"], failure["details"]["field"]) == ("invalid_argument", "path")
    assert unsandboxed_plane.script.operations() == []


@pytest.mark.parametrize("content", ["!!!!", "QQ", "QQ=", "QR==", "QQ==\n", "é===", "-_-_", "\ud800"])
async def test_what_is_not_strict_base64_touches_nothing(
    tools: Tools, unsandboxed_plane: ScriptedPlane, tmp_path: Path, content: str
) -> None:
    """Checklist 315: line breaks, the other alphabet, missing padding and stray bits included."""
    failure = await tools.refused("upload_file", path=str(tmp_path / "a"), content_base64=content)
    assert failure["details"]["field"] == "content_base64"
    assert unsandboxed_plane.script.operations() == []


async def test_f31_a_long_listing_is_cut_and_counted(tools: Tools, tmp_path: Path) -> None:
    """agent-sandbox MCP README: the context is not flooded, and the total is true."""
    for number in range(1_500):
        (tmp_path / f"{number:04d}").touch()
    listed = await tools.call("list_files", path=str(tmp_path))
    assert (len(listed["files"]), listed["total"], listed["truncated"]) == (1_000, 1_500, True)


async def test_missing_and_special_files_have_categories_of_their_own(tools: Tools, tmp_path: Path) -> None:
    """Checklist 317: fixed texts."""
    cases: Mapping[str, str] = {
        str(tmp_path / "none"): "file_not_found",
        str(tmp_path): "file_is_directory",
        "/dev/zero": "file_special",
    }
    for path, code in cases.items():
        failure = await tools.refused("download_file", path=path)
        assert failure["code"] == code
        assert path not in str(failure)


async def test_64_mib_go_in_and_out_while_the_server_stays_small(tools: Tools, tmp_path: Path, scale: int) -> None:
    """Issue 4: equal SHA-256, and this process, which is the server, grows by less than 40 MB; 1 GiB in a soak."""
    path, block = str(tmp_path / "large"), os.urandom(MIB)
    content = encoded(block)
    await tools.call("upload_file", path=path, content_base64=content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts, digest, more = min(64 * scale, 1024), hashlib.sha256(), {}
    answer = {}
    for number in range(parts):
        digest.update(block)
        last = number == parts - 1
        answer = await tools.call(
            "upload_file", path=path, content_base64=content, offset=number * MIB, last=last, **more
        )
        more = {"transfer_id": answer["transfer_id"]} if not last else {}
    assert answer["sha256"] == digest.hexdigest()
    read = hashlib.sha256()
    for number in range(parts):
        part = await tools.call("download_file", path=path, offset=number * MIB)
        read.update(base64.b64decode(part["content_base64"]))
    assert read.hexdigest() == digest.hexdigest()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


# An agent that misbehaves


def answering(head: str, body: bytes = b"") -> Answer:
    async def answer(peer: Peer, request: Request) -> None:
        await peer.send(f"HTTP/1.1 {head}\r\n\r\n".encode() + body)
        peer.cut()

    return answer


async def test_f20_a_download_that_breaks_is_an_error_and_never_short(tmp_path: Path) -> None:
    """moltis#1040: no empty file that looks complete."""
    head = "206 X\r\ncontent-range: bytes 0-99/100\r\ncontent-length: 100"
    async with (
        stub(tmp_path, answering(head, b"x" * 40)) as found,
        await AsyncSandbox.create(doors=found.doors) as sandbox,
    ):
        with pytest.raises(ProviderUnavailable):
            await sandbox.transfers.download("/a")


@pytest.mark.parametrize(
    ("head", "body", "error"),
    [
        ("200 X\r\ncontent-length: 9000000", b"x" * 100, FileTooLarge),
        ("200 X\r\ncontent-length: 3", b"xxx", None),
        ("200 X\r\ntransfer-encoding: chunked", b"3\r\nxxx\r\n0\r\n\r\n", ProviderFailed),
        ("206 X\r\ncontent-range: bytes 0-2/3\r\ncontent-length: 9", b"x" * 9, ProviderFailed),
        ("206 X\r\ncontent-range: bytes 5-7/8\r\ncontent-length: 3", b"xxx", ProviderFailed),
        ("200 X\r\ncontent-encoding: gzip\r\ncontent-length: 3", b"xxx", ProviderFailed),
    ],
)
async def test_a_false_length_or_an_encoded_body_is_no_success(
    tmp_path: Path, head: str, body: bytes, error: type[Exception] | None
) -> None:
    """Checklist 316: what is announced is not believed, and an encoded body is refused unread."""
    async with stub(tmp_path, answering(head, body)) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        if error is None:
            assert (await sandbox.transfers.download_whole("/a")).data == b"xxx"
            return
        with pytest.raises(error):
            await sandbox.transfers.download_whole("/a")


async def test_an_upload_whose_answer_does_not_match_is_an_error(tmp_path: Path) -> None:
    """F10: verified by what the other side says it has."""
    body = b'{"size": 2, "sha256": "00", "complete": true}'
    head = f"200 X\r\ncontent-length: {len(body)}"
    async with stub(tmp_path, answering(head, body)) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        with pytest.raises(ProviderFailed):
            await sandbox.transfers.upload("/a", b"abc")
        with pytest.raises(ProviderFailed):
            await sandbox.transfers.upload("/a", b"ab")
