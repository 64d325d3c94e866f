"""`abx mcp status`, `stop` and `tools`."""

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import Text, WholeNumber
from cloche_cli.tool_choice import chosen, tool_options
from cloche_cli.usage import Refused


def _status() -> int:
    from cloche_cli.state_of_mcp import show_status

    return show_status()


def _stop(pids: tuple[int, ...], every: bool) -> int:
    from cloche_cli.stopping import stop_servers

    if pids and every:
        raise Refused("exclusive", "cannot stand beside --all.", field="PID")
    return stop_servers(pids, every=every)


def _tools(name: str | None, tools: tuple[str, ...], exclude_tools: tuple[str, ...], read_only: bool) -> int:
    from cloche_cli.tool_listing import list_tools, show_tool

    allowed = chosen(tools, exclude_tools, read_only)
    return list_tools(allowed) if name is None else show_tool(name)


status = command(
    "status",
    _status,
    help=(
        "Show the server and its tools, whether an API key is configured, which clients have the server and whether it "
        "starts there, the servers that run, and whether the provider can make sandboxes.\n\n"
        "What a project's file would start is started only if it is this program."
    ),
    examples=["abx mcp status", "abx --json mcp status"],
)

stop = command(
    "stop",
    _stop,
    help=(
        "End a server that `abx mcp start` runs, and wait for its end. Its sandboxes are destroyed with it, but for "
        "those with background tasks. Without PID: the one that runs."
    ),
    examples=["abx mcp stop", "abx mcp stop 4711", "abx mcp stop --all"],
    params=[
        click.Argument(["pids"], type=WholeNumber(1, 2**31 - 1), nargs=-1, metavar="[PID]..."),
        click.Option(["--all", "every"], is_flag=True, help="End all of this user."),
    ],
)

tools = command(
    "tools",
    _tools,
    help="List the tools that the server offers, or show one: its arguments, its result, and an example of a call.",
    examples=["abx mcp tools", "abx mcp tools --read-only", "abx mcp tools run_code"],
    params=[click.Argument(["name"], type=Text(128), required=False, metavar="[NAME]"), *tool_options()],
)
