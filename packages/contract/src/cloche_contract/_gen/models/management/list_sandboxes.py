"""Generated from schemas/tools/management/list_sandboxes.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..common.docker import ManagedSandbox


class ListSandboxesInput(BaseModel):
    """
    Arguments of list_sandboxes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class ListSandboxesOutput(BaseModel):
    """
    Result of list_sandboxes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandboxes: Annotated[
        list[ManagedSandbox],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=100000),
    ]
    """
    Records by id; empty when there are none.
    """
