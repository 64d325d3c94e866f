"""Click groups and commands of one shape: lazily imported, each with `--json` and examples."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import click

from cloche_cli.invocation import json_option


class LazyGroup(click.Group):
    """Commands by name, each written as `module:attribute`.

    `abx run` must not pay for `abx doctor`: a module is imported when its command is asked for.
    """

    def __init__(
        self,
        name: str,
        *,
        lazy: Mapping[str, str],
        help: str,
        examples: Sequence[str],
        params: Sequence[click.Parameter] = (),
    ) -> None:
        super().__init__(name, help=help, epilog=_epilog(examples), params=[*params, json_option()])
        self._lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a reader meets them, not sorted."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = self._lazy.get(cmd_name)
        if target is None:
            return None
        module_name, _, attribute = target.partition(":")
        command = getattr(import_module(module_name), attribute)
        assert isinstance(command, click.Command)
        return command


def command(
    name: str,
    callback: Callable[..., object],
    *,
    help: str,
    examples: Sequence[str],
    params: Sequence[click.Parameter] = (),
    words_follow: bool = False,
) -> click.Command:
    """A command with the options that all commands share.

    Args:
        words_follow: from the first word that is no option on, words belong to somebody else's program.
    """
    return click.Command(
        name,
        callback=callback,
        help=help,
        epilog=_epilog(examples),
        params=[*params, json_option()],
        context_settings={"allow_interspersed_args": not words_follow},
    )


def _epilog(examples: Sequence[str]) -> str:
    # \b keeps click from re-wrapping the lines of a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
