"""What click says about wrong words on the command line, said again without the words.

A value on a command line may be a secret or a program: our text names the option and the
rule, never the value.

Source: decision D12.
"""

import re
from dataclasses import dataclass

import click

_OPTION_NAME = re.compile(r"--?[A-Za-z][A-Za-z0-9-]{0,39}")


@dataclass(frozen=True)
class UsageFailure:
    """One refusal: the field, the rule it breaks, and what to do."""

    field: str | None
    rule: str
    cause: str
    fix: str


class Refused(click.BadParameter):
    """Raised where our own code refuses a word; its message is static and safe to show.

    Args:
        rule: the rule that is broken.
        sentence: what follows the name of the parameter.
        field: that name, where click does not know which parameter it was.
        fix: what to do, where the help does not tell.
    """

    def __init__(self, rule: str, sentence: str, *, field: str | None = None, fix: str | None = None) -> None:
        super().__init__(sentence, param_hint=field)
        self.rule = rule
        self.fix = fix


def explain(error: click.UsageError) -> UsageFailure:
    """Translate one of click's usage errors."""
    fix = f"Run `{_command_path(error)} --help` to see what it takes."
    match error:
        case Refused():
            name = _parameter_name(error)
            return UsageFailure(name, error.rule, f"{name} {error.message}", error.fix or fix)
        case click.MissingParameter():
            name = _parameter_name(error)
            return UsageFailure(name, "required", f"{name} is missing.", fix)
        case click.BadParameter():
            name = _parameter_name(error)
            return UsageFailure(name, *_type_rule(name, error.param), fix)
        case click.NoSuchOption():
            name = error.option_name if _OPTION_NAME.fullmatch(error.option_name) else None
            return UsageFailure(name, "unknown_option", f"There is no option {name or 'of that name'} here.", fix)
        case click.BadOptionUsage():
            name = error.option_name if _OPTION_NAME.fullmatch(error.option_name) else "An option"
            return UsageFailure(name, "value_expected", f"{name} is used in a way that it does not allow.", fix)
        case _:
            return _plain_usage(error, fix)


def _plain_usage(error: click.UsageError, fix: str) -> UsageFailure:
    context = error.ctx
    if context is not None and isinstance(context.command, click.Group):
        return UsageFailure("COMMAND", "unknown_command", "There is no command of that name.", fix)
    return UsageFailure(None, "too_many_arguments", "There are more arguments than the command takes.", fix)


def _type_rule(name: str, parameter: click.Parameter | None) -> tuple[str, str]:
    kind = None if parameter is None else parameter.type
    if isinstance(kind, click.Choice):
        words = ", ".join(str(choice) for choice in kind.choices)
        return "enum", f"{name} must be one of: {words}."
    if isinstance(kind, click.IntRange):
        return "range", f"{name} must be a whole number from {kind.min} to {kind.max}."
    return "type", f"{name} is not valid."


def _parameter_name(error: click.BadParameter) -> str:
    parameter = error.param
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    if parameter is not None:
        return parameter.human_readable_name
    return error.param_hint if isinstance(error.param_hint, str) else "An argument"


def _command_path(error: click.UsageError) -> str:
    return "abx" if error.ctx is None else error.ctx.command_path
