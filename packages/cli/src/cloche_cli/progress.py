"""A sign of life during long work: on a terminal, on stderr, and gone when the work is done."""

import sys
from collections.abc import Callable, Generator
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


@contextmanager
def moving(text: str, total: int, invocation: Invocation) -> Generator[Callable[[int], None]]:
    """Show how many bytes of `total` have been moved; yields what is told of each part. 0 is a total nobody knows."""
    if invocation.json or not sys.stderr.isatty():
        yield lambda _size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=total or None)
        yield lambda size: progress.advance(task, size)
