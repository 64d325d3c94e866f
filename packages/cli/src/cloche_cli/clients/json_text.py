"""Where things stand in a JSON text: every object, its members and its commas, with their places.

Nothing is formatted again when a file is edited, so an editor needs places, not values. With `comments`, comments and
trailing commas are read as well (JSONC); without, the text must be JSON as RFC 8259 has it. A byte order mark is
allowed at the start, as readers may.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from cloche_cli.clients.edit import Broken, line_of

DEPTH_LIMIT: Final = 200
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Node:
    """A value from `start` to before `end`; members where it is an object."""

    start: int
    end: int
    value: Any
    members: "tuple[Member, ...]" = ()

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)


@dataclass(frozen=True)
class Member:
    """`"key": value`, and where its comma is if it has one."""

    key: str
    start: int
    node: Node
    comma: int | None


def parse(text: str, *, comments: bool) -> Node:
    """Read a whole text.

    Raises:
        Broken: it is not JSON, or not JSONC; the line is told.
    """
    reader = _Reader(text, comments)
    start = reader.skip(1 if text.startswith("\ufeff") else 0)
    root = reader.node(start, 0)
    end = reader.skip(root.end)
    if end != len(text):
        reader.refuse(end, "has text after its end")
    return root


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self._text = text
        self._comments = comments

    def refuse(self, place: int, what: str) -> NoReturn:
        kind = "JSON" if not self._comments else "JSON with comments"
        raise Broken(kind, line_of(self._text, place), what)

    def skip(self, place: int) -> int:
        """The next place that holds neither space nor, where they are allowed, a comment."""
        while True:
            found = _SPACE.match(self._text, place)
            place = found.end() if found else place
            if self._text[place : place + 1] != "/":
                return place
            comment = _COMMENT.match(self._text, place)
            if not self._comments or comment is None:
                self.refuse(place, "has a comment" if comment else "has a / that begins nothing")
            place = comment.end()

    def node(self, place: int, depth: int) -> Node:
        if depth > DEPTH_LIMIT:
            self.refuse(place, f"is nested deeper than {DEPTH_LIMIT} levels")
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._array(place, depth)
            case '"':
                return self._string(place)
            case _:
                return self._scalar(place)

    def _scalar(self, place: int) -> Node:
        if place == len(self._text):
            self.refuse(place, "ends too early")
        found = _SCALAR.match(self._text, place)
        if found is None:
            self.refuse(place, "has something that is no value")
        return Node(place, found.end(), json.loads(found.group()))

    def _string(self, place: int) -> Node:
        found = _STRING.match(self._text, place)
        if found is None:
            self.refuse(place, "has a text in quotes that does not end, or holds what it may not")
        return Node(place, found.end(), json.loads(found.group()))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        place = self.skip(start + 1)
        while self._text[place : place + 1] != "}":
            if self._text[place : place + 1] != '"':
                self.refuse(place, "has a name that is not in quotes, or a comma or brace too few")
            key = self._string(place)
            colon = self.skip(key.end)
            if self._text[colon : colon + 1] != ":":
                self.refuse(colon, "has a name without a colon")
            value = self.node(self.skip(colon + 1), depth + 1)
            after, comma = self._next(value.end, "}")
            members.append(Member(key.value, place, value, comma))
            place = after
        return Node(start, place + 1, {one.key: one.node.value for one in members}, tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        values: list[Any] = []
        place = self.skip(start + 1)
        while self._text[place : place + 1] != "]":
            value = self.node(place, depth + 1)
            values.append(value.value)
            place, _comma = self._next(value.end, "]")
        return Node(start, place + 1, values)

    def _next(self, end: int, closing: str) -> tuple[int, int | None]:
        """The place after a value and its comma, and that of the comma."""
        place = self.skip(end)
        if self._text[place : place + 1] != ",":
            if self._text[place : place + 1] != closing:
                self.refuse(place, "has a comma or bracket too few")
            return place, None
        after = self.skip(place + 1)
        if self._text[after : after + 1] == closing and not self._comments:
            self.refuse(place, "has a comma after its last member")
        return after, place
