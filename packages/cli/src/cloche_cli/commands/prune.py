"""`abx prune`: remove what is dead."""

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import Text, WholeNumber


def _prune(dry_run: bool, logs_older_than: int, provider: str | None) -> int:
    from cloche_cli.pruning import prune_leftovers

    return prune_leftovers(provider, dry_run=dry_run, logs_older_than_days=logs_older_than)


prune = command(
    "prune",
    _prune,
    help=(
        "Remove what dead sandboxes, broken starts and older versions left on this machine: state, sockets, control "
        "groups, unused templates, old logs. Never anything that is alive, and nothing that is not from here. "
        "Safe at any time, also while sandboxes are made."
    ),
    examples=["abx prune --dry-run", "abx prune", "abx --json prune --logs-older-than 0"],
    params=[
        click.Option(["-n", "--dry-run"], is_flag=True, help="Only tell what would be removed."),
        click.Option(
            ["--logs-older-than"],
            type=WholeNumber(0, 365),
            default=7,
            show_default=True,
            help="Days that logs of ended sandboxes are kept.",
        ),
        click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local."),
    ],
)
