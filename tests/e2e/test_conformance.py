"""The official conformance suite of MCP against the production server, in both eras.

The lists in `conformance/` name what a server with tools and nothing else cannot have; the suite
fails on whatever else does not pass, and on an entry that does.

Source: mcp.md 2; the issue, "Shown by".
"""

from pathlib import Path

import anyio
import pytest

from tests.e2e.http_servers import http_server
from tests.inspector import conformance
from tests.packages.mcp_stdio.raw_client import clean_environ

pytestmark = pytest.mark.anyio

REVISIONS = ("2025-11-25", "2026-07-28")
BASELINES = Path(__file__).parent / "conformance"


async def test_m19_the_official_conformance_suite_passes_in_both_eras(environ: dict[str, str]) -> None:
    """codex#13987, action_mcp#181: batches, unknown methods, wrong versions are answered and do not hang."""
    if conformance() is None:
        pytest.skip("the conformance suite is not installed: run python -m tests.inspector")
    async with http_server(environ) as server:
        for revision in REVISIONS:
            baseline = str(BASELINES / f"{revision}.yml")
            argv = conformance("--url", server.url, "--requirements", revision, "--expected-failures", baseline)
            assert argv is not None
            with anyio.fail_after(60):
                done = await anyio.run_process(argv, env=clean_environ(), check=False)
            assert done.returncode == 0, done.stdout.decode()[-4000:] + done.stderr.decode()
