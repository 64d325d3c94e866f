"""The audit file: a line for each call, whatever becomes of it, and nothing of what it carried."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_contract.errors import AuditUnavailable
from cloche_contract.kernel.toolset import CallReport, ToolSetOptions
from cloche_sdk import audit
from cloche_sdk.audit import AuditFile, audit_path, read_lines
from cloche_sdk.config import load_settings
from cloche_testkit.mcp_client import connected_client
from cloche_testkit.plane import ScriptedPlane

_SECRET = "S3CRET"


class _Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def _file(path: Path, *, required: bool = False) -> AuditFile:
    return AuditFile(str(path), _Clock(), required=required, about={"who": "user:7", "session": "s1"})


def _report(error: str | None = None) -> CallReport:
    return CallReport("run_code", "sb1", error, 0.0123)


def _environ(tmp_path: Path, **more: str) -> Mapping[str, str]:
    return {"HOME": str(tmp_path), "ABX_PROVIDER": "scripted", **more}


async def _call(
    environ: Mapping[str, str], *calls: tuple[str, dict[str, Any]], principal: str | None = None
) -> list[Any]:
    options = ToolSetOptions(environ=environ, principal=principal)
    async with connected_client(options=options) as client:
        return [await client.call_tool(tool, arguments) for tool, arguments in calls]


async def test_each_call_leaves_one_line_and_nothing_of_what_it_carried(
    tmp_path: Path, unsandboxed_plane: ScriptedPlane
) -> None:
    """Issue 3, part 5: who, tool, sandbox, outcome; by whichever transport, as the serving core tells it."""
    path = tmp_path / "state" / "audit.jsonl"
    await _call(
        _environ(tmp_path, ABX_AUDIT_FILE=str(path)),
        ("run_command", {"command": f"echo {_SECRET}"}),
        ("read_file", {"path": f"/{_SECRET}"}),
        ("run_code", {"code": 7, "sandbox_id": f"{_SECRET} {_SECRET}"}),
        ("get_sandbox", {"sandbox_id": "unknown1"}),
        ("list_sandboxes", {}),
        principal="alice",
    )
    lines = read_lines(str(path))
    told = [(line["tool"], line["outcome"], line["error"]) for line in lines]
    assert told == [
        ("run_command", "ok", None),
        ("read_file", "error", "file_not_found"),
        ("run_code", "error", "invalid_argument"),
        ("get_sandbox", "error", "sandbox_not_found"),
        ("list_sandboxes", "ok", None),
    ]
    default = unsandboxed_plane.script.of("create")
    assert len(default) == 1
    assert [line["sandbox"] for line in lines] == ["sb0001", "sb0001", None, "unknown1", None]
    assert {line["who"] for line in lines} == {"principal:alice"}
    assert len({line["session"] for line in lines}) == 1
    assert all(sorted(line) == sorted(lines[0]) for line in lines)
    assert _SECRET not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_call_that_is_cancelled_has_its_line(tmp_path: Path, scripted_plane: ScriptedPlane) -> None:
    """What nobody waited for has happened as well."""
    path = tmp_path / "audit.jsonl"
    gate = scripted_plane.script.hold_next("list")
    options = ToolSetOptions(environ=_environ(tmp_path, ABX_AUDIT_FILE=str(path)))
    with anyio.fail_after(20):
        async with connected_client(options=options) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "list_sandboxes")
            await gate.reached.wait()
            tasks.cancel_scope.cancel()
    assert [line["outcome"] for line in read_lines(str(path))] == ["cancelled"]


async def test_without_a_setting_the_file_lies_with_the_state_and_off_keeps_none(
    tmp_path: Path, scripted_plane: ScriptedPlane
) -> None:
    await _call(_environ(tmp_path), ("list_sandboxes", {}))
    path = tmp_path / ".local" / "state" / "cloche" / "audit.jsonl"
    assert [line["who"] for line in read_lines(str(path))] == [f"user:{os.getuid()}"]
    path.unlink()
    await _call(_environ(tmp_path, ABX_AUDIT_FILE="off"), ("list_sandboxes", {}))
    assert not path.exists()


async def test_a_file_that_is_named_is_required(tmp_path: Path, scripted_plane: ScriptedPlane) -> None:
    """ADR 26: a call that cannot be written down is refused before it happens, and told why."""
    environ = _environ(tmp_path, ABX_AUDIT_FILE="/proc/audit.jsonl")
    (answer,) = await _call(environ, ("create_sandbox", {}))
    assert answer.is_error
    assert json.loads(answer.content[0].text)["code"] == "audit_unavailable"
    assert scripted_plane.script.of("create") == []


def test_what_lies_in_the_workspace_does_not_switch_it_off(tmp_path: Path) -> None:
    """Faults E15: a project's ./.env never weakens the policy."""
    (tmp_path / ".env").write_text("ABX_AUDIT_FILE=off\n")
    settings = load_settings({"HOME": str(tmp_path)}, workdir=tmp_path)
    assert audit_path(settings, {"XDG_STATE_HOME": "/x"}) == ("/x/cloche/audit.jsonl", False)
    assert audit_path(settings.override(audit_file="~/a"), {}) == (os.path.expanduser("~/a"), True)


def test_a_full_disk_refuses_the_next_call_until_what_is_owed_is_written(tmp_path: Path) -> None:
    """A call in flight when the disk fills has happened: its line is kept and written first when there is room."""
    path = tmp_path / "audit"
    file = _file(path, required=True)
    file.begin()
    # A folder in its place takes nothing, as a full disk does.
    path.unlink()
    path.mkdir()
    file.end(_report())
    with pytest.raises(AuditUnavailable):
        file.begin()
    path.rmdir()
    file.begin()
    assert [line["tool"] for line in read_lines(str(path))] == ["run_code"]


def test_the_default_file_loses_lines_warns_once_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that is full does not stop whoever asked for no audit; it is not silent either."""
    path = tmp_path / "audit"
    path.mkdir()
    file = _file(path)
    for _ in range(3):
        file.begin()
        file.end(_report())
    assert [record.message for record in caplog.records] == ["audit file takes nothing, calls are not recorded"]
    path.rmdir()
    file.end(_report("timeout"))
    (line,) = read_lines(str(path))
    assert (line["lost"], line["error"], line["ms"], line["time"]) == (
        3,
        "timeout",
        12,
        "2026-11-30T12:00:00.123+00:00",
    )


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "audit").symlink_to(tmp_path / "target")
    with pytest.raises(AuditUnavailable):
        _file(tmp_path / "audit", required=True).begin()
    assert (tmp_path / "target").read_text() == ""


def test_a_full_file_is_moved_aside_and_no_line_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotation by size, while several write: every line is in one of the files, whole."""
    monkeypatch.setattr(audit, "MOST_BYTES", 4000)
    path = tmp_path / "audit"

    def write(_number: int) -> None:
        file = _file(path)
        for _ in range(20):
            file.end(_report())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert len(read_lines(str(path))) == 80
    assert (tmp_path / "audit.1").exists()
    assert {name.stat().st_mode & 0o777 for name in tmp_path.iterdir()} == {0o600}
    assert not (tmp_path / "audit.turn").exists()


def test_no_more_files_are_kept_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_BYTES", 10)
    file = _file(tmp_path / "audit")
    for _ in range(20):
        file.end(_report())
    assert sorted(name.name for name in tmp_path.iterdir()) == ["audit", "audit.1", "audit.2", "audit.3", "audit.4"]


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "audit").write_bytes(b'{"tool":"a"}\n{"too\n\xff\n[]\n{"tool":"b"}\n')
    assert [line["tool"] for line in read_lines(str(tmp_path / "audit"))] == ["a", "b"]
