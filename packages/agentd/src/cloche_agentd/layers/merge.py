"""Three-way merge of text files, byte for byte: lines keep their ends, and nothing is ever marked."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Final

TEXT_BYTES: Final = 8 * 1024 * 1024
_WORK: Final = 2_000_000
"""Pairs of equal lines that a comparison may meet: its cost grows with them, and the content is not ours."""

Block = tuple[int, int, int]
_Range = tuple[int, int]


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the content with both changes, or None where they touch the same lines or it is no text."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not all(_is_text(each) for each in (base, ours, theirs)):
        return None
    lines = base.splitlines(keepends=True)
    mine, others = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    left, right = _blocks(lines, mine), _blocks(lines, others)
    if left is None or right is None:
        return None
    return _weave(lines, mine, others, _anchors(left, right))


def _is_text(data: bytes) -> bool:
    if len(data) > TEXT_BYTES or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _blocks(base: Sequence[bytes], other: Sequence[bytes]) -> list[Block] | None:
    """Return the runs of equal lines as (in base, in other, length); None where finding them costs too much."""
    head = 0
    while head < min(len(base), len(other)) and base[head] == other[head]:
        head += 1
    tail = 0
    while tail < min(len(base), len(other)) - head and base[-1 - tail] == other[-1 - tail]:
        tail += 1
    mid_base, mid_other = base[head : len(base) - tail], other[head : len(other) - tail]
    counts = Counter(mid_base)
    if sum(counts[line] for line in mid_other) > _WORK:
        return None
    matcher = difflib.SequenceMatcher(None, mid_base, mid_other, autojunk=False)
    middle = [(a + head, b + head, size) for a, b, size in matcher.get_matching_blocks() if size]
    first = [(0, 0, head)] if head else []
    last = [(len(base) - tail, len(other) - tail, tail)] if tail else []
    return [*first, *middle, *last]


def _anchors(left: Sequence[Block], right: Sequence[Block]) -> list[tuple[int, int, int, int]]:
    """Return the runs that all three have as (in base, in ours, in theirs, length)."""
    found: list[tuple[int, int, int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        (base_l, mine, size_l), (base_r, other, size_r) = left[i], right[j]
        start, end = max(base_l, base_r), min(base_l + size_l, base_r + size_r)
        if start < end:
            found.append((start, mine + start - base_l, other + start - base_r, end - start))
        if base_l + size_l < base_r + size_r:
            i += 1
        else:
            j += 1
    return found


def _weave(
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    anchors: Sequence[tuple[int, int, int, int]],
) -> bytes | None:
    result: list[bytes] = []
    at = (0, 0, 0)
    for start, mine, other, size in [*anchors, (len(base), len(ours), len(theirs), 0)]:
        was, left, right = base[at[0] : start], ours[at[1] : mine], theirs[at[2] : other]
        if right in (was, left):
            result += left
        elif left == was:
            result += right
        else:
            return None
        result += base[start : start + size]
        at = (start + size, mine + size, other + size)
    return b"".join(result)
