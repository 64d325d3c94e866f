"""Generated from schemas/provider/operations.json; do not edit."""

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
    StringConstraints,
)
from typing_extensions import TypeAliasType

from ..lifecycle.sandbox import SandboxRecord

EnvsAdditionalProperty = TypeAliasType(
    "EnvsAdditionalProperty",
    Annotated[StrictStr, Field(max_length=32768, pattern="^[^\\x00]*$")],
)


EgressItem = TypeAliasType("EgressItem", Annotated[StrictStr, Field(max_length=300, min_length=1)])


MetadataAdditionalProperty = TypeAliasType("MetadataAdditionalProperty", Annotated[StrictStr, Field(max_length=4096)])


class CreateRequest(BaseModel):
    """
    What to make.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    template: Annotated[
        StrictStr,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=128,
            min_length=1,
            pattern="^[ \\t\\r\\n]*[^ \\t\\r\\n]",
        ),
    ]
    """
    Template name, 1 to 128 characters. Left out: the template that the server is configured with.
    """
    timeout: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "s", "x-disclosure": "model"}, le=86400),
    ]
    """
    Lifetime of the sandbox from now, in seconds, 1 to 86400.
    """
    envs: Annotated[
        dict[
            Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256, strict=True)],
            EnvsAdditionalProperty,
        ]
        | MISSING,
        Field(json_schema_extra={"x-disclosure": "secret"}, max_length=100),
    ] = MISSING
    """
    Environment variables of the sandbox, names to string values: at most 100, a value at most 32768 characters, all of them at most 1 MiB.
    """
    region: Annotated[
        StrictStr | MISSING,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=64,
            min_length=1,
            pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        ),
    ] = MISSING
    """
    Region of the provider, 1 to 64 characters.
    """
    cpu: Annotated[
        StrictInt | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "cores", "x-disclosure": "model"}, le=256),
    ] = MISSING
    """
    CPU cores, 1 to 256. Left out: the default of the provider.
    """
    memory: Annotated[
        StrictInt | MISSING,
        Field(
            ge=1,
            json_schema_extra={"x-unit": "MB", "x-disclosure": "model"},
            le=1048576,
        ),
    ] = MISSING
    """
    Memory in MB, 1 to 1048576. Left out: the default of the provider.
    """
    egress: Annotated[
        list[EgressItem] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=256),
    ] = MISSING
    """
    Network allowlist; an empty one lists nothing. Left out, the provider's own setting decides.
    """
    listen: Annotated[StrictBool | MISSING, Field(json_schema_extra={"x-disclosure": "operator"})] = MISSING
    """
    Whether the agent also answers on a TCP port of this machine's loopback address, for other clients of its protocol. Every request needs the token.
    """
    metadata: Annotated[
        dict[Annotated[str, StringConstraints(max_length=256, strict=True)], MetadataAdditionalProperty] | MISSING,
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=100),
    ] = MISSING
    """
    Labels that the provider keeps and never shows to a model.
    """
    idempotency_key: Annotated[
        StrictStr | MISSING,
        Field(
            json_schema_extra={"x-disclosure": "internal"},
            max_length=255,
            min_length=1,
            pattern="^[a-z0-9-]+$",
        ),
    ] = MISSING
    """
    The same key with the same arguments returns the same sandbox.
    """


class GetRequest(BaseModel):
    """
    Which sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """


class ListRequest(BaseModel):
    """
    Which sandboxes, and which page of them.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    status: Annotated[
        Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"] | MISSING,
        Field(json_schema_extra={"x-disclosure": "model"}),
    ] = MISSING
    """
    State of the sandbox.
    """
    limit: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count", "x-disclosure": "model"}, le=100),
    ] = 100
    """
    Entries of one page, 1 to 100.
    """
    offset: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=1000000,
        ),
    ] = 0
    """
    Entries to skip, from 0.
    """
    region: Annotated[
        StrictStr | MISSING,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=64,
            min_length=1,
            pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        ),
    ] = MISSING
    """
    Region of the provider, 1 to 64 characters.
    """


class SetTimeoutRequest(BaseModel):
    """
    Which sandbox, and how long it lives from now.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    timeout: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "s", "x-disclosure": "model"}, le=86400),
    ]
    """
    Lifetime of the sandbox from now, in seconds, 1 to 86400.
    """


class KillRequest(BaseModel):
    """
    Which sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """


class ConnectRequest(BaseModel):
    """
    Which sandbox, and whether a paused one may be resumed for it.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    resume: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})] = True
    """
    Whether a paused sandbox is resumed; else it stays paused, and the call fails with sandbox_paused.
    """


class PauseRequest(BaseModel):
    """
    Which sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """


class ResumeRequest(BaseModel):
    """
    Which sandbox, and how long it lives from then on.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    timeout: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "s", "x-disclosure": "model"}, le=86400),
    ] = 300
    """
    Lifetime from now, 1 to 86400 seconds.
    """


class InspectRequest(BaseModel):
    """
    Which sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """


class DiffRequest(BaseModel):
    """
    Which sandbox, and which page of its changes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    limit: Annotated[
        StrictInt,
        Field(
            ge=1,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=10000,
        ),
    ] = 1000
    """
    Changes of one page, 1 to 10000.
    """
    after: Annotated[
        StrictStr | MISSING,
        Field(
            json_schema_extra={"x-disclosure": "operator"},
            max_length=100000,
            min_length=1,
        ),
    ] = MISSING
    """
    Where the page before ended: its `next`.
    """


class EntryState(BaseModel):
    """
    What an entry was before it was modified.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    kind: Annotated[
        Literal["file", "directory", "symlink", "fifo", "socket", "device"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What an entry is.
    """
    mode: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Permission bits, octal.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"}),
    ]
    """
    Size of a file in bytes, else 0.
    """
    uid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "native", "x-disclosure": "operator"}),
    ]
    """
    Owner, as the sandbox numbers users.
    """
    gid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "native", "x-disclosure": "operator"}),
    ]
    """
    Group, as the sandbox numbers groups.
    """


class DiffEntry(BaseModel):
    """
    One path that is not as the template has it.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Absolute path inside the sandbox; bytes that are not UTF-8 are replaced.
    """
    path_base64: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    The bytes of a path that is not UTF-8, Base64, or null.
    """
    change: Annotated[
        Literal["added", "modified", "deleted"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What happened to an entry.
    """
    changed: Annotated[
        list[Literal["content", "kind", "mode", "owner", "target"]],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=5),
    ] = []
    """
    What of a modified entry differs.
    """
    kind: Annotated[
        Literal["file", "directory", "symlink", "fifo", "socket", "device"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What an entry is.
    """
    mode: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Permission bits, octal.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"}),
    ]
    """
    Size of a file in bytes, else 0.
    """
    uid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "native", "x-disclosure": "operator"}),
    ]
    """
    Owner, as the sandbox numbers users.
    """
    gid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "native", "x-disclosure": "operator"}),
    ]
    """
    Group, as the sandbox numbers groups.
    """
    links: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ] = 1
    """
    How many names the file has.
    """
    target: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    Where a symbolic link points, or null.
    """
    target_base64: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    The bytes of a target that is not UTF-8, Base64, or null.
    """
    before: Annotated[EntryState | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    What a modified entry was, or null.
    """


class DiffResult(BaseModel):
    """
    What a sandbox changed: one page of entries, and the sums of all of them.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox.
    """
    entries: Annotated[
        list[DiffEntry],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=10000),
    ]
    """
    Changes of this page, in the order of their paths.
    """
    next: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    What to give as `after` for the next page, or null at the end.
    """
    added: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ]
    """
    Added entries, on all pages.
    """
    modified: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ]
    """
    Modified entries, on all pages.
    """
    deleted: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ]
    """
    Deleted entries, on all pages.
    """
    added_bytes: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"}),
    ]
    """
    Bytes of added and rewritten files, each counted once.
    """
    incomplete: Annotated[
        list[Literal["too_many", "too_deep", "too_slow", "unreadable"]],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=4),
    ]
    """
    Why something may be missing; empty when nothing is.
    """
    not_included: Annotated[
        list[StrictStr],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ]
    """
    Paths that are shown read-only or made by the kernel; nothing below them is compared.
    """


class LogsRequest(BaseModel):
    """
    Which sandbox, and which part of its log.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    after: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ] = 0
    """
    Only events with a higher number.
    """
    limit: Annotated[
        StrictInt,
        Field(
            ge=1,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=10000,
        ),
    ] = 1000
    """
    The newest so many events.
    """
    wait: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "s", "x-disclosure": "operator"}, le=60),
    ] = 0
    """
    Seconds to wait for an event where there is none yet.
    """


class LogEvent(BaseModel):
    """
    One event in a sandbox. It never holds a payload, a path or a value.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    number: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "count", "x-disclosure": "operator"}),
    ]
    """
    Number of the event in its sandbox; a gap is what was dropped.
    """
    at: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    When, ISO 8601 with a time zone.
    """
    event: Annotated[
        Literal["started", "call", "command_ended", "code_ended", "denied", "ended"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What happened in a sandbox.
    """
    facts: Annotated[dict[str, StrictStr], Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    What is known about it.
    """


class LogsResult(BaseModel):
    """
    What happened in a sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox.
    """
    alive: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether it lives.
    """
    events: Annotated[
        list[LogEvent],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=10000),
    ]
    """
    Events, oldest first.
    """


class PruneRequest(BaseModel):
    """
    What to remove.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    dry_run: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})] = False
    """
    Only tell what would be removed.
    """
    logs_older_than: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "s", "x-disclosure": "operator"},
            le=31536000,
        ),
    ] = 604800
    """
    Remove logs of sandboxes that ended so many seconds ago.
    """


class Leftover(BaseModel):
    """
    One thing that was left.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    kind: Annotated[
        Literal["sandbox", "unfinished", "template", "socket", "control_group", "log", "old_state"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    What kind of thing a dead sandbox, or an older version, left on the host.
    """
    path: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Where it is, or was, on the host.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"}),
    ]
    """
    Bytes that it takes on the disk.
    """


class PruneResult(BaseModel):
    """
    What was removed, or would be.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    removed: Annotated[
        list[Leftover],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=100000),
    ]
    """
    Each thing, in the order of kind and path.
    """
    failed: Annotated[
        list[Leftover],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=100000),
    ]
    """
    What could not be removed.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"}),
    ]
    """
    Bytes of all that was removed.
    """


AllowItem = TypeAliasType("AllowItem", Annotated[StrictStr, Field(max_length=300, min_length=1)])


RemoveItem = TypeAliasType("RemoveItem", Annotated[StrictStr, Field(max_length=300, min_length=1)])


class UpdateNetworkRequest(BaseModel):
    """
    Which sandbox, and what changes in its network allowlist. Without a change the list is only told.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[
        StrictStr,
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1024, min_length=1),
    ]
    """
    Plain id, without the provider.
    """
    allow: Annotated[
        list[AllowItem] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=256),
    ] = MISSING
    """
    Rules to add.
    """
    remove: Annotated[
        list[RemoveItem] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=256),
    ] = MISSING
    """
    Rules to remove; one that is not there is no error.
    """


Rule = TypeAliasType("Rule", Annotated[StrictStr, Field(max_length=300, min_length=1)])


class NetworkRules(BaseModel):
    """
    The network allowlist in force.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    rules: Annotated[
        list[Rule],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=256),
    ]
    """
    Rules in force.
    """


class MountInfo(BaseModel):
    """
    One mount of a sandbox.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    target: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Path inside the sandbox.
    """
    kind: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Kind of mount: bind, overlay, tmpfs, proc or another file system.
    """
    source: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Where it comes from on the host, or null.
    """
    read_only: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether it is read-only.
    """


class LimitInfo(BaseModel):
    """
    One resource, whether it can be limited, and by what.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    resource: Annotated[
        Literal["cpu", "memory", "process_memory", "pids", "disk", "inodes", "open_files"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    A resource that can be limited.
    """
    enforced: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether a limit on it really holds.
    """
    enforced_by: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    What makes it hold, for example pids cgroup, or null.
    """
    value: Annotated[
        StrictInt | None,
        Field(json_schema_extra={"x-unit": "native", "x-disclosure": "operator"}),
    ] = None
    """
    The limit in force: MB, cores or count as the resource says, or null.
    """


class InspectResult(BaseModel):
    """
    What a sandbox is made of, for its operator.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox.
    """
    mounts: Annotated[
        list[MountInfo],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ]
    """
    Mounts, in the order in which they were made.
    """
    limits: Annotated[
        list[LimitInfo],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=32),
    ]
    """
    Resources, and by what they are limited.
    """
    users: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    How users are mapped: range or single.
    """
    namespaces: Annotated[
        list[StrictStr],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=32),
    ]
    """
    Kinds of namespaces of its own.
    """
    network: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    What network it has.
    """
    facts: Annotated[dict[str, StrictStr], Field(json_schema_extra={"x-disclosure": "operator"})] = {}
    """
    Further facts for the operator.
    """


class ProbeCheck(BaseModel):
    """
    One thing that was tried.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Name of the check.
    """
    ok: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether it worked.
    """
    required: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})] = True
    """
    Whether the provider is unusable without it.
    """
    cause: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    Cause id from the error catalogue when it did not work.
    """
    fix: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    What to do about it.
    """
    detail: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})] = None
    """
    What was found, for the operator.
    """


Limit = TypeAliasType("Limit", Annotated[StrictStr, Field(max_length=500)])


class EmulatedAbility(BaseModel):
    """
    One ability that is emulated, and what it cannot promise.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    capability: Annotated[
        Literal[
            "lifecycle",
            "timeout",
            "renew_on_request",
            "exec",
            "files",
            "transfers",
            "tasks",
            "code",
            "code_languages",
            "users_root",
            "idempotent_create",
            "metadata",
            "region",
            "inspect",
            "limits_cpu",
            "limits_memory",
            "limits_pids",
            "limits_disk",
            "egress",
            "listener",
            "diff",
            "logs",
            "prune",
            "pause",
        ],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    One ability of a provider, true only where it really works.
    """
    limits: Annotated[
        list[Limit],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=16),
    ]
    """
    What holds less than where the agent has it, one sentence each.
    """


class ProbeReport(BaseModel):
    """
    What a provider can do here and now.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    provider: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Id of the provider.
    """
    usable: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether it can make a sandbox.
    """
    checks: Annotated[
        list[ProbeCheck],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=200),
    ]
    """
    Everything that was tried.
    """
    capabilities: Annotated[
        list[
            Literal[
                "lifecycle",
                "timeout",
                "renew_on_request",
                "exec",
                "files",
                "transfers",
                "tasks",
                "code",
                "code_languages",
                "users_root",
                "idempotent_create",
                "metadata",
                "region",
                "inspect",
                "limits_cpu",
                "limits_memory",
                "limits_pids",
                "limits_disk",
                "egress",
                "listener",
                "diff",
                "logs",
                "prune",
                "pause",
            ]
        ],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=64),
    ]
    """
    Abilities that really work.
    """
    limits: Annotated[
        list[LimitInfo],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=32),
    ]
    """
    Resources, and by what they can be limited.
    """
    emulated: Annotated[
        list[EmulatedAbility],
        Field(
            json_schema_extra={"x-disclosure": "operator"},
            max_length=64,
            validate_default=True,
        ),
    ] = []
    """
    Abilities that the SDK does by other means where the agent of a sandbox does not have them.
    """


class ListResult(BaseModel):
    """
    One page of sandboxes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandboxes: Annotated[
        list[SandboxRecord],
        Field(json_schema_extra={"x-disclosure": "internal"}, max_length=100),
    ]
    """
    Records of this page.
    """
