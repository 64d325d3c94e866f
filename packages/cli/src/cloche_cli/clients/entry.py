"""Our entry in the words of one client: what its file holds, its own command that adds it, and its link."""

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from cloche_cli.clients.table import Client, Scope

NAME: Final = "agent-sandbox"
"""The name of our entry everywhere. Source: seed 001."""
DESCRIPTION: Final = "Isolated sandboxes that run code, commands and files"
KEY_VARIABLE: Final = "ABX_SANDBOX_API_KEY"
TOKEN_VARIABLE: Final = "ABX_MCP_AUTH_TOKEN"


@dataclass(frozen=True)
class Server:
    """What a client is to reach: a command that it starts, or a URL."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


def entry(client: Client, scope: Scope, server: Server) -> dict[str, Any]:
    """The entry for the client's file. A key or token stands in it only where the table allows one."""
    holds_secrets = scope in client.secrets
    if server.url is None:
        secret = {KEY_VARIABLE: server.key} if server.key and holds_secrets else {}
        return _filled(client.stdio, server, {"$env": {**server.env, **secret}})
    assert client.http is not None
    token = None if server.token is None else server.token if holds_secrets else client.reference
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    variable = TOKEN_VARIABLE if server.token else ""
    return _filled(client.http, server, {"$headers": headers, "$token_variable": variable})


def public_entry(client: Client, scope: Scope, server: Server) -> dict[str, Any]:
    """The same without a secret, to be shown: the client's reference stands where a token would."""
    return entry(replace(client, secrets=()), scope, replace(server, key=None))


def add_command(client: Client, scope: Scope, server: Server) -> str | None:
    """The client's own command line that adds the entry, without a secret; None where it has none."""
    words = (client.add if server.url is None else client.add_http or client.add).get(scope)
    if words is None:
        return None
    return shlex.join(_words(client, scope, server, words))


def link(client: Client, scope: Scope, server: Server) -> str | None:
    """An address that makes the client ask its user to add the entry, without a secret; None where it has none."""
    if client.link is None or (server.url is not None and "{command}" in client.link):
        return None
    public = public_entry(client, scope, server)
    return client.link.format(
        name=quote(NAME),
        base64=quote(base64.b64encode(_compact(public).encode()).decode(), safe=""),
        named_url=quote(_compact({"name": NAME, **public}), safe=""),
        command=quote(server.command, safe=""),
        arguments="".join(f"arg={quote(word, safe='')}&" for word in server.args),
        description=quote(DESCRIPTION),
    )


def _filled(shape: Mapping[str, Any], server: Server, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The shape with its words filled in; what is empty then is left out."""
    values: dict[str, Any] = {
        "$name": NAME,
        "$description": DESCRIPTION,
        "$command": server.command,
        "$args": list(server.args),
        "$command_line": [server.command, *server.args],
        "$url": server.url,
        **extra,
    }
    filled = {key: values.get(word, word) if isinstance(word, str) else word for key, word in shape.items()}
    return {key: value for key, value in filled.items() if value not in ({}, "", None)}


def _words(client: Client, scope: Scope, server: Server, words: Sequence[str]) -> list[str]:
    public = public_entry(client, scope, server)
    token = f"Authorization: Bearer {client.reference}" if server.token and client.reference else None
    found: list[str] = []
    for word in words:
        kind, _, option = word.partition(":")
        match kind:
            case "$args":
                found += server.args
            case "$env":
                found += [part for name, value in server.env.items() for part in (option, f"{name}={value}")]
            case "$header":
                found += [option, token] if token else []
            case "$token_variable":
                found += [option, TOKEN_VARIABLE] if server.token else []
            case "$named_json":
                found.append(_compact({"name": NAME, **public}))
            case _:
                fixed = {"$name": NAME, "$command": server.command, "$url": server.url or ""}
                found.append(fixed.get(word, word))
    return found


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
