"""Generated from schemas/tools/sandbox/set_sandbox_timeout.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


class SetSandboxTimeoutInput(BaseModel):
    """
    Arguments of set_sandbox_timeout.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=86400)]
    """
    Lifetime of the sandbox from now, in seconds, 1 to 86400.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class SetSandboxTimeoutOutput(BaseModel):
    """
    Result of set_sandbox_timeout.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    success: Annotated[Literal[True], Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Always true: a failure is an error.
    """
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox.
    """
    timeout: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "s", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Lifetime from now, in seconds.
    """
