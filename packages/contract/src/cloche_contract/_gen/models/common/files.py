"""Generated from schemas/common/files.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr


class FileEntry(BaseModel):
    """
    One entry of a directory.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Name inside its directory.
    """
    path: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Absolute path inside the sandbox.
    """
    type: Annotated[
        Literal["file", "directory", "symlink", "other"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    Kind of the entry; a symlink is not followed.
    """
    size: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Size in bytes.
    """


class OutputFile(BaseModel):
    """
    A file that the code made or changed in its working directory.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Name of the file.
    """
    path: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Absolute path inside the sandbox.
    """
    size: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Size in bytes.
    """
