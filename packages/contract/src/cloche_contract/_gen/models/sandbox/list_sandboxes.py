"""Generated from schemas/tools/sandbox/list_sandboxes.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from ..lifecycle.sandbox import SandboxMetadata


class ListSandboxesInput(BaseModel):
    """
    Arguments of list_sandboxes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    status: Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"] | MISSING = MISSING
    """
    Only sandboxes in this state.
    """
    limit: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "count"}, le=100)] = 100
    """
    Sandboxes of one page, 1 to 100, default 100.
    """
    offset: Annotated[StrictInt, Field(ge=0, json_schema_extra={"x-unit": "count"}, le=1000000)] = 0
    """
    Sandboxes to skip, 0 to 1000000, default 0.
    """
    provider: Annotated[
        StrictStr | MISSING,
        Field(max_length=40, min_length=2, pattern="^[a-z][a-z0-9]*(-[a-z0-9]+)*$"),
    ] = MISSING
    """
    Only sandboxes of this provider, 2 to 40 characters.
    """
    region: Annotated[
        StrictStr | MISSING,
        Field(max_length=64, min_length=1, pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
    ] = MISSING
    """
    Only sandboxes of this region, 1 to 64 characters.
    """


class ListSandboxesOutput(BaseModel):
    """
    Result of list_sandboxes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandboxes: Annotated[
        list[SandboxMetadata],
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=100),
    ]
    """
    Sandboxes of this page.
    """
    limit: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    The limit that was asked for.
    """
    offset: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    The offset that was asked for.
    """
