"""The shape of one setting of the generated table."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

SettingKind: TypeAlias = Literal["string", "integer", "path"]


@dataclass(frozen=True)
class Setting:
    """One setting: where it comes from and what it may be.

    `toml` is the dotted key in config.toml, or None when it is never read from there, which is so for every secret.
    `workspace` is False where ./.env is not asked: what lies in a workspace must not widen what a sandbox may do.
    """

    key: str
    env: str
    kind: SettingKind
    default: str | int | None
    secret: bool
    toml: str | None
    minimum: int | None
    maximum: int | None
    choices: tuple[str, ...]
    unit: str | None
    workspace: bool
    description: str
