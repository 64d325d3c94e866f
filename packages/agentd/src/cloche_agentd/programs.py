"""Languages without state: one program per call, with the code in a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from .config import AgentConfig, KeeperHooks, User
from .exchange import Exchange
from .execution import Finish, Job
from .languages import Runner, Script
from .output_budget import OutputBudget
from .processes import ending_of, explained
from .pumps import OutputPipe
from .sink import NDJSON_TYPE, ExecutionSink
from .spawner import Child, Launch, Spawner
from .workspaces import Workspaces


class Programs:
    """Runs such programs as the sandbox's default user."""

    def __init__(
        self,
        config: AgentConfig,
        hooks: KeeperHooks,
        spawner: Spawner,
        user: User,
        workspaces: Workspaces | None = None,
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._user = user
        self._workspaces = workspaces

    async def run(
        self, exchange: Exchange, runner: Runner, job: Job, folders: Sequence[str]
    ) -> tuple[ExecutionSink, Finish, Mapping[str, object]]:
        """Run code to its end in the first of `folders` that is there. The answer has begun then.

        The last part is what became of its changes, where the sandbox has layers.

        Raises:
            AgentError: nothing ran.
        """
        # Below the temporary folder nobody meets the file; relative imports, though, start at the file.
        places = (*folders, self._config.tmp_dir) if runner.beside_user_files else (self._config.tmp_dir, *folders)
        if self._workspaces is not None:
            # A file of ours would be published with what the code writes.
            places = (self._config.tmp_dir,)
        script = Script(self._hooks, self._user, job.code, places)
        script.write(runner.suffix)
        try:
            launch = Launch(self._user, folders, job.envs, (*runner.argv, script.path))
            if self._workspaces is None:
                return *await self._run(exchange, launch, job), {}
            return await self._run_alone(self._workspaces, exchange, launch, job)
        finally:
            script.remove()

    async def _run_alone(
        self, workspaces: Workspaces, exchange: Exchange, launch: Launch, job: Job
    ) -> tuple[ExecutionSink, Finish, Mapping[str, object]]:
        """Run it in a workspace session of its own, which is published when it has ended."""
        session = await workspaces.enter_alone("program")
        try:
            sink, finish = await self._run(exchange, session.place(launch), job)
        except BaseException:
            await asyncio.shield(workspaces.settle(session))
            raise
        return sink, finish, await workspaces.settle(session)

    async def _run(self, exchange: Exchange, launch: Launch, job: Job) -> tuple[ExecutionSink, Finish]:
        out, out_child = self._spawner.pipe(self._user, keeper_reads=True)
        err, err_child = self._spawner.pipe(self._user, keeper_reads=True)
        kills_before = self._hooks.memory_kills()
        try:
            child = await self._spawner.spawn(launch, [out_child, err_child])
        except BaseException:
            os.close(out)
            os.close(err)
            raise
        finally:
            os.close(out_child)
            os.close(err_child)
        exchange.begin(200, NDJSON_TYPE)
        sink = ExecutionSink(exchange, self._config.clock)
        sink.line({"type": "number_of_executions", "execution_count": 1})
        enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        budget = OutputBudget(job.output_limit, lambda: enough.set_result(None))
        pipes = _Pipes(sink, budget, out, err)
        exchange.on_resume = pipes.resume
        try:
            finish = await self._wait_for(exchange, child, job, kills_before, enough)
            pipes.drain()
            if budget.spent and finish.stop_reason == "exit":
                # Its last words were too many.
                finish = Finish(137, "output_limit")
        finally:
            pipes.discard()
            sink.stop()
        return sink, finish

    async def _wait_for(
        self, exchange: Exchange, child: Child, job: Job, kills_before: int, enough: asyncio.Future[None]
    ) -> Finish:
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def leave() -> None:
            if not gone.done():
                gone.set_result(None)

        exchange.on_gone = leave
        if exchange.gone:
            leave()
        await asyncio.wait([child.exit, gone, enough], timeout=job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not child.exit.done():
            await self._spawner.kill_tree(child)
            reason = "cancelled" if gone.done() else "output_limit" if enough.done() else "timeout"
            return Finish(137, reason, state_kept=True)
        status = child.exit.result()
        if status < 0:
            return Finish(137, "sandbox_lost", state_kept=False)
        ending = ending_of(status, self._hooks.memory_kills() > kills_before)
        ending = explained(ending, self._hooks.limit_met)
        return Finish(ending.exit_code, ending.stop_reason)


class _Pipes:
    """The two outputs of a program, paused together while the client is slow."""

    def __init__(self, sink: ExecutionSink, budget: OutputBudget, out: int, err: int) -> None:
        self._sink = sink
        self._budget = budget
        self._pipes = [
            OutputPipe(out, lambda data: self._on_data("stdout", data)),
            OutputPipe(err, lambda data: self._on_data("stderr", data)),
        ]

    def _on_data(self, stream: str, data: bytes) -> None:
        if data := self._budget.take(data):
            self._sink.output(stream, data)
        if self._sink.paused:
            for pipe in self._pipes:
                pipe.pause()

    def resume(self) -> None:
        for pipe in self._pipes:
            pipe.resume()

    def drain(self) -> None:
        for pipe in self._pipes:
            pipe.drain()

    def discard(self) -> None:
        for pipe in self._pipes:
            pipe.discard()
