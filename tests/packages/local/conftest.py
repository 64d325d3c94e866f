"""Fixtures of the local provider's tests. Nothing is faked unless its name says so."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest

from cloche_contract.provider import KillRequest
from cloche_local.provider import LocalProvider
from cloche_sdk import AsyncSandbox, Doors, load_settings
from tests.packages.local.sandboxes import Sandbox, become_subreaper, made, make_provider, opened, reap_orphans


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder() -> Generator[Path]:
    """A short path: socket addresses end after 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        yield Path(path)


@pytest.fixture(scope="session", autouse=True)
def subreaper() -> None:
    become_subreaper()


@pytest.fixture(autouse=True)
def no_zombies() -> Generator[None]:
    """What was orphaned in a test is reaped after it: a zombie still counts for the process limit of its id."""
    yield
    reap_orphans()


_causes: list[str] = []


# Not for the session: an async fixture keeps its event loop, and synchronous tests elsewhere run one of their own.
@pytest.fixture(scope="module")
async def usable() -> None:
    """Skip, with the cause, where this machine cannot make a sandbox."""
    if not _causes:
        with tempfile.TemporaryDirectory(prefix="cl-") as path:
            provider = make_provider(Path(path))
            try:
                report = await provider.probe()
            finally:
                await provider.close()
        failed = [check.cause or check.id for check in report.checks if not check.ok]
        _causes.append("" if report.usable else ", ".join(failed))
    if _causes[0]:
        pytest.skip(f"this machine cannot make a local sandbox: {_causes[0]}")


@pytest.fixture
async def provider(folder: Path, usable: None) -> AsyncGenerator[LocalProvider]:
    async with opened(make_provider(folder)) as provider:
        yield provider


@pytest.fixture
async def sandbox(provider: LocalProvider) -> AsyncGenerator[Sandbox]:
    async with made(provider) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
async def shared_sandbox(usable: None) -> AsyncGenerator[Sandbox]:
    """One sandbox for tests that leave it as it was."""
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        async with opened(make_provider(Path(path))) as provider, made(provider, timeout=600) as sandbox:
            yield sandbox
            with anyio.CancelScope(shield=True):
                await provider.kill(KillRequest(sandbox_id=sandbox.id))


@pytest.fixture
async def doors(folder: Path, usable: None) -> AsyncGenerator[Doors]:
    """The local provider with folders of its own; none of its sandboxes is left at the end."""
    environ = {
        "ABX_LOCAL_STATE_DIR": str(folder / "state"),
        "ABX_LOCAL_RUNTIME_DIR": str(folder / "run"),
        "ABX_PROVIDER": "local",
    }
    doors = Doors(settings=load_settings(environ, home=folder, workdir=folder), environ=environ)
    yield doors
    with anyio.CancelScope(shield=True):
        for record in await AsyncSandbox.list(doors=doors):
            await AsyncSandbox.kill_by_id(record.sandbox_id, doors=doors)
