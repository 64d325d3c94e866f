"""`abx sandbox upload` and `download`: files on this machine, in and out of a real sandbox."""

import hashlib
import json
import os
import stat

from cloche_sdk.transfers import PART_BYTES
from tests.packages.cli.desk import Desk, desk

__all__ = ["desk"]


def test_a_file_of_several_parts_goes_in_and_comes_out_as_it_was(desk: Desk) -> None:
    """A part more than a part, so that the last one is short; the sums are those of both sides."""
    content = os.urandom(1 << 16) * (2 * PART_BYTES // (1 << 16)) + b"end"
    (desk.folder / "big.bin").write_bytes(content)
    (desk.folder / "big.bin").chmod(0o750)
    sent = json.loads(desk.abx("--json", "sandbox", "upload", desk.sandbox, "big.bin").stdout)
    expected = {"path": "big.bin", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert sent == {"files": [expected]}
    assert desk.inside("stat -c '%a %s' big.bin") == f"750 {len(content)}\n"
    told = json.loads(desk.abx("--json", "sandbox", "download", desk.sandbox, "big.bin", "back.bin").stdout)
    assert told == {**expected, "path": "back.bin"}
    assert (desk.folder / "back.bin").read_bytes() == content


def test_a_folder_goes_in_without_its_links(desk: Desk) -> None:
    """A link may lead to what nobody meant to hand over."""
    source = desk.folder / "project"
    (source / "sub").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "sub/empty").touch()
    (source / "secret").symlink_to("/etc/passwd")
    (source / "up").symlink_to("..")
    sent = json.loads(desk.abx("--json", "sandbox", "upload", desk.sandbox, "project", "/tmp/put").stdout)
    assert [file["path"] for file in sent["files"]] == ["/tmp/put/a.txt", "/tmp/put/sub/empty"]
    assert desk.inside("cd /tmp/put && find . | sort") == ".\n./a.txt\n./sub\n./sub/empty\n"


def test_streams_go_in_and_come_out(desk: Desk) -> None:
    """`-` is stdin, and stdout: nothing else is printed there."""
    assert desk.abx("sandbox", "upload", desk.sandbox, "-", "/tmp/piped", data=b"\x00\xff piped").returncode == 0
    done = desk.abx("sandbox", "download", desk.sandbox, "/tmp/piped", "-")
    assert (done.returncode, done.stdout) == (0, b"\x00\xff piped")
    assert desk.abx("sandbox", "download", desk.sandbox, "/tmp/piped", "-", "--json").returncode == 2


def test_a_file_lands_under_its_own_name_here_or_in_a_folder(desk: Desk) -> None:
    """A link of that name is replaced; what it leads to stays as it is."""
    desk.inside("printf new > result")
    (desk.folder / "other").write_text("old")
    (desk.folder / "result").symlink_to("other")
    (desk.folder / "into").mkdir()
    assert desk.abx("sandbox", "download", desk.sandbox, "result").returncode == 0
    assert desk.abx("sandbox", "download", desk.sandbox, "result", "into").returncode == 0
    assert not (desk.folder / "result").is_symlink()
    found = [(desk.folder / name).read_text() for name in ("result", "into/result", "other")]
    assert found == ["new", "new", "old"]
    assert not stat.S_IMODE((desk.folder / "result").stat().st_mode) & 0o111


def test_what_cannot_be_moved_leaves_everything_as_it_was(desk: Desk) -> None:
    """A clear error names the field; no draft stays beside the file that was there."""
    (desk.folder / "kept").write_text("kept")
    missing = desk.abx("sandbox", "download", desk.sandbox, "/tmp/nothing", "kept")
    assert (missing.returncode, (desk.folder / "kept").read_text()) == (4, "kept")
    assert [path.name for path in desk.folder.iterdir()] == ["kept"]
    refused = json.loads(desk.abx("--json", "sandbox", "upload", desk.sandbox, "nothing-here").stderr)
    assert refused["details"] == {"field": "FILE", "rule": "readable"}
    assert b"nothing-here" not in desk.abx("sandbox", "upload", desk.sandbox, "nothing-here").stderr
    assert desk.abx("sandbox", "download", desk.sandbox, "/tmp", "kept").returncode != 0
    assert json.loads(desk.abx("--json", "sandbox", "download", desk.sandbox, "/").stderr)["details"] == {
        "field": "FILE",
        "rule": "required",
    }
