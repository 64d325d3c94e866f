"""Files: GET and POST /files, and filesystem.Filesystem."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import resource
import stat
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import TOKEN, Client, PlainAgent, Reply, http_quote, peak_kb, running_agent


def _code(reply: Reply) -> str:
    """Return the catalogue code of a refusal."""
    return reply.value["cloche"]["code"]


def _multipart(*parts: tuple[str, str, bytes]) -> tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    body = b""
    for name, filename, data in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
        body += head.encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def test_f1_every_byte_value_arrives_both_ways(client: Client, agent: PlainAgent) -> None:
    """F1, slicc#2878: content is bytes."""
    data = bytes(range(256)) * 2
    written = client.put("all bytes", data).value
    assert written == [{"path": f"{agent.home}/all bytes", "name": "all bytes", "type": "file", "size": 512}]
    read = client.get("all bytes")
    assert (read.status, hashlib.sha256(read.body).digest()) == (200, hashlib.sha256(data).digest())


def test_f14_large_file_passes_without_being_held_in_memory(fresh_agent: PlainAgent) -> None:
    """F14, superserve PR#234: 200 MiB up and down, while the agent's memory stays flat."""
    size = 200 * 1024 * 1024
    block = os.urandom(1024 * 1024)
    with fresh_agent.client() as client:
        client.put("warm", b"x")
        before = peak_kb(fresh_agent.process.pid)
        connection = client.connection
        connection.putrequest("POST", "/files?path=big")
        connection.putheader("x-access-token", TOKEN)
        connection.putheader("content-type", "application/octet-stream")
        connection.putheader("content-length", str(size))
        connection.endheaders()
        for _ in range(200):
            connection.send(block)
        response = connection.getresponse()
        assert json.loads(response.read())[0]["size"] == size
        read = client.send("GET", "/files?path=big")
        total = 0
        while piece := read.read(4 * 1024 * 1024):
            total += len(piece)
        assert total == size
        assert peak_kb(fresh_agent.process.pid) - before < 8 * 1024


def test_f14_ranges_are_served(client: Client) -> None:
    """F14: a part of a file costs a part."""
    client.put("digits", b"0123456789")
    part = client.get("digits", range="bytes=2-4")
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert client.get("digits", range="bytes=-3").body == b"789"
    assert client.get("digits", range="bytes=7-").body == b"789"
    assert client.get("digits", range="bytes=20-").status == 416


@pytest.mark.parametrize("name", ["😀.txt", "résumé.pdf", '"a b".txt', "a%22b\\c;d=e", "new\nline", "-", "日本語" * 28])
def test_f16_any_utf8_name_round_trips(client: Client, agent: PlainAgent, name: str) -> None:
    """F16, Daytona#4323: by query, and as a part's name where a form can carry it."""
    assert client.put(name, b"1").value[0]["name"] == name
    assert client.get(name).body == b"1"
    entry = client.rpc("/filesystem.Filesystem/Stat", {"path": name}).value["entry"]
    assert entry["name"] == name
    assert (agent.home / name).read_bytes() == b"1"


@pytest.mark.parametrize("name", ["😀.txt", "résumé.pdf", '"a b".txt'])
def test_f16_any_utf8_name_of_a_part_round_trips(client: Client, agent: PlainAgent, name: str) -> None:
    """F16: many files in one form, each with its path as file name, as httpx and browsers escape it."""
    body, content_type = _multipart(("file", f"forms/{name.replace(chr(34), '%22')}", b"2"), ("file", "forms/b", b"3"))
    reply = client.call("POST", "/files", body, content_type=content_type)
    assert [item["name"] for item in reply.value] == [name, "b"]
    assert (agent.home / "forms" / name).read_bytes() == b"2"


def test_f18_mode_is_kept_and_settable(client: Client, agent: PlainAgent) -> None:
    """F18, vm0#373: an existing file keeps its mode, a new one gets the asked or the usual one."""
    path = agent.home / "tool.sh"
    client.put("tool.sh", b"#!/bin/sh\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o750)
    client.put("tool.sh", b"#!/bin/sh\necho\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    client.put("tool.sh", b"x", "&mode=4711")
    assert stat.S_IMODE(path.stat().st_mode) == 0o4711
    assert _code(client.put("tool.sh", b"x", "&mode=9")) == "invalid_argument"


def test_write_is_all_or_nothing(agent: PlainAgent) -> None:
    """A client that leaves in the middle changes nothing, and leaves no file behind."""
    (agent.home / "whole").write_text("old")
    with agent.client() as client:
        connection = client.connection
        connection.putrequest("POST", "/files?path=whole")
        connection.putheader("x-access-token", TOKEN)
        connection.putheader("content-length", "1000000")
        connection.endheaders()
        connection.send(b"x" * 500000)
    with agent.client() as client:
        client.call("GET", "/health")
        deadline = time.monotonic() + 10
        while any(name.startswith(".cloche-upload-") for name in os.listdir(agent.home)):
            assert time.monotonic() < deadline
    assert (agent.home / "whole").read_text() == "old"


def test_gzip_body_is_unpacked_in_pieces(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.4: Content-Encoding gzip; a small body may grow a lot."""
    data = bytes(50_000_000)
    reply = client.call(
        "POST",
        "/files?path=zeros",
        gzip.compress(data),
        content_type="application/octet-stream",
        content_encoding="gzip",
    )
    assert reply.value[0]["size"] == len(data)
    assert (agent.home / "zeros").stat().st_size == len(data)
    bad = client.call("POST", "/files?path=zeros", b"not gzip", content_encoding="gzip")
    assert (bad.status, _code(bad)) == (400, "invalid_argument")
    assert client.call("POST", "/files?path=zeros", b"x", content_encoding="br").status == 415


def test_multipart_body_in_any_pieces(client: Client, agent: PlainAgent) -> None:
    """The parser may be cut anywhere: boundaries, heads and data that looks like a boundary."""
    data = b"\r\n--not the end\r\n--" + os.urandom(3000) + b"\r\n-"
    body, content_type = _multipart(("file", "ignored", data), ("file", "ignored", b""))
    connection = client.connection
    connection.putrequest("POST", "/files?path=parts")
    connection.putheader("x-access-token", TOKEN)
    connection.putheader("content-type", content_type)
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    for start in range(0, len(body), 7):
        piece = body[start : start + 7]
        connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    connection.send(b"0\r\n\r\n")
    assert [item["size"] for item in json.loads(connection.getresponse().read())] == [len(data), 0]
    assert (agent.home / "parts").read_bytes() == b""


@pytest.mark.parametrize("body", [b"", b"--b\r\n\r\nx", b"--b--\r\n", b"--bX\r\n\r\n", b"no boundary at all"])
def test_broken_multipart_body_is_refused(client: Client, body: bytes) -> None:
    """A form without a complete file is an error, never an empty success."""
    reply = client.call("POST", "/files?path=x", body, content_type="multipart/form-data; boundary=b")
    assert reply.status == 400


def test_missing_folders_are_made(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.4: parents are created."""
    assert client.put("a/b/c.txt", b"1").status == 200
    assert (agent.home / "a/b/c.txt").read_bytes() == b"1"


def test_link_is_followed_and_stays(client: Client, agent: PlainAgent) -> None:
    """Writing through a link changes its target, as every program would."""
    (agent.home / "target").write_text("old")
    (agent.home / "link").symlink_to("target")
    client.put("link", b"new")
    assert (agent.home / "link").is_symlink()
    assert (agent.home / "target").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_special_files_are_refused_at_once(client: Client, agent: PlainAgent, kind: str) -> None:
    """A FIFO without a writer must not hang the agent, a device must not be read or replaced."""
    path = f"special-{kind}"
    match kind:
        case "fifo":
            os.mkfifo(agent.home / path)
        case "socket":
            os.mknod(agent.home / path, stat.S_IFSOCK | 0o600)
        case _:
            path = "/dev/zero"
    assert _code(client.get(path)) == "file_special"
    assert _code(client.put(path, b"x")) == "file_special"


def test_refusals_are_typed(client: Client, agent: PlainAgent) -> None:
    """Each refusal has its status and its catalogue code."""
    loop = agent.home / "loop"
    loop.symlink_to("loop")
    (agent.home / "plain").write_text("x")
    expected = [
        (client.get("missing"), 404, "file_not_found"),
        (client.get("."), 400, "file_is_directory"),
        (client.put(".", b"x"), 400, "file_is_directory"),
        (client.get("plain/below"), 400, "file_not_directory"),
        (client.put("plain/below", b"x"), 400, "file_not_directory"),
        (client.get("loop"), 400, "path_invalid"),
        (client.get(""), 400, "path_invalid"),
        (client.get("a\0b"), 400, "path_invalid"),
        (client.get("x" * 300), 400, "path_invalid"),
        (client.get("x/" * 3000), 400, "path_invalid"),
        (client.rpc("/filesystem.Filesystem/ListDir", {"path": "plain"}), 400, "file_not_directory"),
        (client.rpc("/filesystem.Filesystem/ListDir", {"path": "missing"}), 404, "file_not_found"),
        (client.rpc("/filesystem.Filesystem/Stat", {"path": "missing"}), 404, "file_not_found"),
        (client.rpc("/filesystem.Filesystem/Stat", {"path": 5}), 400, "invalid_argument"),
        (client.rpc("/filesystem.Filesystem/Move", {"source": "missing", "destination": "x"}), 404, "file_not_found"),
        (client.rpc("/filesystem.Filesystem/MakeDir", {"path": "plain"}), 400, "file_not_directory"),
    ]
    assert [(reply.status, _code(reply)) for reply, _status, _code_ in expected] == [
        (status, code) for _reply, status, code in expected
    ]


def test_full_disk_is_told_and_the_old_file_stays(tmp_path: Path) -> None:
    """agent-protocol 2.4: 507, typed, and nothing half-written is left."""
    if os.geteuid() != 0:
        pytest.skip("needs a small file system, which only root may mount")
    (tmp_path / "home").mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path / "home")]
    subprocess.run(mounted, check=True)
    try:
        with running_agent(tmp_path) as agent, agent.client() as client:
            client.put("f", b"old")
            reply = client.put("f", b"x" * 1_000_000)
            assert (reply.status, _code(reply)) == (507, "disk_full")
            assert client.get("f").body == b"old"
            assert os.listdir(agent.home) == ["f"]
    finally:
        subprocess.run(["umount", str(tmp_path / "home")], check=True)


def test_limit_on_file_size_is_told(tmp_path: Path) -> None:
    """RLIMIT_FSIZE is no internal error."""
    with running_agent(tmp_path) as agent, agent.client() as client:
        resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
        reply = client.put("f", b"x" * 1_000_000)
        assert (reply.status, _code(reply)) == (413, "file_too_large")
        assert os.listdir(agent.home) == []


def test_p1_link_that_leaves_the_root_is_refused_for_new_files(tmp_path: Path) -> None:
    """P1, DesktopCommander#420: the deepest existing parent decides, also for what does not exist yet."""
    outside = tmp_path / "outside"
    outside.mkdir()
    with running_agent(tmp_path, "--root-dir", str(tmp_path / "home")) as agent, agent.client() as client:
        (agent.home / "leave").symlink_to(outside)
        for path in ("leave/new.txt", "leave/deep/er/new.txt"):
            assert _code(client.put(path, b"x")) == "file_permission_denied"
        assert _code(client.rpc("/filesystem.Filesystem/MakeDir", {"path": "leave/d"})) == "file_permission_denied"
        (agent.home / "in.txt").write_text("x")
        moved = client.rpc("/filesystem.Filesystem/Move", {"source": "in.txt", "destination": "leave/out.txt"})
        assert _code(moved) == "file_permission_denied"
        assert list(outside.iterdir()) == []


@pytest.mark.parametrize("path", ["../outside.txt", "a/../../outside.txt", "/etc/cloche-test", "../../../etc/cron.d/x"])
def test_p3_p4_paths_outside_the_root_are_refused(tmp_path: Path, path: str) -> None:
    """P3, P4, mcp-server-cloudflare#478: normalised first, then checked by component."""
    with running_agent(tmp_path, "--root-dir", str(tmp_path / "home")) as agent, agent.client() as client:
        assert _code(client.put(path, b"x")) == "file_permission_denied"
        assert _code(client.rpc("/filesystem.Filesystem/Stat", {"path": path})) == "file_permission_denied"
        assert client.put("fine.txt", b"x").status == 200
    assert not (tmp_path / "outside.txt").exists()


def test_sibling_with_the_roots_prefix_is_outside(tmp_path: Path) -> None:
    """P2, CVE-2025-53110: /home-2 is not below /home."""
    (tmp_path / "home-2").mkdir()
    with running_agent(tmp_path, "--root-dir", str(tmp_path / "home")) as agent, agent.client() as client:
        assert _code(client.put(str(tmp_path / "home-2/x"), b"x")) == "file_permission_denied"


def test_listing_is_sorted_bounded_and_counted(client: Client, agent: PlainAgent) -> None:
    """D9: at most `limit` entries, and how many there are."""
    folder = agent.home / "list"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}").touch()
    reply = client.rpc("/filesystem.Filesystem/ListDir", {"path": "list", "limit": 10}).value
    assert [entry["name"] for entry in reply["entries"]] == [f"{number:02}" for number in range(10)]
    assert reply["total"] == 30


def test_listing_goes_as_deep_as_asked_and_follows_no_link(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.3: depth."""
    root = agent.home / "deep"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c.txt").touch()
    (root / "up").symlink_to(root)
    names = [
        [entry["path"].removeprefix(f"{root}/") for entry in reply.value["entries"]]
        for depth in (0, 1, 2, 3)
        for reply in [client.rpc("/filesystem.Filesystem/ListDir", {"path": str(root), "depth": depth})]
    ]
    assert names == [["a", "up"], ["a", "up"], ["a", "a/b", "up"], ["a", "a/b", "a/b/c.txt", "up"]]


def test_entries_describe_links_and_other_kinds(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.3: type is the target's, isSymlink tells; other kinds are unspecified."""
    folder = agent.home / "kinds"
    folder.mkdir()
    (folder / "f").write_text("12345")
    (folder / "f").chmod(0o640)
    (folder / "l").symlink_to("f")
    (folder / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "p")
    entries = {
        entry["name"]: entry
        for entry in client.rpc("/filesystem.Filesystem/ListDir", {"path": "kinds"}).value["entries"]
    }
    file = entries["f"]
    assert (file["type"], file["size"], file["mode"]) == ("FILE_TYPE_FILE", "5", 0o640)
    assert (file["permissions"], file["owner"]) == ("-rw-r-----", "user")
    assert file["modifiedTime"].endswith("Z")
    assert (entries["l"]["type"], entries["l"]["isSymlink"]) == ("FILE_TYPE_FILE", True)
    assert entries["l"]["symlinkTarget"] == f"{folder}/f"
    assert (entries["broken"]["type"], entries["broken"]["isSymlink"]) == ("FILE_TYPE_UNSPECIFIED", True)
    assert entries["p"]["type"] == "FILE_TYPE_UNSPECIFIED"


def test_name_that_is_not_utf8_does_not_break_a_listing(client: Client, agent: PlainAgent) -> None:
    """A listing is valid JSON whatever names the folder has."""
    folder = agent.home / "odd"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/\xff\xfe", "wb"):
        pass
    reply = client.rpc("/filesystem.Filesystem/ListDir", {"path": "odd"})
    assert reply.value["entries"][0]["name"] == "\ufffd\ufffd"


def test_folders_are_made_moved_and_removed(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.3: MakeDir, Move, Remove."""
    made = client.rpc("/filesystem.Filesystem/MakeDir", {"path": "m/n"})
    assert made.value["entry"]["type"] == "FILE_TYPE_DIRECTORY"
    again = client.rpc("/filesystem.Filesystem/MakeDir", {"path": "m/n"})
    assert (again.status, again.value["code"]) == (409, "already_exists")
    client.put("m/n/f", b"1")
    moved = client.rpc("/filesystem.Filesystem/Move", {"source": "m/n", "destination": "other/place"})
    assert moved.value["entry"]["path"] == f"{agent.home}/other/place"
    assert (agent.home / "other/place/f").read_bytes() == b"1"
    assert client.rpc("/filesystem.Filesystem/Remove", {"path": "other"}).value == {"removed": True}
    assert client.rpc("/filesystem.Filesystem/Remove", {"path": "other"}).value == {"removed": False}
    assert not (agent.home / "other").exists()


def test_remove_takes_the_link_and_not_its_target(client: Client, agent: PlainAgent) -> None:
    """Removal never follows a link."""
    keep = agent.home / "keep"
    keep.mkdir()
    (keep / "f").touch()
    (agent.home / "to-keep").symlink_to(keep)
    client.rpc("/filesystem.Filesystem/Remove", {"path": "to-keep"})
    assert (keep / "f").exists()
    assert not (agent.home / "to-keep").is_symlink()


def test_signed_url_needs_no_token(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 2.4: signature over path, operation, user, token and expiration."""
    client.put("signed", b"s")
    stranger = agent.client(token="")

    def url(expiration: int | None, operation: str = "read", token: str = TOKEN) -> str:
        tail = f":{expiration}" if expiration is not None else ""
        digest = hashlib.sha256(f"signed:{operation}::{token}{tail}".encode()).digest()
        signature = "v1_" + base64.b64encode(digest).decode().rstrip("=")
        more = f"&signature_expiration={expiration}" if expiration is not None else ""
        return f"/files?path=signed&signature={http_quote(signature)}{more}"

    with stranger:
        assert stranger.call("GET", url(None)).body == b"s"
        assert stranger.call("GET", url(int(time.time()) + 100)).body == b"s"
        late = stranger.call("GET", url(int(time.time()) - 100))
        assert (late.status, late.value["message"]) == (401, "signature is already expired")
        assert stranger.call("GET", url(None, "write")).status == 401
        assert stranger.call("GET", url(None, token="guess")).status == 401
        assert stranger.call("POST", url(None, "write"), b"new").status == 200


def test_large_folders_are_listed_and_removed_in_steps(client: Client, agent: PlainAgent) -> None:
    """D9: bounded on the way, not afterwards; and removal takes wide and deep folders, links included."""
    root = agent.home / "wide"
    for number in range(30):
        (root / f"d{number:02}").mkdir(parents=True)
    for number in range(3000):
        (root / f"f{number:04}").touch()
    deep = root / "d00" / "/".join("x" * 60)
    deep.mkdir(parents=True)
    (deep / "out").symlink_to(agent.home)
    reply = client.rpc("/filesystem.Filesystem/ListDir", {"path": "wide", "limit": 31}).value
    assert [entry["name"] for entry in reply["entries"]][-2:] == ["d29", "f0000"]
    assert reply["total"] == 3030
    assert client.rpc("/filesystem.Filesystem/Remove", {"path": "wide"}).status == 200
    assert not root.exists()
    assert agent.home.exists()
