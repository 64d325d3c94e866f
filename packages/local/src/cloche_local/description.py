"""What a state folder tells, in the words of the contract."""

from datetime import UTC, datetime

from pydantic import SecretStr

from cloche_contract.agent import PROTOCOL
from cloche_contract.errors import SandboxIncompatible, SandboxNotFound
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord
from cloche_local.listener import url
from cloche_local.paths import SocketFolder
from cloche_local.state import Record, RecordProblem, StateFolder, Unreadable


def find(state: StateFolder, sandbox_id: str) -> Record:
    """The record of a live sandbox.

    Raises:
        SandboxNotFound: no live sandbox of this user has the id.
        SandboxIncompatible: one has, and this version cannot use it.
    """
    try:
        record = state.read(sandbox_id)
    except Unreadable as told:
        raise SandboxIncompatible(problem=told.problem) from told
    if record is None:
        raise SandboxNotFound
    return record


def describe(record: Record, agent: AgentEndpoint | None = None) -> SandboxRecord:
    """A sandbox that lives."""
    return SandboxRecord(
        sandbox_id=record.sandbox_id,
        template=record.template,
        status="running",
        region=None,
        started_at=iso(record.started_at),
        end_at=iso(record.end_at),
        cpu_count=record.cpus,
        memory_mb=record.memory_mb,
        disk_size_mb=record.disk_mb,
        url=address(record.sandbox_id, record.port),
        agent=agent,
        user_metadata=dict(record.metadata),
    )


def describe_unreadable(sandbox_id: str, problem: RecordProblem) -> SandboxRecord:
    """A sandbox that lives, of which this version knows no more than the id."""
    return SandboxRecord(
        sandbox_id=sandbox_id,
        template=None,
        status="error" if problem == "damaged" else "running",
        lifecycle={"problem": problem},
    )


def endpoint(state: StateFolder, sockets: SocketFolder, record: Record) -> AgentEndpoint:
    """Where the sandbox's agent answers.

    Raises:
        SandboxNotFound: it ended meanwhile.
        SandboxIncompatible: its agent speaks another version of the protocol.
    """
    if record.agent_protocol != PROTOCOL:
        raise SandboxIncompatible(problem="newer" if record.agent_protocol > PROTOCOL else "older")
    try:
        token = state.read_token(record.sandbox_id)
    except OSError as error:
        raise SandboxNotFound from error
    return agent_at(sockets, record.runtime_folder, record.socket_name, token)


def agent_at(sockets: SocketFolder, runtime_folder: str, socket_name: str, token: str) -> AgentEndpoint:
    """An agent that speaks our version of the protocol."""
    return AgentEndpoint(
        base_url="http://local",
        socket_path=sockets.address(runtime_folder, socket_name),
        access_token=SecretStr(token),
        version=PROTOCOL,
        renew_on_request=True,
    )


def address(sandbox_id: str, port: int | None) -> str:
    """The sandbox's public address; it carries no token."""
    return f"local:{sandbox_id}" if port is None else url(port)


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
