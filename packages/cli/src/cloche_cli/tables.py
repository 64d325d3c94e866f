"""Tables: drawn for a person's terminal, plain columns for everything else."""

import sys
from collections.abc import Sequence

from cloche_cli.invocation import write_out


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Write a table to stdout, or one sentence when there are no rows."""
    if not rows:
        write_out(empty + "\n")
    elif sys.stdout.isatty():
        _draw(columns, rows)
    else:
        _write_columns([columns, *rows])


def _write_columns(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        write_out("  ".join(cells).rstrip() + "\n")


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as text: a name may hold what rich reads as markup
    Console().print(table)
