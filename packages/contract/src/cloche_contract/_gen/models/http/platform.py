"""Generated from schemas/http/platform.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)
from typing_extensions import TypeAliasType

MetadataAdditionalProperty = TypeAliasType("MetadataAdditionalProperty", Annotated[StrictStr, Field(max_length=4096)])


EnvVarsAdditionalProperty = TypeAliasType("EnvVarsAdditionalProperty", Annotated[StrictStr, Field(max_length=32768)])


class NewSandbox(BaseModel):
    """
    What to make.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    templateID: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=256, min_length=1),
    ]
    """
    Template to start from.
    """
    timeout: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "s", "x-disclosure": "model"}, le=86400),
    ]
    """
    Lifetime from now.
    """
    autoPause: Annotated[StrictBool | MISSING, Field(json_schema_extra={"x-disclosure": "internal"})] = MISSING
    """
    Whether it is paused at its end instead of destroyed.
    """
    secure: Annotated[StrictBool | MISSING, Field(json_schema_extra={"x-disclosure": "internal"})] = MISSING
    """
    Whether its agent wants a token.
    """
    metadata: Annotated[
        dict[str, MetadataAdditionalProperty] | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=101),
    ] = MISSING
    """
    Labels that the platform keeps.
    """
    envVars: Annotated[
        dict[str, EnvVarsAdditionalProperty] | MISSING,
        Field(json_schema_extra={"x-disclosure": "secret"}, max_length=100),
    ] = MISSING
    """
    Environment variables of everything that runs in it.
    """
    cpuCount: Annotated[
        StrictInt | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "cores", "x-disclosure": "model"}, le=256),
    ] = MISSING
    """
    CPU cores.
    """
    memoryMB: Annotated[
        StrictInt | MISSING,
        Field(
            ge=1,
            json_schema_extra={"x-unit": "MB", "x-disclosure": "model"},
            le=1048576,
        ),
    ] = MISSING
    """
    Memory.
    """


class CreatedSandbox(BaseModel):
    """
    What it takes to use a sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandboxID: Annotated[
        StrictStr,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=256,
            min_length=1,
            pattern="^[A-Za-z0-9_-]+$",
        ),
    ]
    """
    Id of the sandbox.
    """
    templateID: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"}, max_length=256)]
    """
    Template it was made from.
    """
    clientID: Annotated[
        StrictStr | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=256),
    ] = MISSING
    """
    Obsolete; older clients need it.
    """
    envdVersion: Annotated[
        StrictStr | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=64),
    ] = MISSING
    """
    Version of its agent.
    """
    envdAccessToken: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "secret"}, max_length=4096),
    ] = MISSING
    """
    Token that every request to its agent carries.
    """
    domain: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=253),
    ] = MISSING
    """
    Domain below which it is reached.
    """


class SandboxDetail(BaseModel):
    """
    What a platform knows about a sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandboxID: Annotated[
        StrictStr,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=256,
            min_length=1,
            pattern="^[A-Za-z0-9_-]+$",
        ),
    ]
    """
    Id of the sandbox.
    """
    templateID: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"}, max_length=256)]
    """
    Template it was made from.
    """
    alias: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=256),
    ] = MISSING
    """
    Name of the template.
    """
    clientID: Annotated[
        StrictStr | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=256),
    ] = MISSING
    """
    Obsolete; older clients need it.
    """
    state: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"}, max_length=64)]
    """
    State; running and paused are known everywhere.
    """
    startedAt: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=64),
    ] = MISSING
    """
    Start, RFC 3339.
    """
    endAt: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=64),
    ] = MISSING
    """
    End of its lifetime, RFC 3339.
    """
    cpuCount: Annotated[
        StrictInt | None | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "cores", "x-disclosure": "model"},
            le=4096,
        ),
    ] = MISSING
    """
    CPU cores.
    """
    memoryMB: Annotated[
        StrictInt | None | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "MB", "x-disclosure": "model"},
            le=1073741824,
        ),
    ] = MISSING
    """
    Memory.
    """
    diskSizeMB: Annotated[
        StrictInt | None | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "MB", "x-disclosure": "model"},
            le=1073741824,
        ),
    ] = MISSING
    """
    Disk.
    """
    metadata: Annotated[
        dict[str, Any] | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}),
    ] = MISSING
    """
    Labels that its maker attached.
    """
    envdVersion: Annotated[
        StrictStr | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=64),
    ] = MISSING
    """
    Version of its agent.
    """
    envdAccessToken: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "secret"}, max_length=4096),
    ] = MISSING
    """
    Token that every request to its agent carries.
    """
    domain: Annotated[
        StrictStr | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=253),
    ] = MISSING
    """
    Domain below which it is reached.
    """


class Timeout(BaseModel):
    """
    How long a sandbox lives from now.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    timeout: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "s", "x-disclosure": "model"}, le=86400),
    ]
    """
    Lifetime from now.
    """


class Pause(BaseModel):
    """
    How a sandbox is paused; nothing needs to be said.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    memory: Annotated[StrictBool | MISSING, Field(json_schema_extra={"x-disclosure": "internal"})] = MISSING
    """
    Whether its processes are kept too; left out, the platform decides.
    """


class PlatformError(BaseModel):
    """
    The body of every answer that is an error.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    code: Annotated[
        StrictInt,
        Field(
            ge=100,
            json_schema_extra={"x-unit": "count", "x-disclosure": "internal"},
            le=599,
        ),
    ]
    """
    The HTTP status.
    """
    message: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=4096),
    ]
    """
    What is wrong, for people.
    """
