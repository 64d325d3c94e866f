"""What a command was asked for beside its own options, and where its output goes."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click


class ReaderGone(Exception):
    """Whoever read our stdout has closed it, as `head` does."""


def write_out(text: str) -> None:
    """Write text to stdout as it is, and at once.

    Raises:
        ReaderGone: nobody reads it any more.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:  # not let through: click would end the process with status 1
        raise ReaderGone from error


@dataclass
class Invocation:
    """The options that every command has, and its two streams.

    `--json` may stand before or after the command's name; both set the same field.
    """

    json: bool = False
    verbose: bool = False
    json_seen: bool = False  # the word stands somewhere before `--`: the form of a usage error

    def emit(self, document: Mapping[str, Any]) -> None:
        """Write one JSON document to stdout."""
        self.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")

    def write(self, text: str) -> None:
        """Write text to stdout as it is, and at once."""
        write_out(text)

    def note(self, text: str) -> None:
        """Tell a person what is not output. A program that asked for JSON finds it in the document."""
        if not self.json:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def current() -> Invocation:
    """The invocation of the command that is running."""
    return click.get_current_context().ensure_object(Invocation)


def _remember_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Invocation).json = True


def _remember_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Invocation).verbose = True


def json_option() -> click.Option:
    """`--json`, for every command and for `abx` itself."""
    return click.Option(
        ["--json"],
        is_flag=True,
        expose_value=False,
        callback=_remember_json,
        help="Write one JSON document to stdout; errors are JSON on stderr.",
    )


def verbose_option() -> click.Option:
    """`-v`, for `abx` itself."""
    return click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_remember_verbose,
        help="Show the traceback of an internal error.",
    )
