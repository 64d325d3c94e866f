"""An entry in a TOML table that stands in one line: `mcp_servers = { git = { command = "uvx" } }`.

Where a brace belongs to a text or a comment is not looked at. Each place is tried, and the one is right after which the
whole document reads as wanted.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

_MOST_TRIED = 400

Reads = Callable[[str], bool]


def put(text: str, path: Sequence[str], entry: str, reads: Reads) -> str | None:
    """The text with the entry, or None where its servers are not in one line.

    Args:
        entry: as TOML.
        reads: whether an edited text reads as wanted.
    """
    opened = re.search(rf"(?m)^[ \t]*{_named(path[-2])}[ \t]*=[ \t]*\{{", text)
    if opened is None:
        return None
    start = opened.end()
    tried = (
        text[:place] + pair + text[place:]
        for brace in _braces(text, start)
        for place in [start + len(text[start:brace].rstrip(" \t"))]
        for pair in (f", {path[-1]} = {entry}", f" {path[-1]} = {entry} ")
    )
    return _first(tried, reads)


def take(text: str, path: Sequence[str], reads: Reads) -> str | None:
    """The text without the entry, or None where it does not stand in one line."""
    return _first(_without(text, path[-1]), reads)


def _without(text: str, name: str) -> Iterator[str]:
    """The text without what may be the entry: with the comma or the space around it, or with its line."""
    pair = rf"{_named(name)}[ \t]*=[ \t]*\{{"
    for around, behind in ((r",[ \t]*", ""), ("", r",[ \t]*"), (r"(?m)^[ \t]*", r"[ \t]*\r?\n"), ("[ \t]*", "[ \t]*")):
        for found in re.finditer(around + pair, text):
            for brace in _braces(text, found.end()):
                rest = re.compile(behind).match(text, brace + 1)
                if rest is not None:
                    yield text[: found.start()] + text[rest.end() :]


def _named(key: str) -> str:
    return rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')"""


def _braces(text: str, start: int) -> Iterator[int]:
    return (found.start() for found in re.compile(r"\}").finditer(text, start))


def _first(tried: Iterator[str], reads: Reads) -> str | None:
    return next((text for text in islice(tried, _MOST_TRIED) if reads(text)), None)
