"""What the tests of the manager share: calls through the real dispatcher, and commands in a sandbox."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cloche_contract.kernel.dispatch import Outcome, dispatch
from cloche_contract.kernel.toolset import ToolSession, ToolSetOptions
from cloche_contract.wire.connect import StreamDecoder, encode_message
from cloche_docker_manager.registry import Record, Registry
from cloche_docker_manager.toolset import open_toolset
from tests.packages.docker_manager.conftest import Bench


class Heard:
    """A call whose client asked for progress."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str]] = []

    async def report(self, progress: float, message: str) -> None:
        self.told.append((progress, message))

    def attach_image(self, media_type: str, data: bytes) -> bool:
        return False


@dataclass
class Tools:
    """The management tools of one session."""

    session: ToolSession

    async def outcome(self, tool: str, heard: Heard | None = None, **arguments: Any) -> Outcome:
        return await dispatch("management", self.session, tool, arguments, heard or Heard())

    async def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        outcome = await self.outcome(tool, **arguments)
        assert not outcome.is_error, outcome.structured
        return outcome.structured

    async def refused(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """Kind and code of the error that a call ends with."""
        outcome = await self.outcome(tool, **arguments)
        assert outcome.is_error, outcome.structured
        error = outcome.structured["error"]
        return error["kind"], error["details"]["code"]


@asynccontextmanager
async def opened(environ: Mapping[str, str]) -> AsyncGenerator[Tools]:
    """One session of the tool set; its sandboxes are destroyed at the end, whatever the test did."""
    async with open_toolset(ToolSetOptions(environ=environ)) as session:
        tools = Tools(session)
        try:
            yield tools
        finally:
            registry = registry_of(environ)
            for record in registry.all():
                if record.state in ("ready", "failed"):
                    await tools.outcome("destroy_sandbox", sandbox_id=record.id)


def registry_of(environ: Mapping[str, str]) -> Registry:
    return Registry(Path(environ["ABX_DOCKER_STATE_DIR"]))


def objects_of(bench: Bench) -> set[str]:
    """Every container and volume of the engine."""
    api = bench.engine.api
    found = {one["Names"][0].lstrip("/") for one in api.containers(all=True)}
    return found | {one["Name"] for one in api.volumes()["Volumes"] or ()}


async def run(record: Record, command: str, timeout_s: float = 30, session: str = "") -> dict[str, Any]:
    """Run a shell command in a sandbox, in a session of its own or in that one: stdout, stderr, what its end says."""
    head = {"X-Access-Token": record.token, "Content-Type": "application/connect+json"}
    head["Connect-Timeout-Ms"] = str(int(timeout_s * 1000))
    where = {"workspaceSession": session} if session else {}
    body = encode_message({"process": {"cmd": "/bin/sh", "args": ["-c", command]}, **where})
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{record.agent_port}", trust_env=False) as client:
        answer = await client.post("/process.Process/Start", content=body, headers=head, timeout=timeout_s + 30)
    return _told(answer.content)


async def ask(record: Record, path: str, message: Mapping[str, Any]) -> dict[str, Any]:
    """Call a method of the agent that must not be refused."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{record.agent_port}", trust_env=False) as client:
        answer = await client.post(path, json=message, headers={"X-Access-Token": record.token}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _told(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"stdout": "", "stderr": ""}
    for frame in StreamDecoder().feed(body):
        event: dict[str, Any] = frame.get("event", {})
        for name, data in event.get("data", {}).items():
            found[name] += base64.b64decode(data).decode(errors="replace")
        found.update(event.get("end", {}))
        if "error" in frame:
            found["error"] = frame["error"]
    return found
