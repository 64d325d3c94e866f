"""Uploads in parts: whole or not at all, in order, and nothing left behind."""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from pathlib import Path
from typing import Any

import pytest

from cloche_agentd import limits
from tests.packages.agentd.plain_agent import TOKEN, Client, PlainAgent, Reply, http_quote, peak_kb

MIB = 1024 * 1024


def part(
    client: Client, path: str, data: bytes, *, transfer: str = "", offset: int = 0, last: bool = True, mode: str = ""
) -> Reply:
    query = f"path={http_quote(path)}&transfer={transfer or uuid.uuid4().hex}&offset={offset}&last={int(last)}"
    return client.call("POST", f"/cloche/upload?{query}" + (f"&mode={mode}" if mode else ""), data)


def told(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200, reply.body
    return reply.value


def refused(reply: Reply) -> dict[str, Any]:
    assert reply.status >= 400
    return reply.value["cloche"]


def leftovers(agent: PlainAgent) -> list[str]:
    return [path.name for path in agent.home.rglob(".cloche-upload-*")]


def test_parts_become_the_file_when_the_last_one_is_there(client: Client, agent: PlainAgent) -> None:
    """Until then the old file stays."""
    target = agent.home / "whole.bin"
    target.write_bytes(b"old")
    target.chmod(0o640)
    data = os.urandom(3 * MIB + 17)
    transfer, offset = uuid.uuid4().hex, 0
    while offset < len(data):
        piece = data[offset : offset + MIB]
        last = offset + MIB >= len(data)
        answer = told(part(client, str(target), piece, transfer=transfer, offset=offset, last=last))
        offset += len(piece)
        expected = {"size": offset, "sha256": hashlib.sha256(data[:offset]).hexdigest(), "complete": last}
        assert answer == expected
        assert (target.read_bytes() == b"old") is not last
    assert target.read_bytes() == data
    assert target.stat().st_mode & 0o777 == 0o640
    assert leftovers(agent) == []


def test_f24_a_part_that_does_not_fit_is_refused_with_the_offset_that_does(client: Client, agent: PlainAgent) -> None:
    """container-use#320: nothing is changed in silence, and nothing is claimed."""
    path, transfer = str(agent.home / "fit.bin"), uuid.uuid4().hex
    told(part(client, path, b"abc", transfer=transfer, last=False))
    for offset in (0, 2, 4):
        assert refused(part(client, path, b"x", transfer=transfer, offset=offset, last=False)) == {
            "code": "transfer_conflict",
            "offset": 3,
        }
    assert refused(part(client, path + "2", b"x", transfer=transfer, offset=3))["code"] == "transfer_conflict"
    assert refused(part(client, path, b"x", transfer=transfer, offset=3, mode="777"))["code"] == "transfer_conflict"
    told(part(client, path, b"def", transfer=transfer, offset=3))
    assert Path(path).read_bytes() == b"abcdef"


def test_an_unknown_transfer_is_told_as_one(client: Client, agent: PlainAgent) -> None:
    assert refused(part(client, str(agent.home / "x"), b"x", offset=3))["code"] == "transfer_not_found"
    answer = part(client, str(agent.home / "x"), b"x", transfer="../x")
    assert (answer.status, refused(answer)["code"]) == (400, "invalid_argument")


def test_the_last_part_again_gives_its_answer_again(client: Client, agent: PlainAgent) -> None:
    """A lost answer: the file is there, and the client learns it."""
    path, transfer = str(agent.home / "again.bin"), uuid.uuid4().hex
    told(part(client, path, b"abc", transfer=transfer, last=False))
    first = told(part(client, path, b"def", transfer=transfer, offset=3))
    assert told(part(client, path, b"def", transfer=transfer, offset=3)) == first


def test_a_part_whose_client_dies_is_taken_back(client: Client, agent: PlainAgent) -> None:
    """Half a part never counts: the same part fits again."""
    path, transfer = str(agent.home / "half.bin"), uuid.uuid4().hex
    told(part(client, path, b"abc", transfer=transfer, last=False))
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(agent.socket_path)
        head = f"POST /cloche/upload?path={path}&transfer={transfer}&offset=3&last=0 HTTP/1.1\r\n"
        fields = f"host: a\r\nx-access-token: {TOKEN}\r\ncontent-length: 100000\r\n\r\n"
        raw.sendall((head + fields).encode() + b"y" * 50_000)
        while (agent.home / leftovers(agent)[0]).stat().st_size < 50_000:
            pass
    for _ in range(5_000):  # until the agent has noticed
        answer = part(client, path, b"def", transfer=transfer, offset=3)
        if answer.status == 200:
            break
        assert refused(answer)["code"] == "transfer_conflict"
    assert Path(path).read_bytes() == b"abcdef"
    assert leftovers(agent) == []


def test_f22_many_uploads_leave_no_descriptor_and_no_file(fresh_agent: PlainAgent) -> None:
    """OpenSandbox PR#468: also such that are begun and never finished, of which only some are held."""
    descriptors = Path(f"/proc/{fresh_agent.process.pid}/fd")
    with fresh_agent.client() as client:
        told(part(client, str(fresh_agent.home / "warm"), b"x"))
        before = len(list(descriptors.iterdir()))
        for number in range(200):
            told(part(client, str(fresh_agent.home / f"{number % 5}.bin"), b"x" * 100))
        assert len(list(descriptors.iterdir())) == before
        for number in range(2 * limits.TRANSFERS):
            told(part(client, str(fresh_agent.home / f"open{number}"), b"x", last=False))
        assert len(list(descriptors.iterdir())) <= before + limits.TRANSFERS
        assert len(leftovers(fresh_agent)) == limits.TRANSFERS


@pytest.mark.parametrize("target", ["/", "/dev/null", "missing/../dir"])
def test_what_is_no_file_is_refused_before_a_byte_is_written(client: Client, agent: PlainAgent, target: str) -> None:
    (agent.home / "dir").mkdir(exist_ok=True)
    code = refused(part(client, target, b"x"))["code"]
    assert code in ("file_is_directory", "file_special", "file_permission_denied")
    assert leftovers(agent) == []


def test_a_large_file_in_parts_is_never_held_in_memory(fresh_agent: PlainAgent, scale: int) -> None:
    """F14: 64 MiB in CI, 1 GiB in a soak; up in parts, down in ranges."""
    path, transfer = str(fresh_agent.home / "large.bin"), uuid.uuid4().hex
    parts, block = min(64 * scale, 1024), os.urandom(MIB)
    digest, answer = hashlib.sha256(), {}
    with fresh_agent.client() as client:
        for number in range(parts):
            digest.update(block)
            last = number == parts - 1
            answer = told(part(client, path, block, transfer=transfer, offset=number * MIB, last=last))
        assert answer["sha256"] == digest.hexdigest()
        read = hashlib.sha256()
        for number in range(parts):
            read.update(client.get(path, range=f"bytes={number * MIB}-{(number + 1) * MIB - 1}").body)
        assert read.hexdigest() == digest.hexdigest()
        assert peak_kb(fresh_agent.process.pid) < 60_000
