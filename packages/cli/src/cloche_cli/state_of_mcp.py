"""`abx mcp status`: the server, the clients that have it, the servers that run, and the provider's health."""

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, Final

from cloche_cli.clients.look import Found, look
from cloche_cli.clients.places import Surroundings
from cloche_cli.invocation import Invocation, current
from cloche_cli.own_command import own_command
from cloche_cli.progress import working
from cloche_cli.running import run_async
from cloche_cli.running_servers import RunningServer, notes_folder, running_servers
from cloche_cli.sandboxes import opened
from cloche_cli.sizes import ago
from cloche_contract.errors import ClocheError
from cloche_contract.registry import published_set
from cloche_sdk import load_settings
from cloche_sdk.providers import Doors

_WORDS: Final = {
    "absent": "-",
    "broken": "file cannot be read",
    "remote": "remote",
    "missing": "command is missing",
    "starts": "starts",
    "fails": "does not start",
    "untried": "not tried",
}


def show_status() -> int:
    """Tell it all; status 0 whatever it is."""
    invocation = current()
    return run_async(lambda: _show(invocation))


async def _show(invocation: Invocation) -> int:
    settings = load_settings()
    published = published_set("sandbox")
    with working("Starting what the clients would start …", invocation):
        found = await look(Surroundings.own(), own_command())
        provider = await _provider()
    servers = running_servers(notes_folder(os.environ, settings.text("mcp_runtime_dir")))
    document: dict[str, Any] = {
        "name": published.server_name,
        "transport": "stdio",
        "tool_count": len(published.tools),
        "tools": list(published.tool_names),
        "api_key_configured": settings.text("sandbox_api_key") is not None,
        "provider": provider,
        "clients": [_client_document(one) for one in found],
        "running": [_server_document(server) for server in servers],
    }
    if invocation.json:
        invocation.emit(document)
    else:
        _print(document, found, servers, invocation)
    return 0


async def _provider() -> dict[str, Any]:
    doors = Doors()
    name = doors.default_provider
    try:
        async with opened(doors, None) as provider:
            report = await provider.probe()
    except ClocheError as error:
        return {"name": name, "usable": False, "problems": [error.text]}
    problems = [check.id for check in report.checks if check.required and not check.ok]
    return {"name": name, "usable": report.usable, "problems": problems}


def _client_document(found: Found) -> dict[str, Any]:
    return {
        "client": found.client.id,
        "scope": found.scope,
        "file": found.path,
        "installed": found.installed,
        "state": found.state,
        "command": found.command,
        "url": found.url,
        "problem": found.problem,
    }


def _server_document(server: RunningServer) -> dict[str, Any]:
    return {
        "pid": server.pid,
        "transport": server.transport,
        "url": server.url,
        "since": _since(server),
        "started_by": server.parent or None,
    }


def _since(server: RunningServer) -> str:
    return datetime.fromtimestamp(server.since, timezone.utc).isoformat(timespec="seconds")


def _print(
    document: dict[str, Any], found: Sequence[Found], servers: Sequence[RunningServer], invocation: Invocation
) -> None:
    from cloche_cli.tables import print_table

    provider = document["provider"]
    health = "can make sandboxes" if provider["usable"] else "cannot make sandboxes; `abx doctor` says why"
    facts = [
        ("server", document["name"]),
        ("transport", document["transport"]),
        ("tools", f"{document['tool_count']}: {', '.join(document['tools'])}"),
        ("API key", "configured" if document["api_key_configured"] else "not configured"),
        ("provider", f"{provider['name']}: {health}"),
    ]
    print_table(("MCP SERVER", ""), facts, empty="")
    invocation.write("\n")
    print_table(
        ("CLIENT", "SCOPE", "INSTALLED", "SERVER", "FILE"),
        [(one.client.title, one.scope, _yes(one.installed), _WORDS[one.state], one.file) for one in found],
        empty="",
    )
    invocation.write("\n")
    now = datetime.now(timezone.utc)
    print_table(
        ("PID", "TRANSPORT", "STARTED", "BY", "URL"),
        [
            (
                str(server.pid),
                server.transport,
                ago(_since(server), now),
                server.parent or "-",
                server.url or "-",
            )
            for server in servers
        ],
        empty="No server runs.",
    )
    for one in found:
        if one.problem:
            invocation.note(f"{one.file} {one.problem}")


def _yes(installed: bool | None) -> str:
    return "?" if installed is None else "yes" if installed else "no"
