"""`abx mcp install`: one command for each client."""

from typing import get_args

import click

from cloche_cli.clients.table import Scope, clients
from cloche_cli.lazy import command
from cloche_cli.parameters import OneOf, Text
from cloche_cli.tool_choice import tool_options


def _install(**given: object) -> int:
    from cloche_cli.installing import InstallOptions, run

    return run(InstallOptions(**given))  # pyright: ignore[reportArgumentType] - click's types are those of the options


install = command(
    "install",
    _install,
    help=(
        "Put the sandbox server into the configuration of an MCP client, beside whatever it has.\n\n"
        "Nothing else in the file changes, comments included; a file that is broken is left as it is. The bytes from "
        "before are kept, and --remove brings them back. Installing again replaces the entry.\n\n"
        "Cursor and Claude Desktop get the API key, if there is one; no other file does."
    ),
    examples=[
        "abx mcp install --target cursor",
        "abx mcp install --target vscode --read-only",
        "abx mcp install --target claude-code --scope project --dry-run",
        "abx mcp install --target codex --transport http --url https://mcp.example.org/mcp",
        "abx mcp install --target gemini --print",
        "abx mcp install --target cursor --remove",
    ],
    params=[
        click.Option(["--target"], type=OneOf(list(clients())), required=True, help="The client."),
        click.Option(
            ["--scope"],
            type=OneOf(get_args(Scope)),
            help="The file of this user or project. Default: the client's own.",
        ),
        click.Option(
            ["--transport"],
            type=OneOf(("stdio", "http")),
            default="stdio",
            show_default=True,
            help="The client starts the server, or connects to one that runs.",
        ),
        click.Option(["--url"], type=Text(2000), help="Where that one is, such as https://HOST/mcp."),
        click.Option(["-p", "--provider"], type=Text(40), help="Provider of its sandboxes."),
        *tool_options(),
        click.Option(["--dry-run"], is_flag=True, help="Show the change as a diff, and write nothing."),
        click.Option(["--remove"], is_flag=True, help="Take the entry out."),
        click.Option(
            ["--print", "show"], is_flag=True, help="Show entry, command and link to do it by hand, and write nothing."
        ),
    ],
)
