"""Parameter types whose refusals are static text.

Click's own echo what was typed.
"""

import os
import re
from collections.abc import Sequence

import click

from cloche_cli.usage import Refused

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WholeNumber(click.ParamType[int]):
    """A whole number between two bounds, written in digits."""

    name = "integer"

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        digits = text.removeprefix("-")
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None
        if number is None or not self.minimum <= number <= self.maximum:
            raise Refused("range", f"must be a whole number from {self.minimum} to {self.maximum}.")
        return number

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"{self.minimum}..{self.maximum}"


class Variable(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`, or `NAME` alone for the value that this process has.

    The second form keeps a secret out of the list of processes.
    """

    name = "variable"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, separator, text = str(value).partition("=")
        if not _ENV_NAME.fullmatch(name):
            raise Refused("pattern", "must be NAME=VALUE, or the NAME of a variable that is set here.")
        if separator:
            return name, text
        inherited = os.environ.get(name)
        if inherited is None:
            raise Refused("unset", "names a variable that is not set here; write NAME=VALUE.")
        return name, inherited

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "NAME[=VALUE]"


class Text(click.ParamType[str]):
    """Text of a bounded length with something to read in it."""

    name = "text"

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip() or len(text) > self.maximum or "\0" in text:
            raise Refused("length", f"must be 1 to {self.maximum} characters and not blank.")
        return text


class Pair(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE` with a name of a closed list."""

    name = "pair"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, separator, text = str(value).partition("=")
        if name not in self.names or not separator or not text:
            raise Refused("pattern", f"must be NAME=VALUE, with a NAME of: {', '.join(self.names)}.")
        return name, text

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "NAME=VALUE"


class OneOf(click.Choice[str]):
    """One word of a closed list; the refusal lists the words that are allowed."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise Refused("enum", f"must be one of: {', '.join(self.choices)}.")
        return str(value)


def allow_net_option() -> click.Option:
    """The network allowlist of a new sandbox."""
    return click.Option(
        ["--allow-net"],
        type=Text(300),
        multiple=True,
        metavar="RULE",
        help="A host, *.host, address or network that the sandbox may reach, with :port or for ports 80 and 443. "
        "Repeatable. Default: ABX_LOCAL_EGRESS, else no network.",
    )
