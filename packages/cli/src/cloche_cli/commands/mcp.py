"""`abx mcp`: serve sandboxes to an agent."""

import click

from cloche_cli.lazy import LazyGroup, command


def _start() -> int:
    from cloche_cli.stdio_server import serve

    return serve()


start = command(
    "start",
    _start,
    help=(
        "Serve the sandbox tools over MCP on stdin and stdout, until stdin ends.\n\n"
        "Sandboxes that the session made are killed at its end. The default template is "
        "code-interpreter-v1; ABX_DEFAULT_TEMPLATE overrides it. Nothing but protocol messages is "
        "written to stdout."
    ),
    examples=[
        "abx mcp start",
        "ABX_DEFAULT_TEMPLATE=base abx mcp start",
        "claude mcp add sandbox -- abx mcp start",
    ],
)

mcp: click.Group = LazyGroup(
    "mcp",
    help="Serve sandboxes to an agent over the Model Context Protocol.",
    examples=["abx mcp start"],
    lazy={"start": "cloche_cli.commands.mcp:start"},
)
