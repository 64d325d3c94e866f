"""Cancel a coroutine at each of its awaits, one run after the other.

Source: house style S6.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio


async def cancel_at_each_await(
    run: Callable[[], Coroutine[Any, Any, object]],
    check: Callable[[int], Awaitable[None]],
    *,
    most: int = 500,
) -> int:
    """Run `run` again and again, cancelled at its first await, at its second, and so on.

    After each cancelled run `check` is awaited with the number of the await; it asserts that
    nothing was left behind. The round that ends without being cancelled is the last one.
    Awaits are those of the task itself: one that waits for a task group counts once.

    Args:
        run: makes a fresh coroutine; what it needs must be fresh too.
        most: give up when there seems to be no end.

    Returns:
        At how many awaits the coroutine was cancelled.

    Raises:
        AssertionError: still not at the end after `most` rounds.
    """
    for number in range(1, most + 1):
        with anyio.CancelScope() as scope:
            await _CancelledAt(run(), scope, number)
        if not scope.cancel_called:
            return number - 1
        await check(number)
    raise AssertionError(f"the coroutine still awaits after {most} rounds")


class _CancelledAt:
    """Awaits a coroutine by hand and cancels the scope when it is suspended for the n-th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], scope: anyio.CancelScope, number: int) -> None:
        self._coroutine = coroutine
        self._scope = scope
        self._number = number

    def __await__(self) -> Generator[Any, Any, object]:
        suspensions = 0
        resume: Callable[[], Any] = lambda: self._coroutine.send(None)  # noqa: E731 - replaced in the loop
        while True:
            try:
                waiting_for = resume()
            except StopIteration as end:
                return end.value
            suspensions += 1
            if suspensions == self._number:
                self._scope.cancel()
            try:
                value = yield waiting_for
            except BaseException as error:  # noqa: BLE001 - the cancellation itself travels this way
                resume = _throw(self._coroutine, error)
            else:
                resume = _send(self._coroutine, value)


def _throw(coroutine: Coroutine[Any, Any, object], error: BaseException) -> Callable[[], Any]:
    return lambda: coroutine.throw(error)


def _send(coroutine: Coroutine[Any, Any, object], value: object) -> Callable[[], Any]:
    return lambda: coroutine.send(value)
