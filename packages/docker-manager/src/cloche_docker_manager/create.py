"""Making sandboxes: the record first, then everything in the engine, ready at the end or nothing of it left.

Source: checklist 238 to 252, 338; faults L2, L13, L19.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync

from cloche_contract.errors import (
    BackendUnavailable,
    ClocheError,
    SandboxStartFailed,
    WorkspaceNotAllowed,
    WorkspaceNotFound,
)

from .agent_link import AgentLink
from .base import BuiltBase, ensure_base
from .container import BASE, Delivered, boot_archive, host_of, published_ports, settings_of
from .delivery import agent_folder, python_folder
from .engine import Engine
from .owner import this_process
from .registry import Base, Record, Registry
from .settings import ManagerSettings

logger = logging.getLogger(__name__)

READY_S = 60.0
LEAST_S = 10
_POLL_S = (0.02, 0.25)
_UNDO_S = 60.0
_MOUNTS_REFUSED = "cloche: mounts refused"
# How an engine names the processors of images and of itself.
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}

Report = Callable[[float, str], Awaitable[None]]


@dataclass(frozen=True)
class Wanted:
    """What a sandbox is to be beside its image and workspace. Without `lifetime_s` it lives until it is destroyed."""

    template: str | None = None
    lifetime_s: int | None = None
    cores: int | None = None
    memory_mb: int | None = None
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])


class Creation:
    """One call of create_sandbox."""

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        settings: ManagerSettings,
        wanted: Wanted | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._wanted = wanted = wanted or Wanted()
        profile = settings.profile
        cores, memory_mb = wanted.cores or profile.cores, wanted.memory_mb or profile.memory_mb
        self._settings = replace(settings, profile=replace(profile, cores=cores, memory_mb=memory_mb))
        self._now = now
        self._begun: list[Record] = []

    async def run(self, image: str, workspace_root: str, count: int, report: Report) -> list[Record]:
        """Make `count` sandboxes, all of them ready, or none.

        Raises:
            ClocheError: nothing was made. What could not be removed again is a record in state failed.
        """
        workspace = await run_sync(allowed_workspace, workspace_root, self._settings)
        facts = await run_sync(self._engine.image, image)
        await run_sync(self._check_engine, facts)
        try:
            for _ in range(count):
                await run_sync(self._begin, image, workspace)
            await report(1, "preparing the shared base")
            base, delivered = await run_sync(self._prepare, workspace)
            made: list[Record] = []
            for number, record in enumerate(tuple(self._begun)):
                await report(2 + number, f"starting sandbox {number + 1} of {count}")
                made.append(await self._make(record, base, delivered, facts))
            # All at once: a batch that is undone never showed a ready sandbox.
            for record in made:
                await run_sync(self._registry.settle, record, "ready")
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_UNDO_S):
                await run_sync(self._undo)
            raise
        return [replace(record, state="ready", owner=None) for record in made]

    def _check_engine(self, image: Mapping[str, Any]) -> None:
        """Refuse an engine whose sandboxes would not be what they say."""
        facts = self._engine.facts()
        if not self._engine.place.here:
            raise BackendUnavailable(cause="docker_elsewhere")
        if facts.operating_system != "linux":
            raise BackendUnavailable(cause="docker_not_linux")
        if os.geteuid() != 0 and not facts.rootless:
            raise BackendUnavailable(cause="docker_other_user")
        wanted = str(image.get("Architecture") or platform.machine())
        if {facts.architecture, _ARCHITECTURES.get(wanted, wanted)} != {platform.machine()}:
            raise BackendUnavailable(cause="docker_other_processor")

    def _begin(self, image: str, workspace: str) -> None:
        """Write a record before anything is made for it: whoever finds it later knows what to remove."""
        wanted, now, profile = self._wanted, self._now(), self._settings.profile
        record = Record(
            id=f"sbox-{secrets.token_hex(6)}",
            workspace_root=workspace,
            image=image,
            state="creating",
            token=secrets.token_urlsafe(32),
            owner=this_process(),
            template=wanted.template,
            started_at=now,
            lifetime_s=wanted.lifetime_s,
            # Until it is ready; then its lifetime begins.
            end_at=None if wanted.lifetime_s is None else now + READY_S + wanted.lifetime_s,
            cores=profile.cores,
            memory_mb=profile.memory_mb,
            metadata=wanted.metadata,
        )
        self._begun.append(record)
        self._registry.put(record)

    def _prepare(self, workspace: str) -> tuple[BuiltBase, Delivered]:
        cache = self._settings.cache_dir
        base = ensure_base(cache, workspace)
        return base, Delivered(python_folder(cache), agent_folder(cache), base.folder)

    async def _make(self, record: Record, base: BuiltBase, delivered: Delivered, image: Mapping[str, Any]) -> Record:
        record = replace(record, base=Base(str(base.folder), BASE, base.root_hash))
        await run_sync(self._registry.put, record)
        ports = await run_sync(self._start, record, delivered, image)
        record = replace(record, agent_port=ports[0], interpreter_port=ports[1])
        await run_sync(self._registry.put, record)
        await self._wait_until_ready(record, ports[0])
        return record if record.lifetime_s is None else await self._begin_lifetime(record, record.lifetime_s)

    async def _begin_lifetime(self, record: Record, lifetime_s: int) -> Record:
        """Count from the call, but not so that whoever gets the sandbox has no time left for it."""
        left_s = max(record.started_at + lifetime_s - self._now(), min(lifetime_s, LEAST_S))
        link = AgentLink(record.agent_port or 0, record.token)
        try:
            await link.renew(math.ceil(left_s))
        finally:
            with anyio.CancelScope(shield=True):
                await link.aclose()
        return replace(record, end_at=self._now() + left_s)

    def _start(self, record: Record, delivered: Delivered, image: Mapping[str, Any]) -> tuple[int, int]:
        engine, labels = self._engine, self._registry.labels_of(record)
        network = network_of(self._registry)
        # The engine makes two networks of one name where it is asked twice at the same time.
        with self._registry.exclusive():
            engine.ensure_network(network, self._registry.labels, _NETWORK_OPTIONS)
        engine.create_volume(record.volume, labels)
        host = host_of(record, network, delivered, self._settings)
        engine.create_container(record.container, settings_of(record, labels), host)
        assert record.base is not None, "a sandbox is started on its base"
        engine.put_file(record.container, "/", boot_archive(record, record.base.root_hash, image, self._wanted.envs))
        engine.start(record.container)
        facts = engine.inspect(record.container)
        ports = None if facts is None else published_ports(facts)
        if ports is None:
            raise self._why_ended(record)
        return ports

    async def _wait_until_ready(self, record: Record, port: int) -> None:
        """Return when the agent answers with our token; a container that has ended is noticed at once."""
        link = AgentLink(port, record.token)
        pause = _POLL_S[0]
        try:
            with anyio.move_on_after(READY_S):
                while not await link.answers_as(record.id):
                    facts = await run_sync(self._engine.inspect, record.container)
                    if facts is None or not facts["State"]["Running"]:
                        raise await run_sync(self._why_ended, record)
                    await anyio.sleep(pause)
                    pause = min(pause * 1.5, _POLL_S[1])
                return
        finally:
            with anyio.CancelScope(shield=True):
                await link.aclose()
        raise SandboxStartFailed(reason="no_answer")

    def _why_ended(self, record: Record) -> ClocheError:
        """What the agent said before it ended: one of its known lines, never passed on itself."""
        if _MOUNTS_REFUSED in self._engine.last_words(record.container):
            return BackendUnavailable(cause="docker_mounts_blocked")
        return SandboxStartFailed(reason="ended")

    def _undo(self) -> None:
        """Remove everything of this call, the newest first. What stays is shown as failed."""
        for record in reversed(self._begun):
            try:
                remove_objects(self._engine, record)
            except ClocheError as exc:
                logger.warning("a sandbox could not be rolled back", extra={"sandbox": record.id, "error": exc.code})
                self._registry.settle(record, "failed")
            else:
                self._registry.remove(record.id)


# Sandboxes do not reach each other, as far as the engine may set firewall rules.
_NETWORK_OPTIONS = {"com.docker.network.bridge.enable_icc": "false"}


def network_of(registry: Registry) -> str:
    """The bridge that the sandboxes of this manager are on."""
    return f"cloche-{registry.manager[:12]}"


def drop_network(engine: Engine, registry: Registry) -> None:
    """Remove the bridge where no record is left. Blocks.

    Whoever makes a sandbox writes a record before it asks for a bridge.

    Raises:
        ClocheError: the engine did not do it.
    """
    with registry.exclusive():
        if not registry.all():
            engine.remove_network(network_of(registry))


def remove_objects(engine: Engine, record: Record) -> None:
    """Remove what a sandbox has in the engine; what is not there is no error. Blocks.

    Raises:
        ClocheError: the engine did not do it.
    """
    engine.remove_container(record.container)
    engine.remove_volume(record.volume)


def below_the_roots(path: str, settings: ManagerSettings) -> Path:
    """The real path of a directory, which lies below a root whatever links lead there. Blocks.

    Raises:
        WorkspaceNotFound: it is not there, or is no directory.
        WorkspaceNotAllowed: it is outside of the roots.

    Source: checklist 245, 337; fault P11.
    """
    try:
        real = Path(path).resolve(strict=True)
        if not real.is_dir():
            raise WorkspaceNotFound
        roots = [root.resolve() for root in settings.workspace_roots]
    except (OSError, RuntimeError, ValueError) as exc:
        raise WorkspaceNotFound from exc
    if not any(real.is_relative_to(root) for root in roots):
        raise WorkspaceNotAllowed
    return real


def allowed_workspace(path: str, settings: ManagerSettings) -> str:
    """The real path of a workspace that a sandbox may be made of. Blocks.

    Raises:
        WorkspaceNotFound: it is not there, or is no directory.
        WorkspaceNotAllowed: it is outside of the roots, or holds what the manager keeps.
    """
    if Path(path) == settings.empty_workspace:
        return str(_made_empty(settings.empty_workspace))
    real = below_the_roots(path, settings)
    for ours in (settings.state_dir.resolve(), settings.cache_dir.resolve()):
        # A base that holds the bases grows for ever, and records hold tokens.
        if ours.is_relative_to(real) or real.is_relative_to(ours):
            raise WorkspaceNotAllowed
    return str(real)


def _made_empty(folder: Path) -> Path:
    """Make the folder that stands for no workspace, and see that nobody has put something into it."""
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        if folder.is_symlink() or any(folder.iterdir()):
            raise WorkspaceNotAllowed
    except OSError as exc:
        raise BackendUnavailable(cause="docker_state_unusable") from exc
    return folder
