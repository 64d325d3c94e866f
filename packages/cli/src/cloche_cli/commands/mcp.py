"""`abx mcp`: serve sandboxes to an agent."""

import os

import click

from cloche_cli.extras import require
from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import OneOf, Text, WholeNumber
from cloche_cli.tool_choice import chosen, tool_options
from cloche_cli.usage import Refused

TRANSPORTS = ("stdio", "http")
_HTTP_ONLY = (
    "host",
    "port",
    "allowed_host",
    "allowed_origin",
    "auth_token_file",
    "oauth_issuer",
    "oauth_audience",
    "oauth_resource",
    "oauth_scope",
    "oauth_jwks_url",
    "session_ttl",
    "max_sessions",
    "server_id",
    "workers",
)


def _start(
    transport: str,
    provider: str | None,
    host: str,
    port: int,
    allowed_host: tuple[str, ...],
    allowed_origin: tuple[str, ...],
    auth_token_file: str | None,
    oauth_issuer: str | None,
    oauth_audience: str | None,
    oauth_resource: str | None,
    oauth_scope: tuple[str, ...],
    oauth_jwks_url: str | None,
    session_ttl: int,
    max_sessions: int,
    server_id: str | None,
    workers: int,
    tools: tuple[str, ...],
    exclude_tools: tuple[str, ...],
    read_only: bool,
) -> int:
    if transport == "stdio":
        _refuse_http_options()
    require("mcp", "cloche_mcp_stdio", "cloche_mcp_http")
    if provider is not None:
        # This process is the server and nothing else: its settings are read later, from its environment.
        os.environ["ABX_PROVIDER"] = provider
    allowed = chosen(tools, exclude_tools, read_only)
    if transport == "stdio":
        from cloche_cli.stdio_server import serve

        return serve(allowed)
    if workers > 1:
        raise Refused(
            "single_process",
            "must be 1: sessions live in one process. Start several servers, each with a port and a "
            "--server-id, and let a proxy route by Mcp-Session-Id.",
            field="--workers",
        )
    from cloche_cli.http_server import HttpRequest
    from cloche_cli.http_server import serve as serve_http

    return serve_http(
        HttpRequest(
            host=host,
            port=port,
            allowed_hosts=allowed_host,
            allowed_origins=allowed_origin,
            auth_token_file=auth_token_file,
            session_ttl_s=session_ttl,
            max_sessions=max_sessions,
            server_id=server_id,
            oauth=_oauth(oauth_issuer, oauth_audience, oauth_resource, ",".join(oauth_scope) or None, oauth_jwks_url),
            tools=allowed,
        )
    )


def _oauth(
    issuer: str | None, audience: str | None, resource: str | None, scopes: str | None, jwks_url: str | None
) -> dict[str, str]:
    """What the options say of the authorization server, by the names of the settings."""
    said = {
        "ABX_MCP_OAUTH_ISSUER": issuer,
        "ABX_MCP_OAUTH_AUDIENCE": audience,
        "ABX_MCP_OAUTH_RESOURCE": resource,
        "ABX_MCP_OAUTH_SCOPES": scopes,
        "ABX_MCP_OAUTH_JWKS_URL": jwks_url,
    }
    return {variable: text for variable, text in said.items() if text is not None}


def _refuse_http_options() -> None:
    """An option that would do nothing is refused: whoever gives a token file means to be protected by it."""
    context = click.get_current_context()
    for name in _HTTP_ONLY:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise Refused("transport", "needs --transport http.", field=option)


start = command(
    "start",
    _start,
    help=(
        "Serve the sandbox tools over MCP, on stdin and stdout until stdin ends, or over HTTP until a signal.\n\n"
        "Sandboxes that a session made are killed at its end. The default template is "
        "code-interpreter-v1; ABX_DEFAULT_TEMPLATE overrides it. On stdio nothing but protocol messages is "
        "written to stdout.\n\n"
        "Over HTTP, clients connect to http://HOST:PORT/mcp. With ABX_MCP_AUTH_TOKEN, or a file of tokens, they "
        "need a bearer token; with --oauth-issuer and --oauth-audience, an access token of that authorization "
        "server: a JWT, or an opaque one that ABX_MCP_OAUTH_INTROSPECTION_URL is asked about. Without any of these "
        "only this machine may connect."
    ),
    examples=[
        "abx mcp start",
        "ABX_DEFAULT_TEMPLATE=base abx mcp start",
        "claude mcp add sandbox -- abx mcp start",
        "abx mcp start --provider docker",
        "abx mcp start --read-only",
        "abx mcp start --exclude-tools upload_file,download_file",
        "abx mcp start --transport http --port 8080",
        "ABX_MCP_AUTH_TOKEN=… abx mcp start --transport http --host 0.0.0.0 --allowed-host mcp.example.org",
        "abx mcp start --transport http --oauth-issuer https://login.example.org --oauth-audience https://x.example/mcp",
    ],
    params=[
        click.Option(
            ["--transport"], type=OneOf(TRANSPORTS), default="stdio", show_default=True, help="How clients connect."
        ),
        click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local."),
        click.Option(["--host"], type=Text(253), default="127.0.0.1", show_default=True, help="Address to listen on."),
        click.Option(
            ["--port"], type=WholeNumber(0, 65535), default=8080, show_default=True, help="0 takes a free one."
        ),
        click.Option(
            ["--allowed-host"],
            type=Text(260),
            multiple=True,
            metavar="NAME",
            help="A Host header to answer, alone or with :port; * answers all and needs a token. Repeatable.",
        ),
        click.Option(
            ["--allowed-origin"],
            type=Text(300),
            multiple=True,
            metavar="ORIGIN",
            help="A web page that may call, such as https://app.example.org. Repeatable.",
        ),
        click.Option(
            ["--auth-token-file"],
            type=Text(4096),
            metavar="FILE",
            help="Tokens, one NAME=TOKEN a line; each name is a principal. Default: ABX_MCP_AUTH_TOKEN(_FILE).",
        ),
        click.Option(
            ["--oauth-issuer"],
            type=Text(2048),
            metavar="URL",
            help="Authorization server whose access tokens are needed. Default: ABX_MCP_OAUTH_ISSUER.",
        ),
        click.Option(
            ["--oauth-audience"],
            type=Text(2048),
            metavar="URL",
            help="Audience of these tokens: the URL of /mcp as clients write it. Default: ABX_MCP_OAUTH_AUDIENCE.",
        ),
        click.Option(
            ["--oauth-resource"],
            type=Text(2048),
            metavar="URL",
            help="That URL, where the audience is another name. Default: ABX_MCP_OAUTH_RESOURCE.",
        ),
        click.Option(
            ["--oauth-scope"],
            type=Text(256),
            multiple=True,
            metavar="NAME",
            help="A scope that every token needs. Repeatable. Default: ABX_MCP_OAUTH_SCOPES.",
        ),
        click.Option(
            ["--oauth-jwks-url"],
            type=Text(2048),
            metavar="URL",
            help="Where the signing keys are, if the issuer publishes no metadata. Default: ABX_MCP_OAUTH_JWKS_URL.",
        ),
        click.Option(
            ["--session-ttl"],
            type=WholeNumber(1, 604800),
            default=3600,
            show_default=True,
            help="Seconds that a session without a call stays.",
        ),
        click.Option(
            ["--max-sessions"],
            type=WholeNumber(1, 10000),
            default=100,
            show_default=True,
            help="Sessions that may be open.",
        ),
        *tool_options(),
        click.Option(
            ["--server-id"],
            type=Text(32),
            metavar="NAME",
            help="Name of this server among several: its session ids start with it, so that a proxy can route by them.",
        ),
        click.Option(["--workers"], type=WholeNumber(1, 64), default=1, show_default=True, help="Only 1 works."),
    ],
)

mcp: click.Group = LazyGroup(
    "mcp",
    help="Serve sandboxes to an agent over the Model Context Protocol.",
    examples=["abx mcp install --target cursor", "abx mcp status", "abx mcp start", "abx mcp deploy --dry-run"],
    lazy={
        "install": "cloche_cli.commands.mcp_install:install",
        "status": "cloche_cli.commands.mcp_look:status",
        "tools": "cloche_cli.commands.mcp_look:tools",
        "start": "cloche_cli.commands.mcp:start",
        "stop": "cloche_cli.commands.mcp_look:stop",
        "deploy": "cloche_cli.commands.deploy:deploy",
    },
)
