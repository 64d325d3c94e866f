"""A sign of life during long work: on a terminal, on stderr, and gone when the work is done."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from cloche_cli.invocation import Invocation


@contextmanager
def working(text: str, invocation: Invocation) -> Generator[None]:
    """Show the text while the block runs, to a person at a terminal and to nobody else."""
    if invocation.json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
