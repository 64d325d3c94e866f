"""What a platform says about a sandbox, as the record of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pydantic import MISSING, SecretStr

from cloche_contract.agent import HEADER_SANDBOX_PORT
from cloche_contract.http import HEADER_SANDBOX_ID, CreatedSandbox, NewSandbox, SandboxDetail
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord, SandboxStatus
from cloche_contract.provider import CreateRequest

from .presets import Addresses

__all__ = ["CREATE_LABEL", "created_record", "detail_record", "labels_of", "new_sandbox", "running_record"]

# A sandbox carries what its create was called, so that one whose answer was lost can be found.
CREATE_LABEL = "cloche.create"
AGENT_PORT = "49983"
_BASIC_USER = "Basic dXNlcjo="  # older agents take the user from here
_STATES: Mapping[str, SandboxStatus] = {
    "creating": "creating",
    "starting": "creating",
    "running": "running",
    "paused": "paused",
    "pausing": "pausing",
    "stopping": "stopping",
    "killing": "stopping",
    "stopped": "stopped",
    "killed": "stopped",
}

T = TypeVar("T")


def new_sandbox(request: CreateRequest, label: str | None) -> NewSandbox:
    """What to send for a create: what was asked for, and nothing that was not."""
    asked = {"envVars": request.envs, "cpuCount": request.cpu, "memoryMB": request.memory}
    wanted: dict[str, Any] = {name: value for name, value in asked.items() if value is not MISSING}
    labels = dict(_given(request.metadata) or {})
    if label is not None:
        labels[CREATE_LABEL] = label
    if labels:
        wanted["metadata"] = labels
    return NewSandbox(templateID=request.template, timeout=request.timeout, **wanted)


def created_record(
    created: CreatedSandbox, addresses: Addresses, *, end_at: str, asked: CreateRequest | None = None
) -> SandboxRecord:
    """A sandbox that was just made, as `asked`, or resumed."""
    return SandboxRecord(
        sandbox_id=created.sandboxID,
        template=created.templateID,
        status="running",
        region=addresses.region,
        end_at=end_at,
        cpu_count=None if asked is None else _given(asked.cpu),
        memory_mb=None if asked is None else _given(asked.memory),
        **_reached(created, addresses),
    )


def running_record(detail: SandboxDetail, addresses: Addresses) -> SandboxRecord:
    """The metadata of a sandbox, with the way to its agent."""
    return detail_record(detail, addresses).model_copy(update=_reached(detail, addresses))


def _reached(sandbox: CreatedSandbox | SandboxDetail, addresses: Addresses) -> dict[str, Any]:
    url, interpreter_url = addresses.agent(sandbox.sandboxID, _given(sandbox.domain))
    routing = {HEADER_SANDBOX_ID: sandbox.sandboxID, HEADER_SANDBOX_PORT: AGENT_PORT, "Authorization": _BASIC_USER}
    agent = AgentEndpoint(
        base_url=url,
        interpreter_url=interpreter_url,
        socket_path=None,
        access_token=SecretStr(_given(sandbox.envdAccessToken) or ""),
        version=_given(sandbox.envdVersion) or "",
        headers=routing,
    )
    return {"url": url, "agent": agent}


def detail_record(detail: SandboxDetail, addresses: Addresses) -> SandboxRecord:
    """The metadata of a sandbox, without a way to its agent."""
    return SandboxRecord(
        sandbox_id=detail.sandboxID,
        template=detail.templateID,
        status=_STATES.get(detail.state.lower(), "error"),
        region=addresses.region,
        started_at=_given(detail.startedAt),
        end_at=_given(detail.endAt),
        cpu_count=_given(detail.cpuCount),
        memory_mb=_given(detail.memoryMB),
        disk_size_mb=_given(detail.diskSizeMB),
        user_metadata={name: value for name, value in labels_of(detail).items() if name != CREATE_LABEL},
    )


def labels_of(detail: SandboxDetail) -> Mapping[str, str]:
    """Every label of a sandbox, that of its create included."""
    return _given(detail.metadata) or {}


def _given(value: T | MISSING) -> T | None:
    return None if value is MISSING else cast("T", value)
