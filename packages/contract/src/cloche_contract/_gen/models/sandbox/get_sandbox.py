"""Generated from schemas/tools/sandbox/get_sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


class GetSandboxInput(BaseModel):
    """
    Arguments of get_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class GetSandboxOutput(BaseModel):
    """
    Result of get_sandbox.
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
