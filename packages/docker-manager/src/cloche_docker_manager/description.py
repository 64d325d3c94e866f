"""What a record tells, in the words of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from pydantic import SecretStr

from cloche_contract.agent import PROTOCOL
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord

from .container import LOOPBACK
from .registry import Record, State

_STATUS: Mapping[State, Literal["creating", "running", "stopping", "stopped", "error"]] = {
    "creating": "creating",
    "ready": "running",
    "stopping": "stopping",
    "stopped": "stopped",
    "failed": "error",
}


def describe(record: Record, *, with_agent: bool = False, end_at: str | None = None) -> SandboxRecord:
    """A sandbox of the manager.

    Args:
        end_at: what its agent says; left out, what is written down.
    """
    return SandboxRecord(
        sandbox_id=record.id,
        template=record.template or record.image,
        status=_STATUS[record.state],
        region=None,
        started_at=_iso(record.started_at) if record.started_at else None,
        end_at=end_at or (_iso(record.end_at) if record.end_at else None),
        cpu_count=record.cores,
        memory_mb=record.memory_mb,
        disk_size_mb=None,
        url=None if record.agent_port is None else _url(record.agent_port),
        agent=_endpoint(record) if with_agent else None,
        user_metadata=dict(record.metadata),
    )


def _endpoint(record: Record) -> AgentEndpoint | None:
    if record.agent_port is None or record.interpreter_port is None:
        return None
    return AgentEndpoint(
        base_url=_url(record.agent_port),
        socket_path=None,
        access_token=SecretStr(record.token),
        version=PROTOCOL,
        interpreter_url=_url(record.interpreter_port),
        renew_on_request=True,
    )


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
