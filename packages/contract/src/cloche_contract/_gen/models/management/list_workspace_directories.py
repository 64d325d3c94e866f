"""Generated from schemas/tools/management/list_workspace_directories.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictBool, StrictStr

from ..common.docker import WorkspaceDirectory


class ListWorkspaceDirectoriesInput(BaseModel):
    """
    Arguments of list_workspace_directories.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[
        StrictStr | MISSING,
        Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$"),
    ] = MISSING
    """
    Absolute path of a directory to browse, below one of the roots. Left out: the roots.
    """


class ListWorkspaceDirectoriesOutput(BaseModel):
    """
    Result of list_workspace_directories.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Directory that is listed, or null for the roots.
    """
    parent: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Directory above it, or null at a root.
    """
    truncated: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "operator"})]
    """
    Whether there are more than 500.
    """
    directories: Annotated[
        list[WorkspaceDirectory],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=500),
    ]
    """
    Directories, by name whatever its case.
    """
