"""What editing a configuration file means, whatever its format: our entry in or out, and no other byte changed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Broken(Exception):
    """The text is not what its format says; it stays as it is.

    Args:
        kind: the name of the format.
        line: where, counted from 1.
        what: a sentence without its subject, and without anything of the text.
    """

    def __init__(self, kind: str, line: int, what: str) -> None:
        super().__init__(kind, line, what)
        self.kind = kind
        self.line = line
        self.what = what


class Unsafe(Exception):
    """The text is well formed, but our entry cannot go in or out without touching something else.

    Args:
        what: a sentence without its subject, and without anything of the text.
        line: where, counted from 1, if it is one place.
    """

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what, line)
        self.what = what
        self.line = line


@dataclass(frozen=True)
class Edited:
    """The text after an edit, and which of the keys on the path the edit had to make."""

    text: str
    made: tuple[str, ...] = field(default=())


class Format(Protocol):
    """How the entry at a path goes in and out of one format."""

    def find(self, text: str, path: Sequence[str]) -> Any:
        """The value at the path, or None.

        Raises:
            Broken: the text is not of this format.
            Unsafe: a key on the path stands there twice, or holds something else than keys.
        """
        ...

    def put(self, text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edited:
        """The text with the entry at the path.

        Raises:
            Broken, Unsafe: as `find`.
        """
        ...

    def take(self, text: str, path: Sequence[str], made: Sequence[str]) -> str:
        """The text without the entry, and without those keys of `made` that are empty then.

        Raises:
            Broken, Unsafe: as `find`.
        """
        ...

    def new(self, path: Sequence[str], entry: Mapping[str, Any]) -> str:
        """The text of a file that holds nothing but the entry."""
        ...


def line_of(text: str, place: int) -> int:
    """The line of a place, counted from 1; \\r\\n, \\n and \\r each end one."""
    before = text[:place]
    return 1 + before.count("\n") + before.count("\r") - before.count("\r\n")


def line_end(text: str) -> str:
    """The line end that the text uses."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, where only \\n ends one: together they are the text."""
    return [line for line in re.split(r"(?<=\n)", text) if line]
