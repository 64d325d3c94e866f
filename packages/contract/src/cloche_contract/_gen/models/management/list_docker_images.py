"""Generated from schemas/tools/management/list_docker_images.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictStr


class ListDockerImagesInput(BaseModel):
    """
    Arguments of list_docker_images.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class ListDockerImagesOutput(BaseModel):
    """
    Result of list_docker_images.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    images: Annotated[
        list[StrictStr],
        Field(json_schema_extra={"x-disclosure": "operator"}, max_length=100000),
    ]
    """
    Every local reference, sorted.
    """
