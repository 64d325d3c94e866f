"""Terminals in real sandboxes: each has its own, and they are its own."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.packages.local.sandboxes import HOST_ROOT, Sandbox

PROBE = "tty; stty size; stat -c '%U %a' $(tty); echo via-tty >/dev/tty; ls /dev/pts; id -un"


async def _on_terminal(sandbox: Sandbox, command: str, user: str) -> list[str]:
    """Run a command on a terminal of 100 columns; return the lines that appear."""
    message = {
        "process": {"cmd": "/bin/sh", "args": ["-c", command]},
        "pty": {"size": {"cols": 100, "rows": 30}},
    }
    body = json.dumps(message).encode()
    headers = {
        "Content-Type": "application/connect+json",
        "Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode(),
    }
    raw = b"\0" + len(body).to_bytes(4, "big") + body
    data = (await sandbox.client.post("/process.Process/Start", content=raw, headers=headers)).content
    shown = b""
    while data:
        size = int.from_bytes(data[1:5], "big")
        frame: dict[str, Any] = json.loads(data[5 : 5 + size])
        data = data[5 + size :]
        assert "error" not in frame, frame
        shown += base64.b64decode(frame.get("event", {}).get("data", {}).get("pty", ""))
    return shown.decode().split("\r\n")


@pytest.mark.parametrize("user", ["user", pytest.param("root", marks=pytest.mark.skipif(not HOST_ROOT, reason="root"))])
async def test_terminal_inside_is_the_users_own(sandbox: Sandbox, user: str) -> None:
    """The sandbox's own devpts numbers from 0 and shows no terminal of the host; the user owns the one he has."""
    lines = await _on_terminal(sandbox, PROBE, user)
    assert lines[:2] == ["/dev/pts/0", "30 100"]
    assert lines[2].split()[0] == user
    assert lines[3] == "via-tty"
    assert set(" ".join(lines[4:-2]).split()) == {"0", "ptmx"}
    assert lines[-2] == user
