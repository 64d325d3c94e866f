"""`abx docker`: look after the sandboxes of the Docker manager."""

import click

from cloche_cli.lazy import LazyGroup, command


def _doctor() -> int:
    from cloche_cli.docker import diagnose_docker

    return diagnose_docker()


def _prune(dry_run: bool) -> int:
    from cloche_cli.docker import prune_docker

    return prune_docker(dry_run=dry_run)


doctor = command(
    "doctor",
    _doctor,
    help=(
        "Try what sandboxes in a Docker Engine need and report each check, with the fix where one fails. Makes nothing "
        "in the engine. Exit status 0 when sandboxes can be made, else 1."
    ),
    examples=["abx docker doctor", "abx --json docker doctor"],
)

prune = command(
    "prune",
    _prune,
    help=(
        "Remove what killed managers left in the Docker Engine, and copies of workspaces that no sandbox uses. Never "
        "anything without the label of this manager, and nothing that is in use."
    ),
    examples=["abx docker prune --dry-run", "abx docker prune"],
    params=[click.Option(["-n", "--dry-run"], is_flag=True, help="Only tell what would be removed.")],
)

docker = LazyGroup(
    "docker",
    help="Look after the sandboxes that are made in a Docker Engine. Needs the extra cloche[docker].",
    examples=["abx docker doctor", "abx docker prune --dry-run"],
    lazy={
        "doctor": "cloche_cli.commands.docker:doctor",
        "prune": "cloche_cli.commands.docker:prune",
    },
)
