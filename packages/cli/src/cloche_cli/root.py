"""The command `abx` itself: its options and the list of its commands."""

import click

from cloche_cli import __version__
from cloche_cli.invocation import Invocation, verbose_option
from cloche_cli.lazy import LazyGroup


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        invocation = ctx.ensure_object(Invocation)
        if invocation.json_seen:
            invocation.emit({"version": __version__})
        else:
            invocation.write(f"abx {__version__}\n")
        ctx.exit()


abx = LazyGroup(
    "abx",
    help=(
        "Run code, commands and files in isolated sandboxes.\n\n"
        "Exit status: 0 ok, 1 other failure, 2 usage or configuration, 3 authentication, 4 not found, "
        "5 timeout, 6 quota, 130 interrupted. `abx run` and `abx exec` end with the status of the program."
    ),
    examples=[
        "abx run 'print(6 * 7)'",
        "abx exec -- uname -a",
        "abx sandbox list",
        "abx doctor",
        "abx mcp start",
    ],
    lazy={
        "run": "cloche_cli.commands.run:run",
        "exec": "cloche_cli.commands.exec:exec_",
        "sandbox": "cloche_cli.commands.sandbox:sandbox",
        "task": "cloche_cli.commands.task:task",
        "template": "cloche_cli.commands.template:template",
        "mcp": "cloche_cli.commands.mcp:mcp",
        "docker": "cloche_cli.commands.docker:docker",
        "audit": "cloche_cli.commands.audit:audit",
        "prune": "cloche_cli.commands.prune:prune",
        "config": "cloche_cli.commands.config:config",
        "provider": "cloche_cli.commands.provider:provider",
        "doctor": "cloche_cli.commands.doctor:doctor",
        "completion": "cloche_cli.commands.completion:completion",
    },
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version and end.",
        ),
        verbose_option(),
    ],
)
