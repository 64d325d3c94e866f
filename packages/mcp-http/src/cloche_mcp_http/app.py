"""`create_mcp_app`: the ASGI application that serves one tool set over Streamable HTTP.

Source: seed 001, part 7; checklist 140, 210, 212, 296 to 302; systems facts 3.3.
"""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial

from mcp_types.version import LATEST_HANDSHAKE_VERSION
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.kernel.doors import IdSource, RandomIds
from cloche_contract.kernel.registry import published_set
from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_contract.serving import MAX_MESSAGE_BYTES, ToolFilter, ToolServer, installed_session
from cloche_mcp_http.addresses import ANY, LOOPBACK_NAMES, AddressInvalid, AllowedHosts, AllowedOrigins
from cloche_mcp_http.calls import CallLimit
from cloche_mcp_http.commons import ServerCommons
from cloche_mcp_http.endpoint import BodyLimits, CallLimits, McpEndpoint
from cloche_mcp_http.guard import Guard, Guarded
from cloche_mcp_http.leases import Leases
from cloche_mcp_http.metrics import Metrics
from cloche_mcp_http.oauth import OAuth, OAuthCallers
from cloche_mcp_http.oauth_variables import ISSUER_VARIABLE
from cloche_mcp_http.principals import SINGLE_PRINCIPAL, TOKEN_VARIABLE, BearerTokens, Callers
from cloche_mcp_http.store import ServerIds, SessionStore

DEFAULT_TEMPLATE = "base"
SESSION_TTL_S = 3600.0
MAX_SESSIONS = 100
BODY_WITHIN_S = 30.0
SANDBOXES_PER_PRINCIPAL = 20
CALLS_PER_SESSION = 16
CALLS_PER_PRINCIPAL = 64
HOSTS_VARIABLE = "ABX_MCP_ALLOWED_HOSTS"
ORIGINS_VARIABLE = "ABX_MCP_ALLOWED_ORIGINS"


@dataclass(frozen=True)
class Limits:
    """What clients may take of a server.

    Attributes:
        max_body_bytes: how large one message may be.
        body_within_s: how long one message may take to arrive.
        calls_per_session: how many calls of a session may run at the same time.
        calls_per_principal: how many calls of a principal may, over all of its sessions.
        sandboxes_per_principal: how many sandboxes a client without a session may have made that still live;
            without principals, all of these clients together.
    """

    max_body_bytes: int = MAX_MESSAGE_BYTES
    body_within_s: float = BODY_WITHIN_S
    calls_per_session: int = CALLS_PER_SESSION
    calls_per_principal: int = CALLS_PER_PRINCIPAL
    sandboxes_per_principal: int = SANDBOXES_PER_PRINCIPAL

    def __post_init__(self) -> None:
        for limit in fields(self):
            _require_positive(limit.name, getattr(self, limit.name))


def _require_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigurationInvalid(setting=name)


def create_mcp_app(
    auth_token: str | None = None,
    sandbox_api_key: str | None = None,
    sandbox_base_url: str | None = None,
    sandbox_domain: str | None = None,
    template: str = DEFAULT_TEMPLATE,
    session_ttl_seconds: float = SESSION_TTL_S,
    max_sessions: int = MAX_SESSIONS,
    allowed_origins: Sequence[str] = (),
    *,
    allowed_hosts: Sequence[str] | None = None,
    tokens: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    provider: str | None = None,
    environ: Mapping[str, str] | None = None,
    toolset: str = "sandbox",
    ids: IdSource | None = None,
    server_id: str | None = None,
    tools: ToolFilter | None = None,
    oauth: OAuth | None = None,
) -> Starlette:
    """Return the application. Serve it with one process: sessions live in it.

    Args:
        auth_token: the one bearer token that every request needs; None turns authentication off. Never a
            token of the sandbox platform.
        sandbox_api_key, sandbox_base_url, sandbox_domain: the platform, as `ABX_SANDBOX_*` would say it.
        template: template of sandboxes that are created without one.
        session_ttl_seconds: how long a session without a call stays.
        max_sessions: how many sessions may be open.
        allowed_origins: pages that may call, besides those of this machine: `https://app.example.org`.
        allowed_hosts: Host headers that are answered: names, alone or with a port. Left out, those of this
            machine. `*` answers to all, and needs a token.
        tokens: several tokens, by the name of the principal that each stands for, beside `auth_token`.
        limits: everything else that is limited.
        provider: provider of sandboxes that are created without one.
        environ: settings; default: the environment of the process.
        toolset: a tool set that an installed distribution provides.
        ids: where session ids come from.
        server_id: name of this server among several, at the start of its session ids: letters and digits.
        tools: which tools of the set are offered; default: all.
        oauth: access tokens of an authorization server, instead of `auth_token` and `tokens`.

    Raises:
        UnusableFilter: the choice of tools names an unknown one, or leaves none.
        ConfigurationInvalid: a token is blank, or a limit, host or origin is none.
    """
    platform = {
        "ABX_SANDBOX_API_KEY": sandbox_api_key,
        "ABX_SANDBOX_BASE_URL": sandbox_base_url,
        "ABX_SANDBOX_DOMAIN": sandbox_domain,
    }
    settings = dict(os.environ if environ is None else environ)
    settings.update({name: value for name, value in platform.items() if value is not None})
    commons = ServerCommons()
    options = ToolSetOptions(template=template, provider=provider, environ=settings, commons=commons)
    bounds = limits or Limits()
    _require_positive("session_ttl_seconds", session_ttl_seconds)
    _require_positive("max_sessions", max_sessions)
    allowed = tools or ToolFilter()
    allowed.apply(published_set(toolset))
    metrics = Metrics(published_set(toolset).tool_names)
    store = SessionStore(
        partial(_open_tools, toolset, allowed, metrics, options),
        idle_ttl_s=session_ttl_seconds,
        max_sessions=max_sessions,
        ids=_session_ids(server_id, ids or RandomIds()),
    )
    without_session = replace(options, leases=bounds.sandboxes_per_principal)
    leases = Leases(
        partial(_open_tools, toolset, allowed, metrics, without_session), max_body_bytes=bounds.max_body_bytes
    )
    calls = CallLimits(CallLimit(bounds.calls_per_session), CallLimit(bounds.calls_per_principal))
    endpoint = McpEndpoint(store, leases, BodyLimits(bounds.max_body_bytes, bounds.body_within_s), calls)
    metrics.count_sessions(lambda: len(store))
    callers = _callers(auth_token, tokens, oauth)
    guard = _guard(callers, allowed_hosts, allowed_origins)
    routes = [Route("/metrics", endpoint=Guarded(guard, metrics))]
    routes += [Route(path, endpoint=metrics.counting(Guarded(guard, endpoint))) for path in ("/mcp", "/mcp/")]
    routes += callers.routes() if isinstance(callers, OAuthCallers) else []
    return _assemble(store, leases, commons, routes, guarded=callers is not None)


def _session_ids(server_id: str | None, ids: IdSource) -> IdSource:
    return ids if server_id is None else ServerIds(server_id, ids)


def _callers(auth_token: str | None, tokens: Mapping[str, str] | None, oauth: OAuth | None) -> Callers | None:
    named = dict(tokens or {})
    if auth_token is not None:
        if SINGLE_PRINCIPAL in named:
            raise ConfigurationInvalid(setting=TOKEN_VARIABLE)
        named[SINGLE_PRINCIPAL] = auth_token
    if auth_token is None and tokens is None:
        return None if oauth is None else OAuthCallers(oauth)
    if oauth is not None:
        raise ConfigurationInvalid(setting=f"{TOKEN_VARIABLE}, {ISSUER_VARIABLE}")
    return BearerTokens(named)


def _guard(callers: Callers | None, allowed_hosts: Sequence[str] | None, allowed_origins: Sequence[str]) -> Guard:
    hosts = LOOPBACK_NAMES if allowed_hosts is None else allowed_hosts
    if ANY in hosts and callers is None:
        raise ConfigurationInvalid(setting=HOSTS_VARIABLE)
    try:
        return Guard(AllowedHosts(hosts), AllowedOrigins(allowed_origins), callers)
    except AddressInvalid as error:
        raise ConfigurationInvalid(setting=f"{HOSTS_VARIABLE}, {ORIGINS_VARIABLE}") from error


def _open_tools(
    toolset: str, tools: ToolFilter, metrics: Metrics, options: ToolSetOptions, principal: str | None
) -> ToolServer:
    made = ToolServer(toolset, installed_session(toolset, replace(options, principal=principal)), tools=tools)
    made.server.middleware.append(metrics.count_call)
    return made


def _assemble(
    store: SessionStore, leases: Leases, commons: ServerCommons, routes: Sequence[Route], *, guarded: bool
) -> Starlette:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None, None]:
        try:
            # Both end side by side: what each owns has the same few seconds.
            async with leases.running(), store.running():
                try:
                    yield
                finally:
                    begin_close()
        finally:
            await commons.aclose()

    def begin_close() -> None:
        commons.ending = True
        store.begin_close()
        leases.begin_close()

    async def ready(_request: Request) -> Response:
        if store.accepting:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "ending"}, status_code=503)

    app = Starlette(
        routes=[
            *routes,
            Route("/health", endpoint=_health, methods=["GET"]),
            Route("/ready", endpoint=ready, methods=["GET"]),
        ],
        lifespan=lifespan,
    )
    app.state.begin_close = begin_close
    app.state.guarded = guarded
    return app


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "protocol": LATEST_HANDSHAKE_VERSION})
