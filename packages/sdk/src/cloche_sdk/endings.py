"""How work in a sandbox ends when it does not end by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloche_contract.errors import CommandTimeout as CatalogueCommandTimeout
from cloche_contract.errors import SandboxLost

from .results import CommandResult, Denial

__all__ = ["CommandInterrupted", "CommandTimeout", "denials", "raise_for_end"]

KILLED_EXIT_CODE = 137
UNKNOWN_EXIT_CODE = -1
DENIALS_KEPT = 16


class CommandTimeout(CatalogueCommandTimeout):
    """The command took too long and was stopped; `result` holds what it wrote until then."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result


class CommandInterrupted(SandboxLost):
    """The sandbox ended while the command ran; `result` holds what it wrote until then."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result


def denials(entries: Sequence[Mapping[str, Any]]) -> tuple[Denial, ...]:
    """The denials that an agent reports, at most 16."""
    return tuple(Denial(str(entry["target"]), entry.get("rule")) for entry in entries[:DENIALS_KEPT])


def raise_for_end(result: CommandResult) -> None:
    """Raise what a caller must not overlook: a timeout, or the loss of the sandbox."""
    if result.stop_reason == "timeout":
        raise CommandTimeout(result)
    if result.stop_reason == "sandbox_lost":
        raise CommandInterrupted(result)
