"""Generated from schemas/tools/sandbox/read_file.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


class ReadFileInput(BaseModel):
    """
    Arguments of read_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute path inside the sandbox, at most 4096 bytes, without a .. segment.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """
    encoding: Literal["utf-8", "utf-16", "latin-1", "ascii", "base64"] = "utf-8"
    """
    How the file is turned into text: utf-8, utf-16, latin-1, ascii or base64, default utf-8.
    """


class ReadFileOutput(BaseModel):
    """
    Result of read_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    content: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Content of the file in the encoding that was asked for.
    """
    encoding: Annotated[
        Literal["utf-8", "utf-16", "latin-1", "ascii", "base64"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    How the file is turned into text: utf-8, utf-16, latin-1, ascii, or base64 for bytes that are not text.
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
    Size of the file in bytes.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that holds it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example which sandbox_id to pass on.
    """
