"""The TypeScript SDKs, 1 and 2, on both transports: what most clients are built on.

Source: mcp.md 3.2; the issue, "Shown by".
"""

import json

import anyio
import pytest

from cloche_contract.kernel.registry import published_set
from tests.e2e.http_servers import http_server
from tests.e2e.servers import SERVER
from tests.inspector import typescript
from tests.packages.mcp_stdio.raw_client import clean_environ

pytestmark = pytest.mark.anyio

CLIENTS = [("v1", "legacy"), ("v2", "legacy"), ("v2", "auto")]
TOKEN = "correct-horse-battery"


async def list_and_run(sdk: str, mode: str, environ: dict[str, str], *target: str) -> None:
    argv = typescript(sdk, mode, *target)
    if argv is None:
        pytest.skip("the TypeScript SDKs are not installed: run python -m tests.inspector")
    with anyio.fail_after(60):
        done = await anyio.run_process(argv, env=environ, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert told == {
        "tools": [*published_set("sandbox").tool_names],
        "stdout": "42\n",
        "error": "file_not_found",
    }


async def test_the_typescript_sdks_list_tools_and_run_code_over_http(environ: dict[str, str]) -> None:
    async with http_server({**environ, "ABX_MCP_AUTH_TOKEN": TOKEN}) as server:
        for sdk, mode in CLIENTS:
            await list_and_run(sdk, mode, clean_environ(), server.url, TOKEN)


@pytest.mark.parametrize(("sdk", "mode"), CLIENTS)
async def test_the_typescript_sdks_list_tools_and_run_code_over_stdio(
    sdk: str, mode: str, environ: dict[str, str]
) -> None:
    await list_and_run(sdk, mode, environ, "--", *SERVER)
