"""Generated from schemas/tools/sandbox/write_file.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr


class WriteFileInput(BaseModel):
    """
    Arguments of write_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute path inside the sandbox, at most 4096 bytes, without a .. segment.
    """
    content: Annotated[StrictStr, Field(max_length=5592408)]
    """
    Text, or base64 of the bytes, at most 4 MiB when decoded.
    """
    encoding: Literal["utf-8", "base64"] = "utf-8"
    """
    What content holds: utf-8 for text, or base64, default utf-8.
    """
    mode: Annotated[StrictStr | MISSING, Field(max_length=4, min_length=3, pattern="^[0-7]{3,4}$")] = MISSING
    """
    Octal mode of 3 or 4 digits, for example 755.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class WriteFileOutput(BaseModel):
    """
    Result of write_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    success: Annotated[Literal[True], Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Always true: a failure is an error.
    """
    bytes_written: Annotated[
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
