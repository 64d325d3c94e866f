"""`asgi_app`: the application of a deployment, configured by the environment alone.

It is made at its first use, so that importing this module needs no setting. A deployment is on
a network: without a token it refuses to start.

Source: seed 001, part 7; checklist 203, 211, 301.
"""

import os
from collections.abc import Mapping
from functools import cache

from starlette.types import ASGIApp, Receive, Scope, Send

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http.addresses import ANY
from cloche_mcp_http.app import DEFAULT_TEMPLATE, HOSTS_VARIABLE, ORIGINS_VARIABLE, create_mcp_app
from cloche_mcp_http.oauth_settings import oauth_of
from cloche_mcp_http.principals import TOKEN_VARIABLE, tokens_of


def app_from_environ(environ: Mapping[str, str]) -> ASGIApp:
    """Make the application that these variables configure.

    Raises:
        ConfigurationInvalid: neither ABX_MCP_AUTH_TOKEN nor ABX_MCP_OAUTH_ISSUER is set, or a setting is wrong.
    """
    tokens, oauth = tokens_of(environ), oauth_of(environ)
    if tokens is None and oauth is None:
        raise ConfigurationInvalid(setting=TOKEN_VARIABLE)
    # The platform in front chooses the name, and every request needs a token: any Host is answered
    # unless the deployment names its own.
    hosts = listed(environ.get(HOSTS_VARIABLE)) or (ANY,)
    return create_mcp_app(
        tokens=tokens,
        oauth=oauth,
        allowed_hosts=hosts,
        allowed_origins=listed(environ.get(ORIGINS_VARIABLE)),
        template=(environ.get("ABX_DEFAULT_TEMPLATE") or "").strip() or DEFAULT_TEMPLATE,
        environ=environ,
    )


def listed(text: str | None) -> tuple[str, ...]:
    """The entries of a setting that lists several, with commas between them."""
    return tuple(part for part in map(str.strip, (text or "").split(",")) if part)


@cache
def _app() -> ASGIApp:
    return app_from_environ(os.environ)


async def asgi_app(scope: Scope, receive: Receive, send: Send) -> None:
    """The application of this process's environment."""
    try:
        app = _app()
    except ConfigurationInvalid as error:
        if scope["type"] != "lifespan":
            raise
        # An exception would read as "has no lifespan": the server would start, and fail at each request.
        told = f"{error.text} (setting: {error.details['setting']})"
        await receive()
        await send({"type": "lifespan.startup.failed", "message": told})
        return
    await app(scope, receive, send)
