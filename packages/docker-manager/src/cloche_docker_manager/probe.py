"""What the provider `docker` can do here: the checks of the doctor, and what really holds."""

from __future__ import annotations

from collections.abc import Mapping

from anyio.to_thread import run_sync

from cloche_contract.common import Capability, LimitResource
from cloche_contract.errors import BackendUnavailable, ClocheError
from cloche_contract.provider import LimitInfo, ProbeCheck, ProbeReport

from .doctor import Check, diagnose
from .engine import Engine, Facts, find_engine
from .manager import Manager
from .settings import read_settings

_CAPABILITIES: tuple[Capability, ...] = (
    *("lifecycle", "timeout", "renew_on_request", "exec", "files", "transfers", "tasks", "code", "code_languages"),
    *("users_root", "metadata", "listener"),
)
_BY = "the control group of the container"


async def probe(provider: str, environ: Mapping[str, str]) -> ProbeReport:
    """Try what the provider needs; nothing is made in the engine."""
    checks, facts = await run_sync(_tried, environ)
    usable = all(check.ok for check in checks if check.required)
    held = _held(facts) if usable and facts is not None else {}
    limits = [LimitInfo(resource=name, enforced=name in held, enforced_by=held.get(name)) for name in _RESOURCES]
    capabilities: list[Capability] = [*_CAPABILITIES, *_limits_of(held)] if usable else []
    return ProbeReport(provider=provider, usable=usable, checks=checks, capabilities=capabilities, limits=limits)


async def holds_limit(manager: Manager, resource: LimitResource) -> bool:
    """Whether the engine enforces a limit that is asked for."""
    return resource in _held(await run_sync((await manager.engine()).facts))


_RESOURCES: tuple[LimitResource, ...] = ("cpu", "memory", "pids", "disk", "open_files")


def _held(facts: Facts) -> dict[LimitResource, str]:
    told: dict[LimitResource, bool] = {
        "cpu": facts.limits_cpu,
        "memory": facts.limits_memory,
        "pids": facts.limits_pids,
    }
    return {"open_files": "RLIMIT_NOFILE", **{name: _BY for name, holds in told.items() if holds}}


def _limits_of(held: Mapping[LimitResource, str]) -> list[Capability]:
    names: tuple[tuple[LimitResource, Capability], ...] = (
        ("cpu", "limits_cpu"),
        ("memory", "limits_memory"),
        ("pids", "limits_pids"),
    )
    return [capability for resource, capability in names if resource in held]


def _tried(environ: Mapping[str, str]) -> tuple[list[ProbeCheck], Facts | None]:
    checks = [_shown(check) for check in diagnose(environ)]
    if not all(check.ok for check in checks):
        return checks, None
    engine = Engine(find_engine(environ))
    try:
        facts = engine.facts()
        checks.append(_image(engine, environ))
    finally:
        engine.close()
    return checks, facts


def _shown(check: Check) -> ProbeCheck:
    return ProbeCheck(
        id=check.id,
        ok=check.ok,
        required=check.required,
        cause=None if check.ok else check.cause,
        fix=None if check.ok else check.fix,
        detail=check.detail,
    )


def _image(engine: Engine, environ: Mapping[str, str]) -> ProbeCheck:
    """Whether sandboxes of the templates `base` and `code-interpreter-v1` can be made; others name their image."""
    image = read_settings(environ).image
    try:
        if image is not None:
            engine.image(image)
            return ProbeCheck(id="image", ok=True, required=False, detail=image)
    except ClocheError as error:
        return ProbeCheck(id="image", ok=False, required=False, cause=error.code, fix=error.hint, detail=image)
    unset = BackendUnavailable(cause="docker_image_unset")
    return ProbeCheck(id="image", ok=False, required=False, cause="docker_image_unset", fix=unset.hint)
