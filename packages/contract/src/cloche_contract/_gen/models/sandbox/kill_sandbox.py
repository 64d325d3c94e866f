"""Generated from schemas/tools/sandbox/kill_sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictStr


class KillSandboxInput(BaseModel):
    """
    Arguments of kill_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class KillSandboxOutput(BaseModel):
    """
    Result of kill_sandbox.
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
    Id of the sandbox that was destroyed.
    """
