"""Generated from schemas/tools/sandbox/upload_file.json; do not edit."""

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


class UploadFileInput(BaseModel):
    """
    Arguments of upload_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute path inside the sandbox, at most 4096 bytes, without a .. segment.
    """
    content_base64: Annotated[StrictStr, Field(max_length=1398104)]
    """
    Standard base64 with padding and without line breaks, at most 1398104 characters; decoded at most 1048576 bytes. May be empty.
    """
    mode: Annotated[StrictStr | MISSING, Field(max_length=4, min_length=3, pattern="^[0-7]{3,4}$")] = MISSING
    """
    Octal mode of 3 or 4 digits, for example 755. Left out: an existing file keeps its own.
    """
    transfer_id: Annotated[
        StrictStr | MISSING,
        Field(max_length=32, min_length=32, pattern="^[0-9a-f]{32}$"),
    ] = MISSING
    """
    Transfer to go on with: 32 lowercase hex digits, as the part before returned it. Left out: a new one.
    """
    offset: Annotated[StrictInt, Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1099511627776)] = 0
    """
    Where this part begins: the size that the part before returned, 0 to 1099511627776, default 0.
    """
    last: StrictBool = True
    """
    Whether the file is complete with this part, default true.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class UploadFileOutput(BaseModel):
    """
    Result of upload_file.
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
    Bytes of this call.
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
    Bytes of the file so far.
    """
    sha256: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    SHA-256 of the file so far, in hex, computed inside the sandbox.
    """
    complete: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether the file is in place; false while parts are missing.
    """
    transfer_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Pass it with the next part; left out when the file is in place.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that holds it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example which id to pass on.
    """
