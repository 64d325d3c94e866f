"""Generated from schemas/tools/management/create_sandbox.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from ..common.docker import ManagedEndpoint, ManagedSandbox, SharedBase


class CreateSandboxInput(BaseModel):
    """
    Arguments of create_sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    image: Annotated[
        StrictStr,
        Field(max_length=512, min_length=1, pattern="^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"),
    ]
    """
    Container image used to create the sandbox, 1 to 512 characters, as list_docker_images shows it.
    """
    workspace_root: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute host workspace directory bound read-only into the sandbox.
    """
    count: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "count"}, le=32)] = 1
    """
    Number of sandboxes to create, 1 to 32, default 1. They share a read-only workspace base.
    """


class CreateSandboxOutput(BaseModel):
    """
    Result of create_sandbox: one record, or several.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "operator"})] = MISSING
    """
    Id of the sandbox, when count is 1.
    """
    workspace_root: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "operator"})] = MISSING
    """
    Directory on this machine that it was made of.
    """
    state: Annotated[
        Literal["creating", "ready", "stopping", "stopped", "failed"] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ] = MISSING
    """
    creating until its agent answered, ready from then on, stopping while it is destroyed, stopped in the answer that destroyed it, failed when its container is gone or could not be removed.
    """
    daemon: Annotated[
        ManagedEndpoint | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ] = MISSING
    """
    Where its agent listens.
    """
    daemon_http: Annotated[
        ManagedEndpoint | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ] = MISSING
    """
    Where its interpreter listens.
    """
    shared_base: Annotated[
        SharedBase | None | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ] = MISSING
    """
    The base that it stands on.
    """
    sandboxes: Annotated[
        list[ManagedSandbox] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=32),
    ] = MISSING
    """
    One record each, when count is above 1; the other keys are then left out.
    """
