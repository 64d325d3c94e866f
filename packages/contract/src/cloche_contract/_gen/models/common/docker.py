"""Generated from schemas/common/docker.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


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


class SquashedLayers(BaseModel):
    """
    Layers that became one.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    squashed_layer_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    The layer that stands for them.
    """
    replaced_layer_ids: Annotated[
        list[StrictStr],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=500),
    ]
    """
    Those layers, newest first.
    """
    replaced_layers: Annotated[
        Literal["reclaimed", "leased"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    Whether the replaced layers are gone, or kept as long as a session reads them.
    """
    blocked_reasons: Annotated[
        list[StrictStr] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=100),
    ] = MISSING
    """
    Why they are still there, sorted.
    """


class SessionDisposition(BaseModel):
    """
    What a squash did with a live session.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    The session.
    """
    disposition: Annotated[
        Literal["session_gone", "identity", "migrated", "leased", "faulty"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What a squash did with a live session: nothing to do (identity), it reads the compact layers now (migrated), it keeps the old ones until it ends (leased), it ended meanwhile (session_gone), or it could not be kept and was destroyed (faulty).
    """
    reason: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "operator"})] = MISSING
    """
    Why, where it was not migrated.
    """


class SessionFault(BaseModel):
    """
    A session that could not be kept.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    The session.
    """
    class_detail: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    What failed.
    """
    lease_errors: Annotated[
        list[StrictStr] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=16),
    ] = MISSING
    """
    What failed while its layers were given up.
    """
