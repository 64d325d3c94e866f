"""What is checked of a request before anything of it is parsed: Host, Origin, and who calls.

Source: checklist 161, 300; security.md (DNS rebinding; "session id alone was authority").
"""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cloche_mcp_http.addresses import AllowedHosts, AllowedOrigins
from cloche_mcp_http.answers import SERVER_BUSY, UNAUTHORIZED, plain, refuse
from cloche_mcp_http.principals import Callers, CallersUnavailable, NotAuthorized

PRINCIPAL = "cloche.principal"
_UNKNOWN_HOST = (
    "This server does not answer to that Host header. Start it with --allowed-host NAME, or set "
    "ABX_MCP_ALLOWED_HOSTS, for the name that clients or the proxy in front use."
)


@dataclass(frozen=True)
class Guard:
    """The checks of one server. `callers` is None where everybody who reaches it may call."""

    hosts: AllowedHosts
    origins: AllowedOrigins
    callers: Callers | None

    async def check(self, scope: Scope) -> Response | None:
        """The answer to a request that is refused; None lets it pass, with its principal in the scope."""
        headers = Headers(scope=scope)
        if not self.hosts.accept(headers.get("host")):
            return plain(421, _UNKNOWN_HOST)
        if not self.origins.accept(headers.get("origin")):
            return plain(403, "Origin is not allowed")
        scope[PRINCIPAL] = None
        if self.callers is not None:
            try:
                scope[PRINCIPAL] = await self.callers.identify(headers.get("authorization"))
            except NotAuthorized as refused:
                said = "Unauthorized" if refused.status == 401 else "The token lacks a scope"
                return refuse(refused.status, UNAUTHORIZED, said, headers={"WWW-Authenticate": refused.challenge})
            except CallersUnavailable:
                said = "The keys of the authorization server could not be fetched; ask again soon"
                return refuse(503, SERVER_BUSY, said, headers={"Retry-After": "10"})
        return None


class Guarded:
    """An application behind a guard; it finds who calls in the scope."""

    def __init__(self, guard: Guard, app: ASGIApp) -> None:
        self._guard = guard
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await (await self._guard.check(scope) or self._app)(scope, receive, send)
