"""What the operator has set, read from the environment alone: nothing in a workspace may change it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloche_contract.errors import ConfigurationInvalid

MIB = 1024 * 1024


@dataclass(frozen=True)
class Profile:
    """What one sandbox may use at most.

    Source: systems 5.5, resource profiles.
    """

    name: str
    cores: int
    memory_mb: int
    processes: int


PROFILES: Mapping[str, Profile] = {
    "standard": Profile("standard", cores=1, memory_mb=512, processes=256),
    "build-heavy": Profile("build-heavy", cores=4, memory_mb=4096, processes=1024),
}


@dataclass(frozen=True)
class ManagerSettings:
    """Where the manager keeps things, and what its sandboxes get."""

    state_dir: Path
    cache_dir: Path
    workspace_roots: tuple[Path, ...]
    profile: Profile
    apparmor: str | None
    image: str | None = None
    workspace: Path | None = None

    @property
    def empty_workspace(self) -> Path:
        """What sandboxes without a workspace share: an empty folder of ours, which nobody writes to."""
        return self.state_dir / "empty"


def read_settings(environ: Mapping[str, str]) -> ManagerSettings:
    """Read the settings of the Docker manager.

    Raises:
        ConfigurationInvalid: names the setting that is wrong.
    """
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    name = _text(environ, "ABX_DOCKER_PROFILE") or "standard"
    if name not in PROFILES:
        raise ConfigurationInvalid(setting="ABX_DOCKER_PROFILE")
    return ManagerSettings(
        state_dir=_folder(environ, "ABX_DOCKER_STATE_DIR", "XDG_STATE_HOME", home / ".local/state"),
        cache_dir=_folder(environ, "ABX_DOCKER_CACHE_DIR", "XDG_CACHE_HOME", home / ".cache"),
        workspace_roots=_roots(environ, home),
        profile=PROFILES[name],
        apparmor=_text(environ, "ABX_DOCKER_APPARMOR"),
        image=_text(environ, "ABX_DOCKER_IMAGE"),
        workspace=_workspace(environ),
    )


def _text(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name, "").strip() or None


def _folder(environ: Mapping[str, str], name: str, xdg: str, otherwise: Path) -> Path:
    said = _text(environ, name)
    if said is None:
        return Path(_text(environ, xdg) or otherwise) / "cloche/docker/v1"
    if not said.startswith("/"):
        raise ConfigurationInvalid(setting=name)
    return Path(said)


def _workspace(environ: Mapping[str, str]) -> Path | None:
    said = _text(environ, "ABX_DOCKER_WORKSPACE")
    if said is not None and not said.startswith("/"):
        raise ConfigurationInvalid(setting="ABX_DOCKER_WORKSPACE")
    return None if said is None else Path(said)


def _roots(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    said = _text(environ, "ABX_DOCKER_WORKSPACE_ROOTS")
    if said is None:
        return (home,)
    roots = [part for part in said.split(":") if part]
    if not all(part.startswith("/") for part in roots):
        raise ConfigurationInvalid(setting="ABX_DOCKER_WORKSPACE_ROOTS")
    return tuple(Path(part) for part in roots)
