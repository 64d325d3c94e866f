"""The zygote's memory, arranged for its forks: they share each page until one of them writes to it."""

import gc
from collections.abc import Callable
from functools import partial

# Python's allocator: blocks of one size come from pools, and the first block of a pool lies behind its header.
_POOL_BYTES = 1 << 14
_HEADER_BYTES = 48
_LARGEST_BLOCK = 512
_BYTES_OVERHEAD = 33
# More than there are gaps of one size; where the allocator is another one, it bounds what is wasted.
_MOST = 5000

_FILLING: list[object] = []


def share() -> None:
    """Arrange what is in memory by now so that forks write to little of it.

    What a fork allocates would go into gaps, each in a page of what it shares: they are filled, and it goes into pages
    of its own. Its garbage collector leaves alone what is there.
    """
    gc.collect()
    _fill(16, object)
    _fill(32, complex)
    for size in range(48, _LARGEST_BLOCK + 1, 16):
        _fill(size, partial(bytes, size - _BYTES_OVERHEAD))
    gc.freeze()


def _fill(size: int, make: Callable[[], object]) -> None:
    """Take blocks of this size until they come from a fresh pool, one behind the other: there are no gaps left."""
    # Some steps of leeway: numbers that are counted with come from a pool, too.
    before, step = _POOL_BYTES, 3 * size
    for _ in range(_MOST):
        block = make()
        _FILLING.append(block)
        offset = id(block) % _POOL_BYTES
        if before < _HEADER_BYTES + step and before < offset <= before + step:
            return
        before = offset
