"""POST /execute and /contexts: code in a warm Python, or in another language's program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import uuid
from collections.abc import Mapping
from typing import Final

from . import connect, fields, limits
from .config import AgentConfig, KeeperHooks
from .contexts import Context, Finish, Job, Makers, Run
from .exchange import Exchange
from .failures import AgentError, invalid_argument
from .languages import Languages, Runner, Script
from .outputs import OutputFiles, mark
from .process_rpc import folders
from .processes import ending_of
from .pumps import OutputPipe
from .sink import NDJSON_TYPE, ExecutionSink
from .spawner import Child, Launch, Spawner

DEFAULT_CONTEXT: Final = "python"
Json = Mapping[str, object]


class Interpreters:
    """The code side of the agent. The default Python context exists by name from the start, its process on use."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, spawner: Spawner, tasks: asyncio.TaskGroup) -> None:
        user = config.user(config.default_user)
        if user is None:
            raise ValueError("the default user is not among the users")
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._user = user
        self._makers = Makers(spawner, hooks, tasks, user)
        self._default_folders = folders(config, user, "")
        self._contexts = {DEFAULT_CONTEXT: Context(self._makers, DEFAULT_CONTEXT, self._default_folders)}
        self.languages = Languages(config, hooks, spawner)
        self.outputs = OutputFiles(hooks, user)

    async def begin(self) -> None:
        """Start the default interpreter before it is asked for. What fails now is told to the first who asks."""
        context = self._contexts[DEFAULT_CONTEXT]
        async with context.lock:
            with contextlib.suppress(AgentError):
                await context.start()

    # -- POST /execute ------------------------------------------------------------------------------------------

    async def execute(self, exchange: Exchange) -> None:
        """Run code and stream its output, results and end."""
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        code = fields.text(request, "code")
        if len(code.encode()) > limits.CODE_BYTES:
            raise AgentError("resource_exhausted", "the code is too long", "invalid_argument", status=413, field="code")
        context_id = fields.text(request, "context_id", "")
        name = fields.text(request, "language", "")
        if context_id and name:
            raise invalid_argument("give context_id or language, not both", "language")
        exchange.watch()
        job = self._job(request, code)
        if context_id:
            await self._run_in_context(exchange, self._context(context_id), job)
            return
        _language, runner = await self.languages.choose(name, self._user)
        if runner is None:
            await self._run_in_context(exchange, self._contexts[DEFAULT_CONTEXT], job)
        else:
            await self._run_program(exchange, runner, job)

    def _job(self, request: Json, code: str) -> Job:
        timeout_ms = fields.whole(request, "timeout_ms", 0)
        if not 0 <= timeout_ms <= limits.COMMAND_TIMEOUT_MAX_S * 1000:
            raise invalid_argument("timeout_ms is out of range", "timeout_ms")
        return Job(
            code,
            fields.environment(request, "env_vars"),
            timeout_ms / 1000 if timeout_ms else None,
            _at_most(request, "max_result_bytes", limits.RESULT_BYTES),
            _at_most(request, "max_results", limits.RESULTS),
        )

    async def _run_in_context(self, exchange: Exchange, context: Context, job: Job) -> None:
        async with context.lock:
            if exchange.gone:
                return
            await context.start()
            replaced_because, context.replaced_because = context.replaced_because, ""
            exchange.begin(200, NDJSON_TYPE)
            sink = ExecutionSink(exchange, self._config.clock)
            run = Run(sink)
            exchange.on_gone = lambda: run.tell(("gone", None))
            exchange.on_resume = context.resume
            if replaced_because:
                sink.line({"type": "context_restarted", "reason": replaced_because})
            start_ns, denial_mark = mark(), self._hooks.denial_mark()
            try:
                finish = await context.execute(job, run)
            finally:
                exchange.on_resume = None
                sink.stop()
            self._end(sink, finish, start_ns, context.cwd, denial_mark, replaced_because)

    def _end(
        self, sink: ExecutionSink, finish: Finish, start_ns: int, cwd: str, denial_mark: int, replaced_because: str = ""
    ) -> None:
        sink.flush()
        if finish.error is not None:
            sink.line({"type": "error", **finish.error})
        last: dict[str, object] = {
            "exit_code": finish.exit_code,
            "stop_reason": finish.stop_reason,
            "timed_out": finish.stop_reason == "timeout",
            "state_kept": finish.state_kept,
            "output_files": self.outputs.since(start_ns, cwd, finish.files),
        }
        denied = [dict(entry) for entry in self._hooks.denials_since(denial_mark)]
        if denied:
            last["denied"] = denied
        if replaced_because:
            last["context_restarted"] = replaced_because
        sink.end(last)

    # -- other languages ----------------------------------------------------------------------------------------

    async def _run_program(self, exchange: Exchange, runner: Runner, job: Job) -> None:
        script = Script(self._config, self._hooks, self._user, job.code, self._default_folders)
        script.write(runner.suffix)
        start_ns, denial_mark = mark(), self._hooks.denial_mark()
        try:
            sink, finish = await self._run_script(exchange, runner, script.path, job)
        finally:
            script.remove()
        self._end(sink, finish, start_ns, self._default_folders[0], denial_mark)

    async def _run_script(
        self, exchange: Exchange, runner: Runner, path: str, job: Job
    ) -> tuple[ExecutionSink, Finish]:
        out, out_child = self._spawner.pipe(self._user, keeper_reads=True)
        err, err_child = self._spawner.pipe(self._user, keeper_reads=True)
        kills_before = self._hooks.memory_kills()
        try:
            launch = Launch(self._user, self._default_folders, job.envs, (*runner.argv, path))
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
        pipes = _Pipes(sink, out, err)
        exchange.on_resume = pipes.resume
        try:
            finish = await self._wait_for(exchange, child, job, kills_before)
            pipes.drain()
        finally:
            pipes.discard()
            sink.stop()
        return sink, finish

    async def _wait_for(self, exchange: Exchange, child: Child, job: Job, kills_before: int) -> Finish:
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def leave() -> None:
            if not gone.done():
                gone.set_result(None)

        exchange.on_gone = leave
        if exchange.gone:
            leave()
        await asyncio.wait([child.exit, gone], timeout=job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not child.exit.done():
            await self._spawner.kill_tree(child)
            return Finish(137, "cancelled" if gone.done() else "timeout", state_kept=True)
        status = child.exit.result()
        if status < 0:
            return Finish(137, "sandbox_lost", state_kept=False)
        ending = ending_of(status, self._hooks.memory_kills() > kills_before)
        return Finish(ending.exit_code, ending.stop_reason)

    # -- /contexts ----------------------------------------------------------------------------------------------

    async def contexts(self, exchange: Exchange) -> None:
        """Answer the /contexts endpoints."""
        parts = exchange.head.path.strip("/").split("/")
        match (exchange.head.method, parts):
            case ("GET", ["contexts"]):
                reply: object = [_described(context) for context in self._contexts.values()]
            case ("POST", ["contexts"]):
                reply = _described(await self._create(exchange))
            case ("DELETE", ["contexts", identity]):
                context = self._context(identity)
                if identity != DEFAULT_CONTEXT:
                    del self._contexts[identity]
                await context.end()
                exchange.reply(204)
                return
            case ("POST", ["contexts", identity, "restart"]):
                await self._context(identity).end()
                exchange.reply(204)
                return
            case _:
                raise AgentError("not_found", "no such endpoint", "unsupported_operation")
        exchange.reply(200, json.dumps(reply).encode())

    async def _create(self, exchange: Exchange) -> Context:
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        language, runner = await self.languages.choose(fields.text(request, "language", ""), self._user)
        if runner is not None or language != "python":
            text = "contexts are kept for python only; other languages run per call"
            raise AgentError("invalid_argument", text, "unsupported_language", available=["python"])
        if len(self._contexts) >= limits.CONTEXTS:
            raise AgentError("resource_exhausted", "too many contexts", "quota_exceeded")
        cwd = fields.no_nul(fields.text(request, "cwd", ""), "cwd")
        identity = str(uuid.uuid4())
        context = Context(self._makers, identity, folders(self._config, self._user, cwd))
        await context.start()
        self._contexts[identity] = context
        return context

    def _context(self, identity: str) -> Context:
        context = self._contexts.get(identity)
        if context is None:
            raise AgentError("not_found", "context not found", "context_not_found")
        return context


class _Pipes:
    """The two outputs of a program, paused together while the client is slow."""

    def __init__(self, sink: ExecutionSink, out: int, err: int) -> None:
        self._sink = sink
        self._pipes = [
            OutputPipe(out, lambda data: self._on_data("stdout", data)),
            OutputPipe(err, lambda data: self._on_data("stderr", data)),
        ]

    def _on_data(self, stream: str, data: bytes) -> None:
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


def _at_most(request: Json, name: str, most: int) -> int:
    value = fields.whole(request, name, most)
    if value < 0:
        raise invalid_argument(f"{name} is out of range", name)
    return min(value, most)


def _described(context: Context) -> dict[str, str]:
    return {"id": context.identity, "language": context.language, "cwd": context.cwd}
