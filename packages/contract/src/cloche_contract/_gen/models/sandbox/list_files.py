"""Generated from schemas/tools/sandbox/list_files.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

from ..common.files import FileEntry


class ListFilesInput(BaseModel):
    """
    Arguments of list_files.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")] = "/"
    """
    Absolute path of the directory, at most 4096 bytes, default /.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class ListFilesOutput(BaseModel):
    """
    Result of list_files.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    files: Annotated[
        list[FileEntry],
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1000),
    ]
    """
    Entries, sorted by name.
    """
    total: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Entries of the directory in all.
    """
    truncated: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether entries were left out.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that holds it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example which sandbox_id to pass on.
    """
