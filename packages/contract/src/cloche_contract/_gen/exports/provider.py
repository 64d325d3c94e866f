"""Names of schemas/provider. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.models.provider.operations import ConnectRequest as ConnectRequest
    from cloche_contract._gen.models.provider.operations import CreateRequest as CreateRequest
    from cloche_contract._gen.models.provider.operations import DiffEntry as DiffEntry
    from cloche_contract._gen.models.provider.operations import DiffRequest as DiffRequest
    from cloche_contract._gen.models.provider.operations import DiffResult as DiffResult
    from cloche_contract._gen.models.provider.operations import EmulatedAbility as EmulatedAbility
    from cloche_contract._gen.models.provider.operations import EntryState as EntryState
    from cloche_contract._gen.models.provider.operations import GetRequest as GetRequest
    from cloche_contract._gen.models.provider.operations import InspectRequest as InspectRequest
    from cloche_contract._gen.models.provider.operations import InspectResult as InspectResult
    from cloche_contract._gen.models.provider.operations import KillRequest as KillRequest
    from cloche_contract._gen.models.provider.operations import Leftover as Leftover
    from cloche_contract._gen.models.provider.operations import LimitInfo as LimitInfo
    from cloche_contract._gen.models.provider.operations import ListRequest as ListRequest
    from cloche_contract._gen.models.provider.operations import ListResult as ListResult
    from cloche_contract._gen.models.provider.operations import LogEvent as LogEvent
    from cloche_contract._gen.models.provider.operations import LogsRequest as LogsRequest
    from cloche_contract._gen.models.provider.operations import LogsResult as LogsResult
    from cloche_contract._gen.models.provider.operations import MountInfo as MountInfo
    from cloche_contract._gen.models.provider.operations import NetworkRules as NetworkRules
    from cloche_contract._gen.models.provider.operations import PauseRequest as PauseRequest
    from cloche_contract._gen.models.provider.operations import ProbeCheck as ProbeCheck
    from cloche_contract._gen.models.provider.operations import ProbeReport as ProbeReport
    from cloche_contract._gen.models.provider.operations import PruneRequest as PruneRequest
    from cloche_contract._gen.models.provider.operations import PruneResult as PruneResult
    from cloche_contract._gen.models.provider.operations import ResumeRequest as ResumeRequest
    from cloche_contract._gen.models.provider.operations import SetTimeoutRequest as SetTimeoutRequest
    from cloche_contract._gen.models.provider.operations import UpdateNetworkRequest as UpdateNetworkRequest

_WHERE = {
    "ConnectRequest": "cloche_contract._gen.models.provider.operations",
    "CreateRequest": "cloche_contract._gen.models.provider.operations",
    "DiffEntry": "cloche_contract._gen.models.provider.operations",
    "DiffRequest": "cloche_contract._gen.models.provider.operations",
    "DiffResult": "cloche_contract._gen.models.provider.operations",
    "EmulatedAbility": "cloche_contract._gen.models.provider.operations",
    "EntryState": "cloche_contract._gen.models.provider.operations",
    "GetRequest": "cloche_contract._gen.models.provider.operations",
    "InspectRequest": "cloche_contract._gen.models.provider.operations",
    "InspectResult": "cloche_contract._gen.models.provider.operations",
    "KillRequest": "cloche_contract._gen.models.provider.operations",
    "Leftover": "cloche_contract._gen.models.provider.operations",
    "LimitInfo": "cloche_contract._gen.models.provider.operations",
    "ListRequest": "cloche_contract._gen.models.provider.operations",
    "ListResult": "cloche_contract._gen.models.provider.operations",
    "LogEvent": "cloche_contract._gen.models.provider.operations",
    "LogsRequest": "cloche_contract._gen.models.provider.operations",
    "LogsResult": "cloche_contract._gen.models.provider.operations",
    "MountInfo": "cloche_contract._gen.models.provider.operations",
    "NetworkRules": "cloche_contract._gen.models.provider.operations",
    "PauseRequest": "cloche_contract._gen.models.provider.operations",
    "ProbeCheck": "cloche_contract._gen.models.provider.operations",
    "ProbeReport": "cloche_contract._gen.models.provider.operations",
    "PruneRequest": "cloche_contract._gen.models.provider.operations",
    "PruneResult": "cloche_contract._gen.models.provider.operations",
    "ResumeRequest": "cloche_contract._gen.models.provider.operations",
    "SetTimeoutRequest": "cloche_contract._gen.models.provider.operations",
    "UpdateNetworkRequest": "cloche_contract._gen.models.provider.operations",
}

__all__ = [
    "ConnectRequest",
    "CreateRequest",
    "DiffEntry",
    "DiffRequest",
    "DiffResult",
    "EmulatedAbility",
    "EntryState",
    "GetRequest",
    "InspectRequest",
    "InspectResult",
    "KillRequest",
    "Leftover",
    "LimitInfo",
    "ListRequest",
    "ListResult",
    "LogEvent",
    "LogsRequest",
    "LogsResult",
    "MountInfo",
    "NetworkRules",
    "PauseRequest",
    "ProbeCheck",
    "ProbeReport",
    "PruneRequest",
    "PruneResult",
    "ResumeRequest",
    "SetTimeoutRequest",
    "UpdateNetworkRequest",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
