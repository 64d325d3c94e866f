"""Generated from schemas/tools/sandbox/create_sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    StringConstraints,
)
from typing_extensions import TypeAliasType

EnvsAdditionalProperty = TypeAliasType(
    "EnvsAdditionalProperty",
    Annotated[StrictStr, Field(max_length=32768, pattern="^[^\\x00]*$")],
)


class CreateSandboxInput(BaseModel):
    """
    Arguments of create_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    template: Annotated[
        StrictStr | MISSING,
        Field(max_length=128, min_length=1, pattern="^[ \\t\\r\\n]*[^ \\t\\r\\n]"),
    ] = MISSING
    """
    Template name, 1 to 128 characters. Left out: the template that the server is configured with.
    """
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=86400)] = 300
    """
    Lifetime of the sandbox from now, in seconds, 1 to 86400, default 300.
    """
    envs: Annotated[
        dict[
            Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256, strict=True)],
            EnvsAdditionalProperty,
        ]
        | MISSING,
        Field(max_length=100),
    ] = MISSING
    """
    Environment variables of the sandbox, names to string values: at most 100, a value at most 32768 characters, all of them at most 1 MiB.
    """
    region: Annotated[
        StrictStr | MISSING,
        Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
    ] = MISSING
    """
    Region of the provider, 1 to 64 characters.
    """
    cpu: Annotated[StrictInt | MISSING, Field(ge=1, json_schema_extra={"x-unit": "cores"}, le=256)] = MISSING
    """
    CPU cores, 1 to 256. Left out: the default of the provider.
    """
    memory: Annotated[StrictInt | MISSING, Field(ge=1, json_schema_extra={"x-unit": "MB"}, le=1048576)] = MISSING
    """
    Memory in MB, 1 to 1048576. Left out: the default of the provider.
    """
    provider: Annotated[
        StrictStr | MISSING,
        Field(max_length=40, min_length=2, pattern="^[a-z][a-z0-9]*(-[a-z0-9]+)*$"),
    ] = MISSING
    """
    Id of a configured provider, 2 to 40 characters. Left out: the provider of the server.
    """


class CreateSandboxOutput(BaseModel):
    """
    Result of create_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the new sandbox; pass it as sandbox_id to address it.
    """
    status: Annotated[
        Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    State of the sandbox.
    """
    url: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Address of the sandbox, without a token and without a host path.
    """
