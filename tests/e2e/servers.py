"""`abx mcp start` as clients start it, once with real isolation and once with the scripted provider."""

import functools
import sys
from pathlib import Path

import anyio
import pytest

from cloche_contract.provider import ProviderOptions
from cloche_local.provider import open_provider

ABX = str(Path(sys.executable).with_name("abx"))
SERVER = [ABX, "mcp", "start"]


@functools.cache
def local_is_refused() -> str | None:
    """Why this machine cannot isolate a sandbox, or None."""

    async def probe() -> str | None:
        async with open_provider(ProviderOptions()) as provider:
            report = await provider.probe()
        failed = [f"{check.id}: {check.cause}" for check in report.checks if not check.ok]
        return None if report.usable else "; ".join(failed) or "no reason given"

    return anyio.run(probe)


def settings_for(provider: str, folder: Path) -> dict[str, str]:
    """The environment of a server whose state lies in this folder.

    Skips the test where the provider cannot run.
    """
    if provider == "local":
        refused = local_is_refused()
        if refused is not None:
            pytest.skip(f"this machine cannot isolate a sandbox: {refused}")
        return {
            "ABX_PROVIDER": "local",
            "ABX_LOCAL_STATE_DIR": str(folder / "state"),
            "ABX_LOCAL_RUNTIME_DIR": str(folder / "run"),
        }
    return {
        "ABX_PROVIDER": "scripted",
        "CLOCHE_TESTKIT_UNSANDBOXED": "1",
        "CLOCHE_TESTKIT_LOG": str(folder / "requests"),
    }
