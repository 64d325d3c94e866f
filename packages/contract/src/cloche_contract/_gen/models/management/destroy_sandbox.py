"""Generated from schemas/tools/management/destroy_sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from ..common.docker import ManagedEndpoint, SharedBase


class DestroySandboxInput(BaseModel):
    """
    Arguments of destroy_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(max_length=128, min_length=1, pattern="^[A-Za-z0-9._-]+$")]
    """
    Sandbox id, 1 to 128 letters, digits, dots, hyphens and underscores.
    """


class DestroySandboxOutput(BaseModel):
    """
    Result of destroy_sandbox: the record as it was last, in state stopped.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Id of the sandbox.
    """
    workspace_root: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Directory on this machine that it was made of.
    """
    state: Annotated[
        Literal["creating", "ready", "stopping", "stopped", "failed"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    creating until its agent answered, ready from then on, stopping while it is destroyed, stopped in the answer that destroyed it, failed when its container is gone or could not be removed.
    """
    daemon: Annotated[ManagedEndpoint | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Where its agent was told to listen, or null where it has none. No proof that it answers.
    """
    daemon_http: Annotated[ManagedEndpoint | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Where its interpreter was told to listen, or null where it has none.
    """
    shared_base: Annotated[SharedBase | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    The base that it stands on, or null where it has none yet.
    """
