"""`abx exec`: one shell command in a sandbox."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import Text, Variable, WholeNumber, allow_net_option
from cloche_cli.usage import Refused

_DEFAULT_TIMEOUT_S = 60


class Where(TypedDict):
    """Where a command runs, and with what."""

    sandbox: str | None
    cwd: str | None
    envs: Mapping[str, str]
    template: str | None
    provider: str | None
    egress: Sequence[str] | None


def _exec(
    words: tuple[str, ...],
    sandbox: str | None,
    cwd: str | None,
    env: tuple[tuple[str, str], ...],
    timeout: int | None,
    template: str | None,
    provider: str | None,
    allow_net: tuple[str, ...],
    tty: bool,
    stdin: bool,
) -> int:
    from cloche_cli.one_shot import ExecRequest, run_command, shell_line

    if sandbox is not None and allow_net:
        raise Refused(
            "exclusive", "is for a new sandbox; change a living one with abx sandbox network.", field="--allow-net"
        )
    where = Where(
        sandbox=sandbox, cwd=cwd, envs=dict(env), template=template, provider=provider, egress=allow_net or None
    )
    if tty and stdin:
        raise Refused("exclusive", "has stdin with it; leave out --stdin.", field="--tty")
    if tty:
        from cloche_cli.terminal import TerminalRequest, run_terminal

        return run_terminal(TerminalRequest(command=shell_line(words) if words else None, timeout_s=timeout, **where))
    if not words:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    return run_command(
        ExecRequest(command=shell_line(words), timeout_s=timeout or _DEFAULT_TIMEOUT_S, stdin=stdin, **where)
    )


exec_ = command(
    "exec",
    _exec,
    help=(
        "Run COMMAND with `sh -c` in a sandbox: the one that --sandbox names, else one of its own that is "
        "killed at the end.\n\n"
        "One word is taken as a line for the shell; several words are quoted so that each arrives as it is. "
        "The command's status becomes the exit status (5 if the timeout ended it). Its stdin is empty, unless --stdin "
        "passes on what is piped in.\n\n"
        "With --tty, COMMAND or else a login shell runs on a terminal that is this one: keys, also Ctrl+C, go to it."
    ),
    examples=[
        "abx exec -- uname -a",
        "abx exec 'ls / | wc -l'",
        "abx exec --sandbox sb-7f3a --cwd /tmp -- sh build.sh",
        "abx --json exec --env TOKEN -- ./upload",
        "sort data.csv | abx exec --stdin -- python3 -c 'import sys; print(len(sys.stdin.readlines()))'",
        "abx exec --tty --sandbox sb-7f3a",
    ],
    params=[
        click.Argument(["words"], nargs=-1, metavar="[--] COMMAND..."),
        click.Option(["-t", "--tty"], is_flag=True, help="Connect this terminal; without COMMAND, to a login shell."),
        click.Option(["-i", "--stdin"], is_flag=True, help="Pass on stdin, as it comes, to its end."),
        click.Option(["-s", "--sandbox"], type=Text(1024), help="Id of a living sandbox, plain or provider:id."),
        click.Option(["--cwd"], type=Text(4096), help="Folder to run in. Default: the template's."),
        click.Option(["-e", "--env"], type=Variable(), multiple=True, help="A variable for the command; repeatable."),
        click.Option(
            ["--timeout"],
            type=WholeNumber(1, 3600),
            help="Seconds that the command may run. Default: 60; with --tty, as long as it likes.",
        ),
        click.Option(["--template"], type=Text(128), help="Without --sandbox: what to make it from."),
        click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local."),
        allow_net_option(),
    ],
    words_follow=True,
)
