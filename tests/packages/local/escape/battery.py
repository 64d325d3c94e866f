"""The whole battery, and the sandboxes that it is tried in: one for each set of protections that is taken out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from cloche_contract.provider import CreateRequest
from cloche_local.ending import end_keeper
from cloche_local.provider import LocalProvider
from cloche_local.spec import Protections
from cloche_local.state import StateFolder
from tests.packages.local.escape.attempts import Attempt
from tests.packages.local.escape.attempts_host import HOST_ATTEMPTS
from tests.packages.local.escape.attempts_kernel import KERNEL_ATTEMPTS
from tests.packages.local.sandboxes import Sandbox, client_of, make_provider

ATTEMPTS: tuple[Attempt, ...] = (*HOST_ATTEMPTS, *KERNEL_ATTEMPTS)
# A setting of the zygote, not of a sandbox.
_OF_THE_ZYGOTE = "empty_environment"


@dataclass
class Workshop:
    """Sandboxes by what they lack. Attempts run in children and leave a sandbox as it was."""

    folder: Path
    _providers: dict[bool, LocalProvider] = field(default_factory=dict[bool, LocalProvider])
    _made: dict[frozenset[str], Sandbox] = field(default_factory=dict[frozenset[str], Sandbox])

    async def without(self, *names: str) -> Sandbox:
        """A sandbox that lacks the named protections."""
        key = frozenset(names)
        if key not in self._made:
            protections = replace(Protections(), **dict.fromkeys(names, False))
            provider = self._provider(protections)
            provider.protections = protections
            record = await provider.create(CreateRequest(template="base", timeout=600))
            self._made[key] = Sandbox(record, client_of(record))
        return self._made[key]

    def _provider(self, protections: Protections) -> LocalProvider:
        plain = protections.empty_environment
        if plain not in self._providers:
            self._providers[plain] = make_provider(self.folder, protections=protections)
        return self._providers[plain]

    async def close(self) -> None:
        """End everything; without asking the agents, as some have no /proc of their own to find processes in."""
        for sandbox in self._made.values():
            await sandbox.client.aclose()
            record = StateFolder(str(self.folder / "state")).read(sandbox.id)
            if record is not None:
                await end_keeper(record)
        for provider in self._providers.values():
            await provider.close()


@asynccontextmanager
async def workshop(folder: Path) -> AsyncGenerator[Workshop]:
    """A workshop whose providers keep their state below `folder`."""
    shop = Workshop(folder)
    try:
        yield shop
    finally:
        with anyio.CancelScope(shield=True), suppress(OSError):
            await shop.close()


async def attack(sandbox: Sandbox, code: str, *, user: str = "user", in_interpreter: bool = False) -> str:
    """What the code prints, in a program of its own or in the interpreter that keeps state."""
    if not in_interpreter:
        ran = await sandbox.python(code, user=user)
        return ran.stdout.strip() or ran.stderr or str(ran.error)
    lines = await sandbox.execute(code)
    text = "".join(str(line["text"]) for line in lines if line["type"] == "stdout").strip()
    return text or str(lines)
