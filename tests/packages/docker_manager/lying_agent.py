"""A sandbox that sends what the test wants as its export; and what a folder holds, to compare before and after."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cloche_docker_manager.agent_link import AgentLink
from cloche_docker_manager.export import Exported, Order, export
from cloche_docker_manager.registry import Record
from cloche_docker_manager.settings import ManagerSettings, read_settings
from tests.packages.docker_manager.managed import Heard

RECORD = Record("sbox-1", "/w", "i", "ready", "token", None, 1, 2)


def frame(head: dict[str, Any], payload: bytes = b"") -> bytes:
    data = json.dumps({**head, "payload": head.get("payload", len(payload))}).encode()
    return len(data).to_bytes(4, "big") + data + payload


def named(kind: str, path: bytes, content: bytes = b"", **more: Any) -> bytes:
    facts: dict[str, Any] = {"kind": kind, "path": base64.b64encode(path).decode()}
    if kind in ("file", "folder", "symlink"):
        facts |= {"mode": 0o755 if kind == "folder" else 0o644, "mtime_s": 1_000_000_000, "mtime_ns": 5}
    if kind == "file":
        facts["size"] = len(content)
    return frame(facts | more, content)


def stream(*records: bytes, end: int | None = None) -> bytes:
    begin = frame({"kind": "begin", "manifest_version": 3, "layer_ids": ["L000003-00000000"], "session_ids": []})
    count = len(records) + 1 if end is None else end
    return b"".join((begin, *records, frame({"kind": "end", "records": count})))


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every path, the folder itself too, with kind and mode, time, and content or target."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        facts = path.lstat()
        content = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
        if stat.S_ISREG(facts.st_mode):
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, content)
    return found


async def exported(
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    place: Path,
    settings: ManagerSettings,
    kind: str = "dir",
    *,
    host_executed: bool = False,
) -> Exported:
    """Export what an agent sends, cut into odd pieces."""

    async def send(_link: AgentLink, *, names_only: bool) -> AsyncIterator[bytes]:
        assert not names_only
        piece = 7 if len(data) < 10_000 else 65_536
        for start in range(0, len(data), piece):
            yield data[start : start + piece]

    monkeypatch.setattr(AgentLink, "export", send)
    environ = {"HOME": str(settings.workspace_roots[0])}
    return await export(RECORD, Order(str(place), kind, host_executed), settings, environ, Heard().report)


def settings_in(folder: Path) -> ManagerSettings:
    """The settings of a manager that keeps all that it has below a folder."""
    (folder / "home").mkdir()
    (folder / "state").mkdir()
    return read_settings({"HOME": f"{folder}/home", "ABX_DOCKER_STATE_DIR": f"{folder}/state"})


def lay_out_destination(folder: Path) -> Path:
    """A destination that has something already, beside something that must stay as it is."""
    dest = folder / "out/dest"
    (dest / "kept").mkdir(parents=True)
    (dest / "kept/file").write_text("old\n")
    (dest / "away").symlink_to(folder / "out/outside")
    (folder / "out/outside").mkdir()
    (folder / "out/outside/file").write_text("outside\n")
    return dest


def left_in(settings: ManagerSettings) -> list[str]:
    """What exports have left in the state directory."""
    return [str(path) for path in settings.state_dir.rglob("*") if not path.is_dir()]
