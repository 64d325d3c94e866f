"""Steps of building a sandbox, and how a refused one is reported across processes."""

import errno
from collections.abc import Callable


class SetupFailed(Exception):
    """One step of building a sandbox was refused by the kernel."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(f"{step}: {errno.errorcode.get(number, number)}")
        self.step = step
        self.errno = number


def step(name: str, action: Callable[..., object], *arguments: object) -> None:
    """Run one step.

    Raises:
        SetupFailed: naming it.
    """
    try:
        action(*arguments)
    except OSError as error:
        raise SetupFailed(name, error.errno or 0) from error
