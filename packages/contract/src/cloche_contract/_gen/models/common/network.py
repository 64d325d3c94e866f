"""Generated from schemas/common/network.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictStr


class Denial(BaseModel):
    """
    A destination that the network allowlist does not hold.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    target: Annotated[StrictStr, Field(max_length=300)]
    """
    Host and port that were asked for.
    """
    rule: Annotated[StrictStr | MISSING, Field(max_length=300)] = MISSING
    """
    The rule that would allow it; left out where the name is listed and its address is a private one.
    """
