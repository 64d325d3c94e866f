"""Names of schemas/http. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.models.http.platform import CreatedSandbox as CreatedSandbox
    from cloche_contract._gen.models.http.platform import NewSandbox as NewSandbox
    from cloche_contract._gen.models.http.platform import Pause as Pause
    from cloche_contract._gen.models.http.platform import PlatformError as PlatformError
    from cloche_contract._gen.models.http.platform import SandboxDetail as SandboxDetail
    from cloche_contract._gen.models.http.platform import Timeout as Timeout

_WHERE = {
    "CreatedSandbox": "cloche_contract._gen.models.http.platform",
    "NewSandbox": "cloche_contract._gen.models.http.platform",
    "Pause": "cloche_contract._gen.models.http.platform",
    "PlatformError": "cloche_contract._gen.models.http.platform",
    "SandboxDetail": "cloche_contract._gen.models.http.platform",
    "Timeout": "cloche_contract._gen.models.http.platform",
}

__all__ = [
    "CreatedSandbox",
    "NewSandbox",
    "Pause",
    "PlatformError",
    "SandboxDetail",
    "Timeout",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
