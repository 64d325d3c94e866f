"""Generated from schemas/agent/filesystem.json; do not edit."""

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

from .process import KeepaliveEvent

MetadataAdditionalProperty = TypeAliasType("MetadataAdditionalProperty", Annotated[StrictStr, Field(max_length=131072)])


class Entry(BaseModel):
    """
    One file or directory.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(max_length=255)]
    """
    Name inside its directory.
    """
    type: Literal["FILE_TYPE_UNSPECIFIED", "FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY", "FILE_TYPE_SYMLINK"] | MISSING = (
        MISSING
    )
    """
    Kind of the entry.
    """
    path: Annotated[StrictStr, Field(max_length=4096)]
    """
    Absolute path.
    """
    size: Annotated[StrictStr | MISSING, Field(max_length=20, pattern="^[0-9]+$")] = MISSING
    """
    Size in bytes, as a string of digits.
    """
    mode: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    Permission bits.
    """
    permissions: Annotated[StrictStr | MISSING, Field(max_length=16)] = MISSING
    """
    Permission bits in letters.
    """
    owner: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    User that owns it.
    """
    group: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    Group that owns it.
    """
    modifiedTime: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Last change, RFC 3339.
    """
    symlinkTarget: Annotated[StrictStr | MISSING, Field(max_length=4096)] = MISSING
    """
    What a symlink points to.
    """
    isSymlink: StrictBool | MISSING = MISSING
    """
    Whether it is a symlink.
    """
    metadata: Annotated[dict[str, MetadataAdditionalProperty] | MISSING, Field(max_length=1000)] = MISSING
    """
    Metadata that was stored with it.
    """


class StatRequest(BaseModel):
    """
    Which path.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """


class EntryResponse(BaseModel):
    """
    What is there now.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    entry: Entry


class ListDirRequest(BaseModel):
    """
    Which directory, and how deep.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """
    depth: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "count"}, le=32)] = MISSING
    """
    Levels below it; 0 and 1 are the directory itself.
    """
    limit: Annotated[
        StrictInt | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "count"}, le=100000),
    ] = MISSING
    """
    Most entries to return.
    """


class ListDirResponse(BaseModel):
    """
    What is in it.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    entries: Annotated[list[Entry] | MISSING, Field(max_length=100000)] = MISSING
    """
    Entries, sorted by path; left out when there are none.
    """
    total: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    Entries that there are in all.
    """


class MakeDirRequest(BaseModel):
    """
    Which path.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """


class MoveRequest(BaseModel):
    """
    From where to where.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    source: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """
    destination: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """


class RemoveRequest(BaseModel):
    """
    Which path.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """


class RemoveResponse(BaseModel):
    """
    What was done.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    removed: StrictBool | MISSING = MISSING
    """
    Whether there was something to remove; left out by agents that cannot tell.
    """


class WatchRequest(BaseModel):
    """
    Which directory to watch.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Path; relative to the home of the user.
    """
    recursive: StrictBool | MISSING = MISSING
    """
    Whether directories below it are watched too, new ones included.
    """
    includeEntry: StrictBool | MISSING = MISSING
    """
    Whether each event describes the entry, while it is there.
    """
    allowNetworkMounts: StrictBool | MISSING = MISSING
    """
    Whether it may lie on a network file system, whose changes may not be told.
    """


class ChangeEvent(BaseModel):
    """
    One change.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(max_length=4096)]
    """
    Path relative to the watched directory, which is . itself.
    """
    type: Literal[
        "EVENT_TYPE_UNSPECIFIED",
        "EVENT_TYPE_CREATE",
        "EVENT_TYPE_WRITE",
        "EVENT_TYPE_REMOVE",
        "EVENT_TYPE_RENAME",
        "EVENT_TYPE_CHMOD",
    ]
    """
    What happened. A renamed entry is told as renamed by its old name and as created by its new one.
    """
    entry: Entry | MISSING = MISSING


class WatchStarted(BaseModel):
    """
    It is watched. Always the first message.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class WatchOverflow(BaseModel):
    """
    Changes were missed: look at the directory.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class WatcherCreated(BaseModel):
    """
    The watcher.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    watcherId: Annotated[StrictStr, Field(max_length=64)]
    """
    Name to ask by.
    """


class WatcherRequest(BaseModel):
    """
    Which watcher.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    watcherId: Annotated[StrictStr, Field(max_length=64)]
    """
    Name that it was created with.
    """


class WatcherEvents(BaseModel):
    """
    What has changed since the last call.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    events: Annotated[list[ChangeEvent] | MISSING, Field(max_length=100000)] = MISSING
    """
    The changes, in order.
    """
    overflow: StrictBool | MISSING = MISSING
    """
    Whether changes were missed: then look at the directory.
    """


class WatchMessage(BaseModel):
    """
    Exactly one of these.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    start: WatchStarted | MISSING = MISSING
    filesystem: ChangeEvent | MISSING = MISSING
    overflow: WatchOverflow | MISSING = MISSING
    keepalive: KeepaliveEvent | MISSING = MISSING
