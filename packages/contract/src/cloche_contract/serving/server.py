"""The MCP server of one tool set, for every transport.

Arguments are validated before anything happens, results are checked before they leave, and no
exception gets past this module: the handshake era would send its text to the client.

Source: decisions D7, D11, D12; architecture 3.6; MCP 2025-06-18 to 2026-07-28.
"""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, PaginatedRequestParams

from cloche_contract.kernel.dispatch import Outcome, dispatch
from cloche_contract.kernel.enabled import ToolFilter
from cloche_contract.kernel.failure import ClocheError, envelope
from cloche_contract.kernel.registry import published_set
from cloche_contract.kernel.toolset import CallReport
from cloche_contract.serving.calls import PROGRESS_INTERVAL_S, LiveCall, Sleep, with_progress
from cloche_contract.serving.session import LazySession

_LIST_TTL_MS = 3_600_000  # the list changes with the installed version only
# A client that reads line by line has a limit too (TypeScript: 10 MiB) and ends the connection over it.
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_SURELY_SMALL = 1024 * 1024
# Required by 2026-07-28; on a connection of the handshake era the SDK leaves it out.
_COMPLETE = {"resultType": "complete"}
EVERY_TOOL = ToolFilter()
_SANDBOX_ID = re.compile(r"\A[A-Za-z0-9:._-]{1,256}\Z")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ToolServer:
    """Serves one connection: its tools, its session.

    Attributes:
        server: the low-level MCP server; a transport runs it.
        session: the session behind the tools; the transport runs it in a task of its own.
    """

    def __init__(
        self,
        set_name: str,
        session: LazySession,
        *,
        tools: ToolFilter = EVERY_TOOL,
        progress_interval_s: float = PROGRESS_INTERVAL_S,
        sleep: Sleep = anyio.sleep,
        mirror_text: bool = False,
    ) -> None:
        """`mirror_text` puts each result into the content as text, too, where the set leaves it empty."""
        self.session = session
        self._set = published_set(set_name)
        self._enabled = tools.apply(self._set)
        self._tools = self._enabled.tools
        self._progress_interval_s = progress_interval_s
        self._sleep = sleep
        self._structured_only = self._set.envelope != "text-json"
        self._mirrored = mirror_text or not self._structured_only
        self._listed = False
        self.server = self._low_level_server()

    def on_answer(self) -> None:
        """Tell that an answer is on the wire: from now on opening the session delays nobody."""
        if self._listed:
            self._listed = False  # one try for each list: a session that cannot be opened is not tried for ever
            self.session.want()

    def _low_level_server(self) -> Server[Any]:
        server = Server[Any](
            self._set.server_name,
            version=f"{version('cloche-contract')}+contract.{self._set.contract_version}",
            title=self._set.server_title,
            instructions=self._enabled.instructions,
            cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_TTL_MS, scope="public")},
            get_tool_input_schema=self._input_schema,
        )
        server.add_request_handler("tools/list", PaginatedRequestParams, self._list_tools)
        server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        return server

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else tool["inputSchema"]

    async def _list_tools(self, _ctx: ServerRequestContext[Any], _params: PaginatedRequestParams) -> dict[str, Any]:
        self._listed = True
        return {"tools": list(self._tools.values()), **_COMPLETE}

    async def _call_tool(self, ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> dict[str, Any]:
        if params.name not in self._tools:
            raise MCPError(code=INVALID_PARAMS, message=_unknown_tool(params.name))
        if ctx.meta is None or "progress_token" not in ctx.meta:
            call = LiveCall(None)
            outcome = await self._dispatch(params, call)
        else:
            call = LiveCall(partial(_send_progress, ctx))
            work = partial(self._dispatch, params, call)
            outcome = await with_progress(call, work, self._progress_interval_s, self._sleep)
        return self._result(outcome, call)

    async def _dispatch(self, params: CallToolRequestParams, call: LiveCall) -> Outcome:
        outcome = await self._observed(params, call)
        shown = dict(self._enabled.without_others(outcome.structured)) if outcome.is_error else outcome.structured
        return replace(outcome, structured=shown)

    async def _observed(self, params: CallToolRequestParams, call: LiveCall) -> Outcome:
        """Carry out a call and tell of it, also when it is cancelled; refuse it where no record can be kept."""
        observer = await self.session.observer()
        try:
            if observer is not None:
                observer.begin()
        except ClocheError as refusal:
            return Outcome(envelope(self._set.name, refusal), True)
        began, found, error = time.monotonic(), dict(params.arguments or {}), "cancelled"
        try:
            outcome = await dispatch(self._set.name, self.session, params.name, params.arguments, call)
            found |= outcome.structured
            error = outcome.code
        finally:
            if observer is not None:
                sandbox = found.get("sandbox_id")
                known = None if sandbox is None else "".join(_SANDBOX_ID.findall(str(sandbox))[:1])
                observer.end(CallReport(params.name, known, error, time.monotonic() - began))
        return outcome

    def _result(self, outcome: Outcome, call: LiveCall) -> dict[str, Any]:
        structured, text = _as_json(outcome.structured)
        if _message_bytes(text, call, mirrored=self._mirrored) > MAX_MESSAGE_BYTES:
            structured, text = _as_json(self._too_large())
            return self._error(structured, text)
        if outcome.is_error:
            return self._error(structured, text)
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if self._mirrored else []
        return {"content": content + call.images, "structuredContent": structured, "isError": False, **_COMPLETE}

    def _error(self, structured: Mapping[str, Any], text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}] if self._mirrored else []
        if self._structured_only:
            return {"content": content, "structuredContent": structured, "isError": True, **_COMPLETE}
        # Widespread clients (TypeScript SDK 1.x, Inspector 2.12) hold the structuredContent of an
        # error against the output schema, and show their own complaint instead of the error.
        return {"content": content, "isError": True, **_COMPLETE}

    def _too_large(self) -> Mapping[str, Any]:
        from cloche_contract.errors import ResultTooLarge  # not needed to answer tools/list

        return envelope(self._set.name, ResultTooLarge())


async def _send_progress(ctx: ServerRequestContext[Any], progress: float, message: str) -> None:
    await ctx.session.report_progress(progress, None, message)


def _unknown_tool(name: str) -> str:
    return f"Unknown tool: {name}" if _TOOL_NAME.fullmatch(name) else "Unknown tool"


def _as_json(structured: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The result and its text. What no UTF-8 can carry (a lone surrogate) is replaced in both."""
    text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode(errors="replace").decode()
        structured = json.loads(text)
    return structured, text


def _message_bytes(text: str, call: LiveCall, *, mirrored: bool) -> int:
    """Size of the answer; what is surely small is not counted."""
    size = len(text) * 4 + sum(len(image["data"]) for image in call.images)
    if size > _SURELY_SMALL:
        size -= len(text) * 4 - len(text.encode())
        if mirrored:
            size += len(json.dumps(text, ensure_ascii=False).encode())
    return size
