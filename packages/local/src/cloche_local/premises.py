"""What sandboxes of one user stand on: the folders of this host, and the zygote that works on them."""

import logging
import os

import anyio
import anyio.to_thread

from cloche_contract.errors import BackendUnavailable
from cloche_local import probe, templates
from cloche_local.launcher import Launcher, Settings, ZygoteGone
from cloche_local.launchers import Launchers
from cloche_local.paths import Paths, ensure_own_folder
from cloche_local.prune import sweep
from cloche_local.spec import OWN_PROCESSES, Limits, Protections, RootPlan, Shape
from cloche_local.state import StateFolder

logger = logging.getLogger(__name__)

_NO_LIMIT = 1 << 22
# Reading what a root is made of takes milliseconds; it is read once by a process, for each template.
_PLANS: dict[tuple[templates.Template, str, bool], RootPlan] = {}


class Premises:
    """Prepared at the first sandbox; whoever lists, reads or kills needs no process of its own for it."""

    def __init__(self, paths: Paths, host: probe.Host, limits: Limits, launchers: Launchers) -> None:
        self.paths = paths
        self.state = StateFolder(paths.state)
        self._host = host
        self._limits = limits
        self._launchers = launchers
        self._launcher: Launcher | None = None
        self._preparing = anyio.Lock()

    async def launcher(self, protections: Protections) -> Launcher:
        """The zygote, running.

        Raises:
            BackendUnavailable: this machine cannot have one.
        """
        async with self._preparing:
            if self._launcher is None:
                self._launcher = await self._lease(protections)
            launcher = self._launcher
        try:
            await launcher.start()
        except ZygoteGone as gone:
            raise BackendUnavailable(cause="zygote_failed") from gone
        return launcher

    async def _lease(self, protections: Protections) -> Launcher:
        key = (self.paths, self._host.is_root(), self._limits, protections)
        shared = self._launchers.lease(key)
        if shared is not None and self._is_prepared():
            return shared
        try:
            probe.check_platform(self._host)
            await anyio.to_thread.run_sync(self._prepare)
            return shared or self._launchers.lease_new(key, self._settings(protections))
        except BaseException:
            if shared is not None:
                await self._launchers.release(shared)
            raise

    def _settings(self, protections: Protections) -> Settings:
        warm = templates.find_template(templates.CODE_INTERPRETER)
        folder = None if warm is None else warm.library_folder
        return Settings(
            staging_folder=self.state.staging,
            runtime_folder=self.paths.runtime,
            range_slots=self.paths.range_slots,
            process_limit=self._limits.pids + OWN_PROCESSES if protections.process_limit else _NO_LIMIT,
            cgroup_root=self.paths.cgroup_root,
            import_paths=() if folder is None else (folder,),
            warm=warm is not None and not warm.missing,
            shape=self._likely_shape(protections),
            empty_environment=protections.empty_environment,
        )

    def _likely_shape(self, protections: Protections) -> Shape | None:
        """What most sandboxes are built of, so that one can wait for the first request already."""
        template = templates.find_template(templates.BASE)
        if template is None or protections != Protections():
            return None
        return Shape(self.plan(template), self._limits)

    def plan(self, template: templates.Template) -> RootPlan:
        """How to mount a template's root; its skeleton is written where it is not there.

        Raises:
            BackendUnavailable: it cannot be written.
        """
        key = (template, self.paths.state, self._host.is_root())
        plan = _PLANS.get(key)
        while plan is None or not templates.hold(plan.skeleton):
            try:
                plan = templates.plan_root(template, self.paths.state, host_root=self._host.is_root())
            except OSError as error:
                raise BackendUnavailable(cause="state_directory_unusable") from error
            _PLANS[key] = plan
        return plan

    def _is_prepared(self) -> bool:
        return os.path.isdir(self.state.staging) and os.path.isdir(self.paths.runtime)

    def _prepare(self) -> None:
        try:
            self.state.ensure()
        except OSError as error:
            raise BackendUnavailable(cause="state_directory_unusable") from error
        try:
            ensure_own_folder(self.paths.runtime)
        except OSError as error:
            raise BackendUnavailable(cause="runtime_directory_unusable") from error
        self.sweep()

    def sweep(self) -> None:
        """Remove what dead sandboxes left on this host."""
        removed = sweep(self.state, self.paths)
        if removed:
            logger.info("dead sandboxes removed", extra={"count": removed})

    async def close(self) -> None:
        """Let go of the zygote. Sandboxes live on."""
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            await self._launchers.release(launcher)
