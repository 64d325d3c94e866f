"""Generated from schemas/common/docker.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr


class WorkspaceDirectory(BaseModel):
    """
    A directory that may become a workspace.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Its name.
    """
    path: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Its absolute path, without links.
    """


class ManagedEndpoint(BaseModel):
    """
    An address on this machine.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    host: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Address to connect to.
    """
    port: Annotated[
        StrictInt,
        Field(
            ge=1,
            json_schema_extra={"x-unit": "native", "x-disclosure": "operator"},
            le=65535,
        ),
    ]
    """
    TCP port.
    """


class SharedBase(BaseModel):
    """
    The read-only copy of a workspace that its sandboxes share.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    source: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Directory on this machine.
    """
    target: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Directory in the sandbox.
    """
    root_hash: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Hash of the content: the same content has the same hash.
    """
    readonly: Annotated[Literal[True], Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Nothing in a sandbox can change it.
    """


class ManagedSandbox(BaseModel):
    """
    The record of one sandbox.
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
