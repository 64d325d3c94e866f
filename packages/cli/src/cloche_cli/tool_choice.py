"""Which tools a server offers: the three options, and what they mean together."""

from typing import TYPE_CHECKING

import click

from cloche_cli.parameters import Text
from cloche_cli.usage import Refused

if TYPE_CHECKING:
    from cloche_contract.registry import ToolFilter


def tool_options() -> list[click.Option]:
    """`--tools`, `--exclude-tools` and `--read-only`."""
    return [
        click.Option(
            ["--tools"], type=Text(2000), multiple=True, metavar="NAME,…", help="Offer these tools only. Repeatable."
        ),
        click.Option(
            ["--exclude-tools"],
            type=Text(2000),
            multiple=True,
            metavar="NAME,…",
            help="Offer none of these; wins over --tools. Repeatable.",
        ),
        click.Option(["--read-only"], is_flag=True, help="Offer only tools that change nothing; wins over both."),
    ]


def chosen(tools: tuple[str, ...], exclude_tools: tuple[str, ...], read_only: bool) -> "ToolFilter":
    """The tools to offer, known to be some.

    Raises:
        Refused: a name is of no tool, or nothing is left.
    """
    from cloche_contract.registry import ToolFilter, UnusableFilter, published_set

    allowed = ToolFilter(names(tools) if tools else None, names(exclude_tools), read_only)
    try:
        allowed.apply(published_set("sandbox"))
    except UnusableFilter as error:
        raise Refused("enum", str(error), field="The choice of tools") from None
    return allowed


def names(words: tuple[str, ...]) -> tuple[str, ...]:
    """The names that stand in words with commas between them."""
    return tuple(name.strip() for word in words for name in word.split(",") if name.strip())
