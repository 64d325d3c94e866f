"""Generated from schemas/agent/service.json; do not edit."""

from __future__ import annotations

from typing import Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field, StrictStr
from typing_extensions import TypeAliasType

Language = TypeAliasType("Language", Annotated[StrictStr, Field(max_length=64)])


StatefulLanguage = TypeAliasType("StatefulLanguage", Annotated[StrictStr, Field(max_length=64)])


User = TypeAliasType("User", Annotated[StrictStr, Field(max_length=256)])


class AgentInfo(BaseModel):
    """
    Answer of GET /cloche/info.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    version: Annotated[StrictStr, Field(max_length=64)]
    """
    Version of the agent.
    """
    envd_version: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Version of envd whose features E2B clients may use.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024)] = MISSING
    """
    Sandbox that it serves.
    """
    default_user: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    User of requests that name none.
    """
    protocol: Annotated[StrictStr, Field(max_length=64)]
    """
    Version of the protocol that it speaks.
    """
    languages: Annotated[list[Language] | MISSING, Field(max_length=64)] = MISSING
    """
    Languages that it can run.
    """
    stateful_languages: Annotated[list[StatefulLanguage] | MISSING, Field(max_length=64)] = MISSING
    """
    Those of them whose variables stay from call to call, and that contexts can be made for.
    """
    users: Annotated[list[User] | MISSING, Field(max_length=64)] = MISSING
    """
    Users that it can run as.
    """
    deadline: Annotated[StrictStr | None | MISSING, Field(max_length=64)] = MISSING
    """
    End of the lifetime, RFC 3339, or null.
    """
