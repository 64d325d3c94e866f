"""What a client meets first: the version that is negotiated, and the template of its default sandbox."""

from typing import Any

import pytest

from tests.e2e.servers import SERVER
from tests.packages.mcp_stdio.raw_client import raw_client

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25"), ("", "2025-11-25")],
)
async def test_an_initialize_is_answered_with_its_version_or_with_ours(
    asked: str, answered: str, environ: dict[str, str]
) -> None:
    """Checklist 295: never an error."""
    async with raw_client(SERVER, environ) as client:
        answer = await client.request("initialize", hello(asked))
        assert answer["result"]["protocolVersion"] == answered


def hello(version: str) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


async def test_the_default_sandbox_of_the_command_has_the_code_interpreter(environ: dict[str, str]) -> None:
    """Seed 001, rule 139."""
    async with raw_client(SERVER, environ) as client:
        await client.call("run_command", {"command": "true"})
        shown = await client.call("get_sandbox", {})
        assert shown["structuredContent"]["template"] == "code-interpreter-v1"


async def test_the_configured_template_wins_over_that_of_the_command(environ: dict[str, str]) -> None:
    """Seed 001, rule 160."""
    async with raw_client(SERVER, {**environ, "ABX_DEFAULT_TEMPLATE": "base"}) as client:
        await client.call("run_command", {"command": "true"})
        shown = await client.call("get_sandbox", {})
        assert shown["structuredContent"]["template"] == "base"
