"""`abx doctor`: can this machine run sandboxes, and if not, what is missing."""

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import Text


def _doctor(provider: str | None) -> int:
    from cloche_cli.diagnosis import diagnose

    return diagnose(provider)


doctor = command(
    "doctor",
    _doctor,
    help=(
        "Try what the provider needs and report each check, with cause and fix where one fails. "
        "Exit status 0 when sandboxes can be made, else 1."
    ),
    examples=["abx doctor", "abx doctor --provider local", "abx --json doctor"],
    params=[click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local.")],
)
