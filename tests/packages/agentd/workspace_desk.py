"""An agent with layers, and what tests ask of it."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cloche_agentd._gen import messages, wire
from tests.packages.agentd.plain_agent import PROGRAM, Client, PlainAgent, Ran
from tests.packages.local import ordinary

Json = dict[str, Any]
BASE = {"a.txt": "one\ntwo\nthree\nfour\nfive\n", "b": "b\n", "dir/x": "x\n", "dir/y": "y\n"}


@dataclass
class Desk:
    """An agent with layers, and a client of it."""

    agent: PlainAgent
    client: Client
    folder: Path

    def rpc(self, path: str, message: Json) -> Json:
        """Call a method that must not be refused; its answer keeps to what is declared."""
        reply = self.client.rpc(path, message)
        assert reply.status == 200, reply.body
        return reply.value

    def session(self, session_id: str) -> Json:
        """Make a session."""
        made = self.rpc(wire.LAYERS_CREATE_SESSION, {"session_id": session_id})
        messages.check("WorkspaceSession", made)
        return made

    def run(self, command: str, session_id: str = "") -> Ran:
        """Run a command in a session, or in one of its own."""
        return self.client.run(command, more={"workspaceSession": session_id} if session_id else None)

    def publish(self, session_id: str, **more: object) -> Json:
        """Publish a session."""
        result = self.rpc(wire.LAYERS_PUBLISH_SESSION, {"session_id": session_id, **more})
        messages.check("PublishResult", result)
        return result

    def squash(self) -> Json:
        """Squash the stack."""
        result = self.rpc(wire.LAYERS_SQUASH, {})
        messages.check("SquashResponse", result)
        return result

    def status(self) -> Json:
        """Return the state of the stack."""
        result = self.rpc(wire.LAYERS_STATUS, {})
        messages.check("LayerStatus", result)
        return result

    def export(self, **request: object) -> list[tuple[Json, bytes]]:
        """Return the records of an export."""
        reply = self.client.call("POST", wire.ROUTE_EXPORT_LAYERS, json.dumps(request).encode())
        assert reply.status == 200, reply.body
        return list(records(reply.body))

    def left(self) -> list[str]:
        """What there is in the store beside layers, when the host has done all that it was asked for."""
        self.status()
        return [name for part in ("sessions", "staging") for name in os.listdir(self.folder / "store" / part)]


def records(data: bytes) -> Iterator[tuple[Json, bytes]]:
    """Read an export stream; each head keeps to what is declared."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        head = json.loads(data[at + 4 : at + 4 + length])
        messages.check("ExportRecord", head)
        at += 4 + length + head["payload"]
        yield head, data[at - head["payload"] : at]


def named(found: list[tuple[Json, bytes]], kind: str) -> list[str]:
    """Paths of the records of one kind, in their order."""
    return [base64.b64decode(head["path"]).decode() for head, _ in found if head["kind"] == kind]


def users() -> list[str]:
    return ["this user", "ordinary user"] if os.geteuid() == 0 else ["this user"]


def program_of(user: str) -> tuple[str, ...]:
    if user == "this user":
        return (sys.executable, "-I", "-S", str(PROGRAM))
    if lacking := ordinary.missing():
        pytest.skip(lacking)
    python = ordinary.system_python() or ""
    return (
        "setpriv",
        f"--reuid={ordinary.UID}",
        f"--regid={ordinary.UID}",
        "--clear-groups",
        python,
        "-I",
        "-S",
        str(PROGRAM),
    )


def lay_out(folder: Path, base: dict[str, str]) -> tuple[str, ...]:
    """Make a base and an empty store; return the options of an agent that uses them."""
    for name in ("store", "base", "workspace"):
        (folder / name).mkdir()
    for path, text in base.items():
        (folder / "base" / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / "base" / path).write_text(text)
    return ("--layers", f"{folder}/store", "--base", f"{folder}/base", "--workspace", f"{folder}/workspace")
