"""What an operator watches: calls by tool and outcome, how long they take, open sessions, refused requests.

Labels hold names of tools and numbers of HTTP, and nothing that a client chose.

Source: the issue, item 1; ADR 25.
"""

import time
from collections.abc import Callable, Collection
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Commands take from milliseconds to an hour.
_BUCKETS_S = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0, 3600.0)


class Metrics:
    """The numbers of one server."""

    def __init__(self, tools: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._tools = frozenset(tools)
        self._clock = clock
        self._registry = CollectorRegistry()
        self._calls = Counter("cloche_mcp_calls", "Tool calls.", ["tool", "outcome"], registry=self._registry)
        self._seconds = Histogram(
            "cloche_mcp_call_seconds", "How long calls took.", ["tool"], buckets=_BUCKETS_S, registry=self._registry
        )
        self._running = Gauge("cloche_mcp_calls_running", "Calls that run now.", registry=self._registry)
        self._answers = Counter("cloche_mcp_answers", "HTTP answers of /mcp.", ["status"], registry=self._registry)
        self._sessions = Gauge("cloche_mcp_sessions", "Open sessions.", registry=self._registry)

    def count_sessions(self, count: Callable[[], float]) -> None:
        """Take the number of open sessions from this function, whenever somebody asks."""
        self._sessions.set_function(count)

    async def count_call(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Middleware of a tool server: one call with its outcome."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        name = (ctx.params or {}).get("name")
        tool = name if isinstance(name, str) and name in self._tools else "unknown"
        outcome, began = "unfinished", self._clock()
        self._running.inc()
        try:
            result = await call_next(ctx)
            outcome = "error" if isinstance(result, dict) and result.get("isError") else "ok"
            return result
        finally:
            self._running.dec()
            self._calls.labels(tool, outcome).inc()
            self._seconds.labels(tool).observe(self._clock() - began)

    def counting(self, app: ASGIApp) -> "CountedAnswers":
        """The application, with its answers counted by status."""
        return CountedAnswers(app, self._answers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with all numbers in the text format of Prometheus."""
        body = generate_latest(self._registry)
        await Response(body, headers={"Content-Type": CONTENT_TYPE_LATEST})(scope, receive, send)


class CountedAnswers:
    """An application whose answers are counted."""

    def __init__(self, app: ASGIApp, answers: Counter) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answers.labels(str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, count)
