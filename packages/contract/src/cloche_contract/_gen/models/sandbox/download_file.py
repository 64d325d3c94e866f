"""Generated from schemas/tools/sandbox/download_file.json; do not edit."""

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


class DownloadFileInput(BaseModel):
    """
    Arguments of download_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    path: Annotated[StrictStr, Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$")]
    """
    Absolute path inside the sandbox, at most 4096 bytes, without a .. segment.
    """
    offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1099511627776),
    ] = MISSING
    """
    First byte to read, 0 to 1099511627776. Left out with length given: 0.
    """
    length: Annotated[
        StrictInt | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "bytes"}, le=1048576),
    ] = MISSING
    """
    Most bytes to read, 1 to 1048576. Left out with offset given: 1048576.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """


class DownloadFileOutput(BaseModel):
    """
    Result of download_file.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    content_base64: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    The bytes, standard base64.
    """
    bytes_read: Annotated[
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
    sha256: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    SHA-256 of the bytes of this call, in hex.
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
    Size of the whole file in bytes.
    """
    offset: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    First byte of this call.
    """
    eof: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether nothing follows.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that holds it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example which id to pass on.
    """
