"""A sandbox that ends with the process that made it, where the operator says so. Source: local-runtime, Lifetime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.provider import CreateRequest, ListRequest
from cloche_local import journal
from tests.packages.local.sandboxes import is_running, make_provider, opened, until_gone

_SERVER = """
import json, sys
import anyio
from cloche_contract.provider import CreateRequest, InspectRequest, ProviderOptions
from cloche_local.provider import LocalProvider

async def main():
    provider = LocalProvider(ProviderOptions(settings=json.loads(sys.argv[1]), environ={}))
    for _ in range(2):
        record = await provider.create(CreateRequest(template="base", timeout=600))
        facts = (await provider.inspect(InspectRequest(sandbox_id=record.sandbox_id))).facts
        print(facts["keeper_pid"], facts["init_pid"], flush=True)
    sys.stdin.read()

anyio.run(main)
"""


@contextmanager
def _served(folder: Path, end_with: str) -> Generator[tuple[subprocess.Popen[str], list[int]]]:
    """A server of its own with two sandboxes, the first of them built in advance or not; and their processes."""
    settings = {"local_state_dir": f"{folder}/state", "local_runtime_dir": f"{folder}/run", "local_end_with": end_with}
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
    ) as server:
        assert server.stdout is not None
        pids = [int(pid) for _ in range(2) for pid in server.stdout.readline().split()]
        try:
            yield server, pids
        finally:
            server.kill()


@pytest.fixture
def place() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        yield Path(path)


async def test_a_sandbox_ends_with_the_server_that_was_killed(place: Path, usable: None) -> None:
    """Killed, the server ends nothing itself: each keeper notices, and nothing is left, listed or running."""
    with _served(place, "server") as (server, pids):
        assert len(pids) == 4
        server.kill()
        for pid in pids:
            await until_gone(pid)
    async with opened(make_provider(place)) as provider:
        assert (await provider.list(ListRequest())).sandboxes == []
    logs = [journal.read(str(path)) or [] for path in (place / "state" / journal.FOLDER).iterdir()]
    assert [events[-1].get("reason") for events in logs] == ["maker_gone", "maker_gone"]


async def test_a_sandbox_outlives_its_server_where_nothing_else_is_said(place: Path, usable: None) -> None:
    """The default: its deadline ends it, and another process finds it."""
    with _served(place, "deadline") as (server, pids):
        server.kill()
        server.wait()
        assert all(is_running(pid) for pid in pids)
        async with opened(make_provider(place)) as provider:
            assert len((await provider.list(ListRequest())).sandboxes) == 2


async def test_a_setting_that_means_nothing_makes_no_sandbox(folder: Path, usable: None) -> None:
    """S5, fail closed: a word that is none of the two is not taken for the default."""
    async with opened(make_provider(folder, local_end_with="never")) as provider:
        with pytest.raises(ConfigurationInvalid) as refused:
            await provider.create(CreateRequest(template="base", timeout=60))
        assert refused.value.details["setting"] == "ABX_LOCAL_END_WITH"
