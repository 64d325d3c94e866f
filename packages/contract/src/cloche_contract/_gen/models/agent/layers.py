"""Generated from schemas/agent/layers.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

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

LayerId = TypeAliasType("LayerId", Annotated[StrictStr, Field(max_length=16, min_length=16)])
"""
A layer.
"""


class WorkspaceSession(BaseModel):
    """
    A private view of the workspace: base and layers below, its own changes above.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    manifest_version: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Version of the manifest that it reads.
    """
    layer_ids: Annotated[list[LayerId], Field(max_length=500)]
    """
    Layers that it reads, newest first; the base is below them.
    """
    implicit: StrictBool
    """
    Whether a single command made it: it is published and destroyed when that has ended.
    """
    created_at: Annotated[StrictStr, Field(max_length=64)]
    """
    When it was made, RFC 3339.
    """
    processes: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Commands that run in it.
    """


class CreateSessionRequest(BaseModel):
    """
    A session to make. The id may be chosen by the caller, so that a lost answer can be asked for again.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[
        StrictStr | MISSING,
        Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$"),
    ] = MISSING
    """
    Id to give it; left out, the agent chooses one.
    """


class SessionRequest(BaseModel):
    """
    Which session.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """


class PublishSessionRequest(BaseModel):
    """
    Which session to publish. Its commands get a hangup first, and are killed when the grace is over.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    grace_ms: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "ms"}, le=60000)] = MISSING
    """
    How long its commands may take to end.
    """


class ListSessionsRequest(BaseModel):
    """
    Nothing.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class ListSessionsResponse(BaseModel):
    """
    Live sessions, oldest first.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sessions: Annotated[list[WorkspaceSession], Field(max_length=1000)]
    """
    The sessions.
    """


class SessionDestroyed(BaseModel):
    """
    The session is gone, with what was not published.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    existed: StrictBool
    """
    Whether it was there.
    """


class PathConflict(BaseModel):
    """
    A path that the session and a layer that it does not read both changed.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=16384)]
    """
    The path, relative to the workspace; bytes that are not UTF-8 are replaced.
    """
    reason: Annotated[StrictStr, Field(max_length=64)]
    """
    In which way: content, kind, deleted, added, mode, unreadable.
    """


MergedItem = TypeAliasType("MergedItem", Annotated[StrictStr, Field(max_length=16384)])
"""
A path.
"""


DroppedItem = TypeAliasType("DroppedItem", Annotated[StrictStr, Field(max_length=16384)])
"""
A path.
"""


class PublishResult(BaseModel):
    """
    What became of a session's changes; as an event, those of the session that a command had for itself.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    outcome: Literal["published", "unchanged", "rejected", "pending"]
    """
    Whether the session's changes are a layer now, there were none, or they were refused and the session is kept. Of a code context also: something of the workspace is open, so they wait for a later execution.
    """
    reject_class: Literal["source_conflict", "special_file", "too_deep", "unreadable", "layer_limit"] | MISSING = (
        MISSING
    )
    """
    Why a publish was refused: somebody else changed the same paths, the changes hold a device, folders too deep or what their owner may not read, or the stack is at its limit.
    """
    manifest_version: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Version of the manifest after it.
    """
    layer_id: Annotated[StrictStr | MISSING, Field(max_length=16, min_length=16)] = MISSING
    """
    The new layer, where there is one.
    """
    entries: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    Files, folders, links and deletions that it holds.
    """
    bytes: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Bytes of its files.
    """
    merged: Annotated[list[MergedItem] | MISSING, Field(max_length=100)] = MISSING
    """
    Files that both sides changed in different lines, merged; the first 100.
    """
    dropped: Annotated[list[DroppedItem] | MISSING, Field(max_length=100)] = MISSING
    """
    Sockets and pipes, which no layer holds; the first 100.
    """
    conflicts: Annotated[list[PathConflict] | MISSING, Field(max_length=100)] = MISSING
    """
    Why it was rejected; the first 100.
    """
    conflict_count: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    Conflicts in all.
    """


class SquashRequest(BaseModel):
    """
    Nothing.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


ReplacedLayerId = TypeAliasType("ReplacedLayerId", Annotated[StrictStr, Field(max_length=16, min_length=16)])
"""
A layer.
"""


BlockedReason = TypeAliasType("BlockedReason", Annotated[StrictStr, Field(max_length=256)])
"""
A reason.
"""


class SquashedBlock(BaseModel):
    """
    Layers that became one.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    squashed_layer_id: Annotated[StrictStr, Field(max_length=16, min_length=16)]
    """
    The layer that stands for them.
    """
    replaced_layer_ids: Annotated[list[ReplacedLayerId], Field(max_length=500)]
    """
    Those layers, newest first.
    """
    replaced_layers: Literal["reclaimed", "leased"]
    """
    Whether the replaced layers are gone, or kept as long as a session reads them.
    """
    blocked_reasons: Annotated[list[BlockedReason] | MISSING, Field(max_length=100)] = MISSING
    """
    Why they are still there, sorted.
    """


class SweptSession(BaseModel):
    """
    What a squash did with a live session.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    disposition: Literal["session_gone", "identity", "migrated", "leased", "faulty"]
    """
    What a squash did with a live session: nothing to do (identity), it reads the compact layers now (migrated), it keeps the old ones until it ends (leased), it ended meanwhile (session_gone), or it could not be kept and was destroyed (faulty).
    """
    reason: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    Why, where it was not migrated.
    """


LeaseError = TypeAliasType("LeaseError", Annotated[StrictStr, Field(max_length=256)])
"""
An error.
"""


class FaultySession(BaseModel):
    """
    A session that could not be kept.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    session_id: Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")]
    """
    The session.
    """
    class_detail: Annotated[StrictStr, Field(max_length=256)]
    """
    What failed.
    """
    lease_errors: Annotated[list[LeaseError] | MISSING, Field(max_length=16)] = MISSING
    """
    What failed while its layers were given up.
    """


class SquashResponse(BaseModel):
    """
    What a squash did. No blocks is a success: there was nothing to squash.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    manifest_version: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Version of the manifest after it.
    """
    squashed_blocks: Annotated[list[SquashedBlock], Field(max_length=500)]
    """
    The blocks.
    """
    swept_sessions: Annotated[list[SweptSession], Field(max_length=1000)]
    """
    The sessions that were live.
    """
    faulty_sessions: Annotated[list[FaultySession] | MISSING, Field(max_length=1000)] = MISSING
    """
    Those that could not be kept; left out where there are none.
    """


class LayerStatusRequest(BaseModel):
    """
    Nothing.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class LayerSummary(BaseModel):
    """
    One layer.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    layer_id: Annotated[StrictStr, Field(max_length=16, min_length=16)]
    """
    The layer.
    """
    entries: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    What it holds.
    """
    bytes: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ]
    """
    Bytes of its files.
    """


LeasedLayerId = TypeAliasType("LeasedLayerId", Annotated[StrictStr, Field(max_length=16, min_length=16)])
"""
A layer.
"""


class LayerStatus(BaseModel):
    """
    State of the layer stack.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    manifest_version: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Version of the manifest.
    """
    workspace_root: Annotated[StrictStr, Field(max_length=4096)]
    """
    Where sessions see the workspace.
    """
    base_root_hash: Annotated[StrictStr, Field(max_length=128)]
    """
    Hash of the base; empty where nobody told.
    """
    layers: Annotated[list[LayerSummary], Field(max_length=500)]
    """
    Layers above the base, newest first.
    """
    leased_layer_ids: Annotated[list[LeasedLayerId], Field(max_length=5000)]
    """
    Layers that are no longer in force, and kept for a session.
    """
    sessions: Annotated[list[WorkspaceSession], Field(max_length=1000)]
    """
    Live sessions, oldest first.
    """
    mount_mode: Annotated[StrictStr, Field(max_length=16)]
    """
    Where overlays are mounted: privileged, or user_namespace.
    """
    live_remount: StrictBool
    """
    Whether a squash can migrate idle sessions.
    """


class ExportRequest(BaseModel):
    """
    Which changes to send.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    names_only: StrictBool | MISSING = MISSING
    """
    Leave out the content of files: sizes and names alone (a dry run).
    """


SessionId = TypeAliasType(
    "SessionId",
    Annotated[StrictStr, Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9_-]+$")],
)
"""
A session.
"""


class ExportRecord(BaseModel):
    """
    Head of one record of an export stream: four bytes with its length, big-endian, this object as JSON, then payload bytes. Order: begin, clears, deletes, then folder, file, data and symlink records (a folder before what is in it), end. What a file's records do not cover is zeros.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    kind: Literal["begin", "clear", "delete", "folder", "file", "data", "symlink", "end"]
    """
    What a record of an export stream is.
    """
    path: Annotated[StrictStr | MISSING, Field(max_length=21848)] = MISSING
    """
    Path relative to the workspace, base64 of its bytes; not in begin, data and end.
    """
    mode: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "count"}, le=4095)] = MISSING
    """
    Permission bits, set-id and sticky bits included.
    """
    mtime_s: Annotated[
        StrictInt | MISSING,
        Field(ge=-9007199254740991, json_schema_extra={"x-unit": "s"}, le=9007199254740991),
    ] = MISSING
    """
    Time of the last change, whole seconds since 1970.
    """
    mtime_ns: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=999999999),
    ] = MISSING
    """
    Nanoseconds to add to it.
    """
    size: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Size of the whole file.
    """
    offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Where the payload of a data record belongs in the file before it; a file record's own belongs to 0.
    """
    payload: Annotated[StrictInt, Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1048576)]
    """
    Bytes that follow this head.
    """
    target: Annotated[StrictStr | MISSING, Field(max_length=21848)] = MISSING
    """
    Target of a symbolic link, base64 of its bytes.
    """
    manifest_version: Annotated[
        StrictInt | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    In begin: version of the manifest that is exported.
    """
    layer_ids: Annotated[list[LayerId] | MISSING, Field(max_length=500)] = MISSING
    """
    In begin: the layers that are folded, newest first.
    """
    session_ids: Annotated[list[SessionId] | MISSING, Field(max_length=1000)] = MISSING
    """
    In begin: live sessions, whose unpublished work is not exported.
    """
    records: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    In end: records before this one.
    """
