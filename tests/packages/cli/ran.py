"""What one run of `abx` in this process gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


Abx = Callable[[Sequence[str]], Ran]
