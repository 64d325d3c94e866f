"""`abx docker`: look after the sandboxes of the Docker manager."""

import click

from cloche_cli.lazy import LazyGroup, command


def _doctor() -> int:
    from cloche_cli.docker import diagnose_docker

    return diagnose_docker()


def _prune(dry_run: bool) -> int:
    from cloche_cli.docker import prune_docker

    return prune_docker(dry_run=dry_run)


def _export(sandbox_id: str, dest: str | None, kind: str, dry_run: bool, include_host_executed: bool) -> int:
    from cloche_cli.docker_export import export_docker, list_docker_changes

    if dry_run:
        return list_docker_changes(sandbox_id)
    if dest is None:
        raise click.UsageError("Missing argument 'DEST': a directory, or an archive file. --dry-run needs none.")
    return export_docker(sandbox_id, dest, kind, host_executed=include_host_executed)


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

export = command(
    "export",
    _export,
    help=(
        "Write what was published in a sandbox into a directory of this machine, or into an archive: all of it or "
        "nothing. Files that tools of this machine would execute or obey, such as git hooks and editor settings, are "
        "left out and listed, unless they are asked for."
    ),
    examples=[
        "abx docker export sbox-0123456789ab --dry-run",
        "abx docker export sbox-0123456789ab ./project",
        "abx docker export sbox-0123456789ab work.tar.zst --format tar-zst",
    ],
    params=[
        click.Argument(["sandbox_id"], metavar="SANDBOX"),
        click.Argument(["dest"], required=False),
        click.Option(
            ["-f", "--format", "kind"],
            type=click.Choice(["dir", "tar", "tar-zst"]),
            default="dir",
            show_default=True,
            help="What to write.",
        ),
        click.Option(["-n", "--dry-run"], is_flag=True, help="Only list the changes; nothing is written."),
        click.Option(["--include-host-executed"], is_flag=True, help="Write also what this machine would execute."),
    ],
)

docker = LazyGroup(
    "docker",
    help="Look after the sandboxes that are made in a Docker Engine. Needs the extra cloche[docker].",
    examples=["abx docker doctor", "abx docker export sbox-0123456789ab --dry-run", "abx docker prune --dry-run"],
    lazy={
        "doctor": "cloche_cli.commands.docker:doctor",
        "export": "cloche_cli.commands.docker:export",
        "prune": "cloche_cli.commands.docker:prune",
    },
)
