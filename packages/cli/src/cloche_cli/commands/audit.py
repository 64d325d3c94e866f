"""`abx audit`: which tool calls were made."""

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import Text, WholeNumber


def _audit(sandbox: str | None, limit: int) -> int:
    from cloche_cli.auditing import show_audit

    return show_audit(sandbox, limit)


audit = command(
    "audit",
    _audit,
    help=(
        "Show the tool calls that the MCP servers of this user carried out: who, which tool, which sandbox, how it "
        "ended, how long it took. Never what was sent or answered. The file is the one of ABX_AUDIT_FILE."
    ),
    examples=["abx audit", "abx audit --sandbox sb-7f3a --limit 20", "abx --json audit"],
    params=[
        click.Option(["-s", "--sandbox"], type=Text(1024), help="Only calls about this sandbox."),
        click.Option(
            ["--limit"], type=WholeNumber(1, 100000), default=1000, show_default=True, help="The newest so many calls."
        ),
    ],
)
