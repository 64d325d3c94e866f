"""POST /execute and /contexts: code in an interpreter that keeps its state, or in a program per call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import Mapping

from . import connect, fields, limits
from .config import AgentConfig, KeeperHooks
from .contexts import Context, Makers
from .exchange import Exchange
from .execution import Finish, Job, Replaced, Run
from .failures import AgentError, invalid_argument
from .languages import PYTHON, Engine, Languages, Runner
from .output_budget import limit_of
from .outputs import OutputFiles, mark
from .process_rpc import folders
from .programs import Programs
from .sink import NDJSON_TYPE, ExecutionSink
from .spawner import Spawner
from .workspace_view import FilesView, PlainView
from .workspaces import Workspaces

Json = Mapping[str, object]


class Interpreters:
    """The code side of the agent. Default contexts exist by name from the start, their processes on use."""

    def __init__(
        self,
        config: AgentConfig,
        hooks: KeeperHooks,
        spawner: Spawner,
        tasks: asyncio.TaskGroup,
        workspaces: Workspaces | None = None,
        view: FilesView | None = None,
    ) -> None:
        user = config.user(config.default_user)
        if user is None:
            raise ValueError("the default user is not among the users")
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._user = user
        self._makers = Makers(spawner, hooks, tasks, user, workspaces)
        self._view: FilesView = view or PlainView()
        self._default_folders = folders(config, user, "")
        self._contexts: dict[str, Context] = {}
        self._default(PYTHON)
        self.languages = Languages(config, hooks, spawner)
        self._programs = Programs(config, hooks, spawner, user, workspaces)
        self.outputs = OutputFiles(hooks, user)

    async def begin(self) -> None:
        """Start the default interpreter before it is asked for. What fails now is told to the first who asks."""
        context = self._default(PYTHON)
        async with context.lock:
            with contextlib.suppress(AgentError):
                await context.start()

    def close(self) -> None:
        """Let go of every interpreter."""
        for context in self._contexts.values():
            context.close()

    async def adopt_environment(self) -> None:
        """Give the interpreter that was begun in advance the environment of the sandbox that it became part of."""
        context = self._default(PYTHON)
        async with context.lock:
            await context.adopt_environment(self._config.envs)

    # -- POST /execute ------------------------------------------------------------------------------------------

    async def execute(self, exchange: Exchange) -> None:
        """Run code and stream its output, results and end."""
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        code = fields.text(fields.declared("ExecuteRequest", request), "code")
        if len(code.encode()) > limits.CODE_BYTES:
            raise AgentError("resource_exhausted", "the code is too long", "invalid_argument", status=413, field="code")
        context_id = fields.text(request, "context_id", "")
        name = fields.text(request, "language", "")
        if context_id and name:
            raise invalid_argument("give context_id or language, not both", "language")
        exchange.watch()
        if context_id:
            context = self._context(context_id)
            await self._run_in_context(exchange, context, self._job(request, code, context.language))
            return
        way = await self.languages.choose(name, self._user)
        if isinstance(way, Engine):
            job = self._job(request, code, way.language)
            await self._run_in_context(exchange, self._default(way), job)
        else:
            await self._run_program(exchange, way, self._job(request, code, name))

    def _job(self, request: Json, code: str, language: str) -> Job:
        timeout_ms = fields.whole(request, "timeout_ms", 0)
        return Job(
            code,
            fields.environment(request, "env_vars"),
            timeout_ms / 1000 if timeout_ms else None,
            fields.whole(request, "max_result_bytes", limits.RESULT_BYTES),
            fields.whole(request, "max_results", limits.RESULTS),
            language,
            limit_of(fields.whole(request, "output_limit", 0)),
        )

    async def _run_in_context(self, exchange: Exchange, context: Context, job: Job) -> None:
        async with context.lock:
            if exchange.gone:
                return
            await self._start(context)
            await context.advance()
            replaced, context.replaced = context.replaced, None
            exchange.begin(200, NDJSON_TYPE)
            sink = ExecutionSink(exchange, self._config.clock)
            run = Run(sink, job.output_limit)
            exchange.on_gone = lambda: run.tell(("gone", None))
            exchange.on_resume = context.resume
            if replaced is not None:
                sink.line(replaced.line())
            start_ns, denial_mark = mark(), self._hooks.denial_mark()
            try:
                finish = await context.execute(job, run)
                published = await context.publish()
            finally:
                exchange.on_resume = None
                sink.stop()
            async with self._view.reading():
                self._end(sink, finish, start_ns, context.cwd, denial_mark, replaced, published)

    async def _start(self, context: Context) -> None:
        """Have a process for a context that may have been removed while this execution waited for its turn."""
        if not context.removed:
            await context.start()
        if context.removed:
            await context.end()
            raise _no_context()

    async def _run_program(self, exchange: Exchange, runner: Runner, job: Job) -> None:
        start_ns, denial_mark = mark(), self._hooks.denial_mark()
        sink, finish, published = await self._programs.run(exchange, runner, job, self._default_folders)
        async with self._view.reading():
            self._end(sink, finish, start_ns, self._default_folders[0], denial_mark, None, published)

    def _end(
        self,
        sink: ExecutionSink,
        finish: Finish,
        start_ns: int,
        cwd: str,
        denial_mark: int,
        replaced: Replaced | None,
        published: Json,
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
        told = ("exit_code", "stop_reason", "state_kept")
        self._hooks.record("code_ended", {name: last[name] for name in told})
        for entry in denied:
            self._hooks.record("denied", {"target": entry["target"]})
        if denied:
            last["denied"] = denied
        if replaced is not None:
            last["context_restarted"] = replaced.reason
        if published:
            last["published"] = published
        sink.end(last)

    # -- /contexts ----------------------------------------------------------------------------------------------

    async def contexts(self, exchange: Exchange) -> None:
        """Answer the /contexts endpoints."""
        parts = exchange.head.path.strip("/").split("/")
        match (exchange.head.method, parts):
            case ("GET", ["contexts"]):
                reply: object = await self._list()
            case ("POST", ["contexts"]):
                reply = _described(await self._create(exchange))
            case ("DELETE", ["contexts", identity]):
                context = self._context(identity)
                del self._contexts[identity]
                await context.stop("removed")
                exchange.reply(204)
                return
            case ("POST", ["contexts", identity, "restart"]):
                await self._context(identity).stop("restarted")
                exchange.reply(204)
                return
            case ("POST", ["contexts", identity, "interrupt"]):
                reply = {"interrupted": self._context(identity).interrupt()}
            case _:
                raise AgentError("not_found", "no such endpoint", "unsupported_operation")
        exchange.reply(200, json.dumps(reply).encode())

    async def _list(self) -> list[dict[str, str]]:
        for language in await self.languages.stateful(self._user):
            self._default(await self.languages.choose_engine(language, self._user))
        return [_described(context) for context in self._contexts.values()]

    async def _create(self, exchange: Exchange) -> Context:
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        fields.declared("CreateContextRequest", request)
        engine = await self.languages.choose_engine(fields.text(request, "language", ""), self._user)
        cwd = fields.no_nul(fields.text(request, "cwd", ""), "cwd")
        if sum(context.identity != context.engine.context for context in self._contexts.values()) >= limits.CONTEXTS:
            text = f"{limits.CONTEXTS} contexts are the most beside the default ones; remove one first"
            raise AgentError("resource_exhausted", text, "context_limit", limit=limits.CONTEXTS)
        identity = str(uuid.uuid4())
        context = Context(self._makers, identity, engine, folders(self._config, self._user, cwd))
        # Counted before it is started: the limit holds for requests at the same time too.
        self._contexts[identity] = context
        try:
            await self._start(context)
        except BaseException:
            self._contexts.pop(identity, None)
            raise
        return context

    def _default(self, engine: Engine) -> Context:
        """Return the default context of a language, a new one after it was removed."""
        identity = engine.context
        if identity not in self._contexts:
            of_context = Engine(identity, identity, engine.argv)
            self._contexts[identity] = Context(self._makers, identity, of_context, self._default_folders)
        return self._contexts[identity]

    def _context(self, identity: str) -> Context:
        context = self._contexts.get(identity)
        if context is None:
            raise _no_context()
        return context


def _no_context() -> AgentError:
    return AgentError("not_found", "context not found", "context_not_found")


def _described(context: Context) -> dict[str, str]:
    return {"id": context.identity, "language": context.language, "cwd": context.cwd}
