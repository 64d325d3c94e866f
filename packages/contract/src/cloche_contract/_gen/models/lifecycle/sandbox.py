"""Generated from schemas/lifecycle/sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    StrictInt,
    StrictStr,
)


class SandboxMetadata(BaseModel):
    """
    What may be shown of a sandbox: nine keys, always all of them.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox.
    """
    template: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Template it was made from, or null.
    """
    status: Annotated[
        Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    State of the sandbox.
    """
    region: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Region it runs in, or null.
    """
    started_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Start, ISO 8601 with a time zone, or null.
    """
    end_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    End of its lifetime, ISO 8601 with a time zone, or null.
    """
    cpu_count: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "cores", "x-disclosure": "model"}),
    ]
    """
    CPU cores, or null when not known.
    """
    memory_mb: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "MB", "x-disclosure": "model"}),
    ]
    """
    Memory in MB, or null when not known.
    """
    disk_size_mb: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "MB", "x-disclosure": "model"}),
    ]
    """
    Disk in MB, or null when not known.
    """


class AgentEndpoint(BaseModel):
    """
    Where the agent of a sandbox answers.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    base_url: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "internal"})]
    """
    Base URL of the agent.
    """
    socket_path: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "internal"})]
    """
    Unix socket of the agent, or null when it is reached over the network.
    """
    access_token: Annotated[SecretStr, Field(json_schema_extra={"x-disclosure": "secret"})]
    """
    Token that every request carries.
    """
    version: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "internal"})]
    """
    Protocol version of the agent.
    """
    headers: Annotated[
        dict[str, StrictStr] | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}),
    ] = MISSING
    """
    Headers that route a request to this sandbox.
    """
    interpreter_url: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "internal"})] = None
    """
    Base URL of the interpreter, where it answers at another address than the rest of the agent.
    """
    renew_on_request: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "internal"})] = False
    """
    Whether the agent renews the lifetime by the header Cloche-Renew of any request.
    """


class SandboxRecord(BaseModel):
    """
    Everything a provider knows about a sandbox. Wide and confidential: only disclose() leads from here to a result.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox, without its provider.
    """
    template: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Template it was made from, or null.
    """
    status: Annotated[
        Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    State of the sandbox.
    """
    region: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})] = None
    """
    Region it runs in, or null.
    """
    started_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})] = None
    """
    Start, ISO 8601 with a time zone, or null.
    """
    end_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})] = None
    """
    End of its lifetime, ISO 8601 with a time zone, or null.
    """
    cpu_count: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "cores", "x-disclosure": "model"}),
    ] = None
    """
    CPU cores, or null when not known.
    """
    memory_mb: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "MB", "x-disclosure": "model"}),
    ] = None
    """
    Memory in MB, or null when not known.
    """
    disk_size_mb: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "MB", "x-disclosure": "model"}),
    ] = None
    """
    Disk in MB, or null when not known.
    """
    url: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    Address of the sandbox, without a token and without a host path.
    """
    agent: Annotated[AgentEndpoint | None, Field(json_schema_extra={"x-disclosure": "internal"})] = None
    """
    Where the agent answers, or null when it cannot be reached.
    """
    account_id: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "internal"})] = None
    """
    Account that pays for the sandbox.
    """
    user_metadata: Annotated[dict[str, StrictStr], Field(json_schema_extra={"x-disclosure": "internal"})] = {}
    """
    Labels that its maker attached.
    """
    lifecycle: Annotated[dict[str, StrictStr], Field(json_schema_extra={"x-disclosure": "internal"})] = {}
    """
    Lifecycle settings of the platform.
    """
    envs: Annotated[dict[str, StrictStr], Field(json_schema_extra={"x-disclosure": "secret"})] = {}
    """
    Environment variables, where the provider returns them.
    """
