"""`abx provider`: what makes sandboxes."""

import click

from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import Text


def _list() -> int:
    from cloche_cli.providing import list_providers

    return list_providers()


def _info(name: str) -> int:
    from cloche_cli.providing import show_provider

    return show_provider(name)


def _doctor(name: str | None) -> int:
    from cloche_cli.diagnosis import diagnose

    return diagnose(name)


list_ = command(
    "list",
    _list,
    help="List the providers that are installed.",
    examples=["abx provider list", "abx --json provider list"],
)

info = command(
    "info",
    _info,
    help="Show what a provider can do on this machine: its abilities, and which limits hold.",
    examples=["abx provider info local"],
    params=[click.Argument(["name"], type=Text(40), metavar="NAME")],
)

doctor = command(
    "doctor",
    _doctor,
    help="Try what a provider needs, as `abx doctor` does. Exit status 0 when sandboxes can be made, else 1.",
    examples=["abx provider doctor", "abx provider doctor local"],
    params=[click.Argument(["name"], type=Text(40), required=False, metavar="[NAME]")],
)

provider = LazyGroup(
    "provider",
    help="Look at what makes sandboxes.",
    examples=["abx provider list", "abx provider info local"],
    lazy={
        "list": "cloche_cli.commands.provider:list_",
        "info": "cloche_cli.commands.provider:info",
        "doctor": "cloche_cli.commands.provider:doctor",
    },
)
