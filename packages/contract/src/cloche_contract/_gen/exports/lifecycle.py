"""Names of schemas/lifecycle. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.enums import SANDBOX_STATUS_VALUES as SANDBOX_STATUS_VALUES
    from cloche_contract._gen.enums import SandboxStatus as SandboxStatus
    from cloche_contract._gen.models.lifecycle.sandbox import AgentEndpoint as AgentEndpoint
    from cloche_contract._gen.models.lifecycle.sandbox import SandboxMetadata as SandboxMetadata
    from cloche_contract._gen.models.lifecycle.sandbox import SandboxRecord as SandboxRecord

_WHERE = {
    "AgentEndpoint": "cloche_contract._gen.models.lifecycle.sandbox",
    "SANDBOX_STATUS_VALUES": "cloche_contract._gen.enums",
    "SandboxMetadata": "cloche_contract._gen.models.lifecycle.sandbox",
    "SandboxRecord": "cloche_contract._gen.models.lifecycle.sandbox",
    "SandboxStatus": "cloche_contract._gen.enums",
}

__all__ = [
    "AgentEndpoint",
    "SANDBOX_STATUS_VALUES",
    "SandboxMetadata",
    "SandboxRecord",
    "SandboxStatus",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
