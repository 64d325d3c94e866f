"""Generated from schemas/tools/management/squash_layerstacks.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from ..common.docker import SessionDisposition, SessionFault, SquashedLayers


class SquashLayerstacksInput(BaseModel):
    """
    Arguments of squash_layerstacks.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(max_length=128, min_length=1, pattern="^[A-Za-z0-9._-]+$")]
    """
    Sandbox id, 1 to 128 letters, digits, dots, hyphens and underscores.
    """


class SquashLayerstacksOutput(BaseModel):
    """
    Result of squash_layerstacks.
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
    Version of the manifest after it.
    """
    squashed_blocks: Annotated[
        list[SquashedLayers],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=500),
    ]
    """
    What became one layer each.
    """
    swept_sessions: Annotated[
        list[SessionDisposition],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ]
    """
    The sessions that were live.
    """
    faulty_sessions: Annotated[
        list[SessionFault] | MISSING,
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=1000),
    ] = MISSING
    """
    Sessions that could not be kept; left out where there are none.
    """
