"""`abx run`: one program, one sandbox, nothing left."""

from pathlib import Path

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import OneOf, Text, WholeNumber, allow_net_option

LANGUAGES = ("python", "javascript", "shell", "typescript", "r")


def _run(
    program: str,
    language: str | None,
    template: str | None,
    timeout: int,
    provider: str | None,
    allow_net: tuple[str, ...],
    figures: str,
    keep: bool,
) -> int:
    from cloche_cli.one_shot import RunRequest, run_program
    from cloche_cli.source import read_source

    source = read_source(program, language)
    return run_program(
        RunRequest(
            code=source.code,
            language=source.language,
            template=template,
            timeout_s=timeout,
            provider=provider,
            egress=allow_net or None,
            figures=Path(figures),
            keep=keep,
        )
    )


run = command(
    "run",
    _run,
    help=(
        "Run CODE, the program in FILE, or what stdin holds (-) in a sandbox of its own.\n\n"
        "The word is a file if a file of that name exists; its ending then chooses the language. "
        "The program's output goes to stdout and stderr as it comes, its status becomes the exit status "
        "(5 if the timeout ended it), figures are saved as files. The sandbox is killed at the end, "
        "unless --keep is given."
    ),
    examples=[
        "abx run 'print(6 * 7)'",
        "abx run analysis.py --template code-interpreter-v1 --timeout 120",
        "abx run --language shell 'ls -la / | head'",
        "git diff | abx run - --language shell",
        'abx --json run \'open("a.txt", "w").write("hi")\'',
    ],
    params=[
        click.Argument(["program"], metavar="CODE|FILE|-"),
        click.Option(["-l", "--language"], type=OneOf(LANGUAGES), help="Default: by the file's ending, else python."),
        click.Option(["-t", "--template"], type=Text(128), help="Default: ABX_DEFAULT_TEMPLATE, else base."),
        click.Option(
            ["--timeout"],
            type=WholeNumber(1, 3600),
            default=30,
            show_default=True,
            help="Seconds that the program may run.",
        ),
        click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local."),
        allow_net_option(),
        click.Option(
            ["--figures"],
            metavar="FOLDER",
            default=".",
            show_default=True,
            help="Where figures are saved.",
        ),
        click.Option(
            ["--keep"], is_flag=True, help="Leave the sandbox alive until its timeout, and say its id on stderr."
        ),
    ],
)
