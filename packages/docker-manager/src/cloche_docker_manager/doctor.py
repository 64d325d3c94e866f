"""What `abx docker doctor` tells: whether sandboxes can be made here, and what to do where not."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from cloche_contract.errors import BackendCause, BackendUnavailable, ClocheError

from .engine import Engine, Facts, Place, find_engine
from .registry import Registry
from .settings import ManagerSettings, read_settings

_T = TypeVar("_T")


@dataclass(frozen=True)
class Check:
    """One thing that was tried. `detail` says what was found, or what is wrong; `fix` what to do about it."""

    id: str
    ok: bool
    detail: str
    fix: str = ""
    cause: str = ""
    required: bool = True


def diagnose(environ: Mapping[str, str]) -> list[Check]:
    """Try what sandboxes need, in order; nothing is made in the engine. Stops where the rest cannot be tried."""
    checks: list[Check] = []
    settings = _tried(checks, "settings", lambda: read_settings(environ), _told_settings)
    if settings is not None:
        _tried(checks, "state directory", lambda: Registry(settings.state_dir), lambda _: "can be written")
    place = _tried(checks, "engine", lambda: find_engine(environ), lambda found: f"{found.url} ({found.said_by})")
    engine = None if place is None else _tried(checks, "connection", lambda: Engine(place), lambda _: "answers")
    if place is None or engine is None:
        return checks
    try:
        facts = _tried(checks, "version", engine.facts, lambda found: f"{found.version}, API {found.api}")
        if facts is not None:
            checks += _about(facts, place, settings)
    finally:
        engine.close()
    return checks


def _tried(checks: list[Check], name: str, act: Callable[[], _T], tell: Callable[[_T], str]) -> _T | None:
    try:
        found = act()
    except ClocheError as error:
        checks.append(Check(name, False, error.text, error.hint, str(error.details.get("cause") or error.code)))
        return None
    checks.append(Check(name, True, tell(found)))
    return found


def _told_settings(settings: ManagerSettings) -> str:
    profile = settings.profile
    return f"profile {profile.name}: {profile.cores} cores, {profile.memory_mb} MB, {profile.processes} processes"


def _about(facts: Facts, place: Place, settings: ManagerSettings | None) -> list[Check]:
    apparmor = "apparmor" in facts.security
    named = settings is not None and settings.apparmor is not None
    return [
        _check("files", place.here, "sees the files of this machine", "docker_elsewhere"),
        _check("containers", facts.operating_system == "linux", "runs Linux containers", "docker_not_linux"),
        _check("processor", facts.architecture == platform.machine(), facts.architecture, "docker_other_processor"),
        _check("mounts", not apparmor or named, "no AppArmor profile forbids them", "docker_mounts_blocked"),
        _check("user", os.geteuid() == 0 or facts.rootless, "the engine acts for this user", "docker_other_user"),
        Check("storage", True, f"{facts.storage}, control groups version {facts.cgroup_version}"),
    ]


def _check(name: str, ok: bool, detail: str, cause: BackendCause) -> Check:
    if ok:
        return Check(name, True, detail)
    error = BackendUnavailable(cause=cause)
    return Check(name, False, error.text, error.hint, cause)
