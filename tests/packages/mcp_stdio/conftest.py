"""A server process over the journalling tool set, for the tests of this folder."""

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from tests.packages.mcp_stdio.raw_client import Era, RawClient, clean_environ, raw_client

SERVER = [sys.executable, str(Path(__file__).with_name("fixture_server.py")), "--set", "sandbox"]

OpenServer = Callable[..., AbstractAsyncContextManager[RawClient]]


class Journal:
    """The lines that the tool set wrote down, in its own process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    async def wait_for(self, line: str) -> None:
        """Return when the line is there; another process writes it, so there is no event to wait on."""
        while line not in self.lines:
            await anyio.sleep(0.01)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def open_server(journal: Journal) -> OpenServer:
    def open_one(era: Era = "legacy", **settings: str) -> AbstractAsyncContextManager[RawClient]:
        return raw_client(SERVER, clean_environ(JOURNAL=str(journal.path), **settings), era)

    return open_one
