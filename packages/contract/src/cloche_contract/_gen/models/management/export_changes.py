"""Generated from schemas/tools/management/export_changes.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


class ExportChangesInput(BaseModel):
    """
    Arguments of export_changes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(max_length=128, min_length=1, pattern="^[A-Za-z0-9._-]+$")]
    """
    Sandbox id, 1 to 128 letters, digits, dots, hyphens and underscores.
    """
    dest: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute host destination: a directory for dir, an archive file for tar and tar-zst.
    """
    format: Literal["dir", "tar", "tar-zst"] = "dir"
    """
    Output format: dir, tar, or tar-zst, default dir.
    """


class ExportChangesOutput(BaseModel):
    """
    Result of export_changes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    manifest_version: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ]
    """
    Version of the manifest that was exported.
    """
    format: Annotated[
        Literal["dir", "tar", "tar-zst"],
        Field(json_schema_extra={"x-disclosure": "operator"}),
    ]
    """
    Into a directory, or as an archive, plain or compressed.
    """
    layers_exported: Annotated[
        list[StrictStr],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ]
    """
    Layers that were folded, newest first.
    """
    files_written: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ]
    """
    Files that were written; with dir those that differed.
    """
    symlinks_written: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ]
    """
    Symbolic links that were written.
    """
    whiteouts_emitted: Annotated[
        StrictInt | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ] = MISSING
    """
    Deletions and hidden folders in the archive; not with dir.
    """
    deletes_applied: Annotated[
        StrictInt | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ] = MISSING
    """
    Deletions that were applied; with dir alone.
    """
    opaque_clears_applied: Annotated[
        StrictInt | MISSING,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ] = MISSING
    """
    Folders that were emptied first; with dir alone.
    """
    bytes_written: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "operator"},
            le=9007199254740991,
        ),
    ]
    """
    Bytes of files with dir, else of the archive.
    """
    live_workspace_sessions: Annotated[
        list[StrictStr] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ] = MISSING
    """
    Sessions whose unpublished work is not in it; left out where there are none.
    """
    left_out: Annotated[
        list[StrictStr] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ] = MISSING
    """
    Files that a tool of this machine would execute or obey, which were not written; the first 1000.
    """
