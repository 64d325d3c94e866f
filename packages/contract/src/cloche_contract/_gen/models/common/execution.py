"""Generated from schemas/common/execution.json; do not edit."""

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


class ResultItem(BaseModel):
    """
    One representation of a value that the code displayed. Images arrive as image content next to this object.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    type: Annotated[
        Literal[
            "text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript", "data", "chart"
        ],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    Form of a rich result.
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
    Size of the representation in bytes.
    """
    text: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    The representation itself, where it is text; long text is cut.
    """
    attached: Annotated[StrictBool | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Whether the image is attached to this result as image content.
    """


class CodeError(BaseModel):
    """
    The exception that ended the code.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Class of the exception.
    """
    value: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Message of the exception.
    """
    traceback: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Traceback of the code inside the sandbox.
    """
