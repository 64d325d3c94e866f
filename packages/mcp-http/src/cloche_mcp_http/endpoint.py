"""`/mcp`: from an HTTP request to the session that answers it.

Source: checklist 153, 154, 295 to 302; systems facts 3.3; decision D21; faults M5, M16.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import anyio
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, JSONRPCError, JSONRPCMessage, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from cloche_contract.serving import parse_message
from cloche_mcp_http.answers import SERVER_BUSY, refuse, rpc_error
from cloche_mcp_http.bodies import BodyTooLarge, BodyTooSlow, ClientGone, read_body, replaying
from cloche_mcp_http.calls import CallLimit, refuse_busy, take_up
from cloche_mcp_http.guard import PRINCIPAL
from cloche_mcp_http.leases import Leases
from cloche_mcp_http.session import HttpSession
from cloche_mcp_http.store import SessionLimit, SessionStore

SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_METHOD_HEADER = "mcp-method"
_ENDED_WITHIN_S = 10.0
_ALLOW = {"Allow": "POST, DELETE"}
_MISSING_SESSION = (
    "Missing Mcp-Session-Id header: send the one that initialize was answered with, or speak 2026-07-28, "
    "which has no sessions"
)
_UNKNOWN_SESSION = "Unknown session: it has ended, or never was; send initialize without Mcp-Session-Id for a new one"


@dataclass(frozen=True)
class BodyLimits:
    """What one request may send, and how long that may take."""

    max_bytes: int
    within_s: float


@dataclass(frozen=True)
class CallLimits:
    """How many calls run at the same time. Without principals, all clients without a session count as one."""

    of_session: CallLimit
    of_principal: CallLimit


class McpEndpoint:
    """The ASGI application of one path; everything it gets is authenticated."""

    def __init__(self, store: SessionStore, leases: Leases, limits: BodyLimits, calls: CallLimits) -> None:
        self._store = store
        self._leases = leases
        self._calls = calls
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope=scope)
        if scope["method"] == "DELETE":
            await (await self._delete(scope, headers))(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, headers, receive, send)
        else:
            refusal = refuse(
                405, INVALID_REQUEST, "Method not allowed: this server sends nothing unasked", headers=_ALLOW
            )
            await refusal(scope, receive, send)

    async def _delete(self, scope: Scope, headers: Headers) -> Response:
        session_id = headers.get(SESSION_HEADER)
        if session_id is None:
            return refuse(400, INVALID_REQUEST, _MISSING_SESSION)
        session = self._store.find(session_id, scope[PRINCIPAL])
        if session is None:
            return refuse(404, INVALID_REQUEST, _UNKNOWN_SESSION)
        session.end()
        with anyio.move_on_after(_ENDED_WITHIN_S):  # from now on nobody finds it, and it goes on destroying
            await session.ended.wait()
        return JSONResponse({"status": "session_terminated"})

    async def _post(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if not _is_json(headers):
            await refuse(415, INVALID_REQUEST, "Content-Type must be application/json")(scope, receive, send)
            return
        # The transport of the MCP library knows one spelling of it.
        scope["headers"] = [
            (name, b"application/json" if name == b"content-type" else value) for name, value in scope["headers"]
        ]
        try:
            limits = self._limits
            body = await read_body(headers, receive, max_bytes=limits.max_bytes, within_s=limits.within_s)
        except BodyTooLarge:
            text = f"The body is larger than the limit of {self._limits.max_bytes} bytes"
            await refuse(413, INVALID_REQUEST, text, headers={"Connection": "close"})(scope, receive, send)
        except BodyTooSlow:
            text = "The body did not arrive in time"
            await refuse(408, INVALID_REQUEST, text, headers={"Connection": "close"})(scope, receive, send)
        except ClientGone:
            return
        else:
            await self._answer(scope, headers, body, replaying(body, receive), send)

    async def _answer(self, scope: Scope, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        if headers.get(_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION) not in HANDSHAKE_PROTOCOL_VERSIONS:
            # Versions that nobody knows go there too: it answers them with the list of those that are served.
            await self._without_session(scope, headers, receive, send)
            return
        message = parse_message(body)
        if isinstance(message, JSONRPCError):
            await rpc_error(400, message)(scope, receive, send)
        elif message is None:  # a response: we asked for none
            await Response(status_code=202)(scope, receive, send)
        elif SESSION_HEADER not in headers and _is_hello(message):
            await self._open(scope, receive, send)
        else:
            session = self._session(scope, headers)
            if isinstance(session, Response):
                await session(scope, receive, send)
            else:
                await self._in_session(session, message, scope, receive, send)

    def _session(self, scope: Scope, headers: Headers) -> HttpSession | Response:
        session_id = headers.get(SESSION_HEADER)
        if session_id is None:
            return refuse(400, INVALID_REQUEST, _MISSING_SESSION)
        return self._store.find(session_id, scope[PRINCIPAL]) or refuse(404, INVALID_REQUEST, _UNKNOWN_SESSION)

    async def _without_session(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """The header tells what is called: a body that says something else is refused."""
        principal = scope[PRINCIPAL]
        if headers.get(_METHOD_HEADER) != "tools/call":
            await self._leases.answer(principal, scope, receive, send)
            return
        call = take_up((self._calls.of_principal, principal))
        if call is None:
            await refuse_busy(None)(scope, receive, send)
            return
        try:
            await self._leases.answer(principal, scope, receive, send)
        finally:
            call.settle(answering=False, running=False)

    async def _in_session(
        self, session: HttpSession, message: JSONRPCMessage, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not isinstance(message, JSONRPCRequest):
            await session.answer(scope, receive, send)
            return
        if session.is_answering(message.id):
            text = "Invalid request: a request with this id is being answered"
            await refuse(400, INVALID_REQUEST, text, request_id=message.id)(scope, receive, send)
            return
        wanted: list[tuple[CallLimit, Hashable]] = []
        if message.method == "tools/call":
            wanted.append((self._calls.of_session, session.id))
            if session.principal is not None:
                wanted.append((self._calls.of_principal, session.principal))
        call = take_up(*wanted)
        if call is None:
            await refuse_busy(message.id)(scope, receive, send)
        else:
            await session.answer_request(message, call, scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            session = await self._store.open(scope[PRINCIPAL])
        except SessionLimit:
            text = f"MCP session limit reached ({self._store.max_sessions})"
            await refuse(503, SERVER_BUSY, text, headers={"Retry-After": "5"})(scope, receive, send)
            return
        welcomed = False

        async def watch(message: Message) -> None:
            nonlocal welcomed
            welcomed = welcomed or (message["type"] == "http.response.start" and message["status"] < 400)
            await send(message)

        try:
            await session.answer(scope, receive, watch)
        finally:
            if not welcomed:  # refused, or cancelled before the client learned the id: nobody will come back
                session.end()


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _is_hello(message: JSONRPCMessage) -> bool:
    return isinstance(message, JSONRPCRequest) and message.method == "initialize"
