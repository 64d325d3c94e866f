"""`abx completion`: what a shell needs to complete our words."""

from typing import Final

import click

from cloche_cli.invocation import current
from cloche_cli.lazy import command
from cloche_cli.parameters import OneOf

_SHELLS: Final = ("bash", "zsh", "fish")


def _completion(shell: str) -> int:
    from click.shell_completion import get_completion_class

    from cloche_cli.root import abx

    found = get_completion_class(shell)
    assert found is not None
    # One program with two names: both ask it by the same variable.
    script = "\n".join(found(abx, {}, name, "_ABX_COMPLETE").source() for name in ("abx", "cloche"))
    invocation = current()
    if invocation.json:
        invocation.emit({"shell": shell, "script": script})
    else:
        invocation.write(script)
    return 0


completion = command(
    "completion",
    _completion,
    help="Write the script that makes a shell complete commands, options and names; its start-up file reads it.",
    examples=[
        'eval "$(abx completion bash)"',
        "abx completion zsh > ~/.zfunc/_abx",
        "abx completion fish > ~/.config/fish/completions/abx.fish",
    ],
    params=[click.Argument(["shell"], type=OneOf(_SHELLS), metavar="bash|zsh|fish")],
)
