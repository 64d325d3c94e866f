"""`abx mcp start --transport http`: settings and options to a listening server."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloche_cli.running_servers import noted, notes_folder
from cloche_cli.stdio_server import DEFAULT_TEMPLATE
from cloche_cli.usage import Refused
from cloche_contract.registry import ToolFilter
from cloche_mcp_http import OAuth, create_mcp_app, listed, oauth_of, read_token_file, tokens_of
from cloche_mcp_http.addresses import LOOPBACK_NAMES
from cloche_mcp_http.oauth_variables import OAUTH_VARIABLES
from cloche_mcp_http.server import AddressRefused, bind
from cloche_mcp_http.server import serve as serve_app
from cloche_mcp_stdio.log import log_to_stderr
from cloche_sdk import Settings, load_settings


@dataclass(frozen=True)
class HttpRequest:
    """What was asked for on the command line."""

    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    auth_token_file: str | None
    session_ttl_s: int
    max_sessions: int
    server_id: str | None
    oauth: Mapping[str, str]
    """What the options say of an authorization server, by the variable that says the same."""
    tools: ToolFilter


def serve(request: HttpRequest) -> int:
    """Serve the sandbox tools until a signal arrives.

    Raises:
        ConfigurationInvalid: a setting, or what it names, cannot be used.
        Refused: the address cannot be served on.
    """
    settings = load_settings()
    log_to_stderr(settings.text("log_level") or "")
    tokens = _tokens(request, settings.text("mcp_auth_token"), settings.text("mcp_auth_token_file"))
    oauth = _oauth(request, settings)
    app = create_mcp_app(
        tokens=tokens,
        oauth=oauth,
        allowed_hosts=_hosts(request, listed(settings.text("mcp_allowed_hosts"))),
        allowed_origins=(*request.allowed_origins, *listed(settings.text("mcp_allowed_origins"))),
        template=settings.text("default_template") or DEFAULT_TEMPLATE,
        session_ttl_seconds=request.session_ttl_s,
        max_sessions=request.max_sessions,
        server_id=request.server_id,
        tools=request.tools,
    )
    try:
        listener = bind(request.host, request.port, guarded=tokens is not None or oauth is not None)
    except AddressRefused as error:
        raise Refused("address", str(error), field="--host and --port:") from error
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"
    with noted(notes_folder(os.environ, settings.text("mcp_runtime_dir")), "http", url, time.time()):
        return serve_app(app, listener)


def _tokens(request: HttpRequest, token: str | None, file: str | None) -> Mapping[str, str] | None:
    """The tokens of the option, of the environment, and of the files below the home, in this order of rank."""
    if request.auth_token_file is not None:
        return read_token_file(Path(request.auth_token_file))
    found = tokens_of(os.environ)  # looks at blank values too, which settings take as not set
    if found is None and (token or file):
        named = {"ABX_MCP_AUTH_TOKEN": token, "ABX_MCP_AUTH_TOKEN_FILE": file}
        found = tokens_of({name: value for name, value in named.items() if value})
    return found


def _oauth(request: HttpRequest, settings: Settings) -> OAuth | None:
    """The authorization server of the options, of the environment, and of the files below the home."""
    found: dict[str, str] = {}
    for variable in OAUTH_VARIABLES:
        # Blank variables too: settings take them as not set, and protection must not end by a typing error.
        text = os.environ.get(variable, settings.text(variable.removeprefix("ABX_").lower()))
        if text is not None:
            found[variable] = text
    return oauth_of({**found, **request.oauth})


def _hosts(request: HttpRequest, configured: tuple[str, ...]) -> tuple[str, ...]:
    own = f"[{request.host}]" if ":" in request.host else request.host
    wildcard = request.host in {"0.0.0.0", "::", ""}
    return (*LOOPBACK_NAMES, *(() if wildcard else (own,)), *request.allowed_hosts, *configured)
