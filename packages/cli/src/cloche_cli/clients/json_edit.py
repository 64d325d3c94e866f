"""Put an entry into a JSON or JSONC text and take it out again, by cutting and pasting at known places."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloche_cli.clients.edit import Edited, Unsafe, line_end, line_of
from cloche_cli.clients.json_text import Member, Node, parse

_INDENT = re.compile(r"[ \t]*\Z")
# What may stand between a value and the end of its line and belongs to it: a comment.
_REST_OF_LINE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
_SPACE_BEFORE = re.compile(r"(?:\r\n|\n|\r)?[ \t]*\Z")


@dataclass(frozen=True)
class JsonFormat:
    """JSON, or with `comments` JSONC."""

    comments: bool

    def find(self, text: str, path: Sequence[str]) -> Any:
        found, rest = self._descend(text, path)
        return None if rest else found.value

    def put(self, text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edited:
        found, rest = self._descend(text, path)
        if not rest:
            return Edited(_replaced(text, found, entry))
        value: Mapping[str, Any] = entry
        for key in reversed(rest[1:]):
            value = {key: value}
        return Edited(_inserted(text, found, rest[0], value), tuple(rest[:-1]))

    def take(self, text: str, path: Sequence[str], made: Sequence[str]) -> str:
        _found, rest = self._descend(text, path)
        if rest:
            return text
        text = self._without(text, path)
        for length in range(len(path) - 1, 0, -1):
            holder, rest = self._descend(text, path[:length])
            if path[length - 1] not in made or rest or not _is_hollow(text, holder):
                break
            text = self._without(text, path[:length])
        return text

    def new(self, path: Sequence[str], entry: Mapping[str, Any]) -> str:
        value: Mapping[str, Any] = entry
        for key in reversed(path):
            value = {key: value}
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

    def _descend(self, text: str, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
        """The deepest node of the path that is there, and the keys that are missing below it."""
        node = parse(text, comments=self.comments)
        for depth, key in enumerate(path):
            if not node.is_object:
                raise Unsafe("holds a value where its servers should be", line_of(text, node.start))
            named = [member for member in node.members if member.key == key]
            if len(named) > 1:
                raise Unsafe("holds the same name twice where our entry belongs", line_of(text, named[1].start))
            if not named:
                return node, path[depth:]
            node = named[0].node
        return node, ()

    def _without(self, text: str, path: Sequence[str]) -> str:
        holder, _rest = self._descend(text, path[:-1])
        index = next(number for number, member in enumerate(holder.members) if member.key == path[-1])
        return _removed(text, holder.members, index)


def _inserted(text: str, holder: Node, key: str, value: Mapping[str, Any]) -> str:
    """The text with one more member, the last of the holder."""
    if not holder.members:
        return _inserted_first(text, holder, key, value)
    last = holder.members[-1]
    indents = (_own_indent(text, member.start) for member in reversed(holder.members))
    inner = next((indent for indent in indents if indent is not None), None)
    end = line_end(text)
    stop = last.node.end if last.comma is None else last.comma + 1
    place = _after_comments(text, stop)
    if inner is None and "//" in text[stop:place]:
        inner = _line_indent(text, last.start) + _unit(text)  # what follows on this line would be comment
    lead = " " if inner is None else end + inner
    member = _member(text, key, value, inner)
    if last.comma is None:
        return f"{text[:stop]},{text[stop:place]}{lead}{member}{text[place:]}"
    return f"{text[:place]}{lead}{member},{text[place:]}"


def _inserted_first(text: str, holder: Node, key: str, value: Mapping[str, Any]) -> str:
    nested = text[: holder.start].strip("\ufeff \t\r\n") != ""
    one_line = nested and "\n" not in text.strip()
    if one_line:
        return f"{text[: holder.start + 1]}{_member(text, key, value, None)}{text[holder.start + 1 :]}"
    outer = _line_indent(text, holder.start)
    end = line_end(text)
    inner = outer + _unit(text)
    place = _after_comments(text, holder.start + 1)
    close = "" if "\n" in text[place : holder.end - 1] else end + outer
    return f"{text[:place]}{end}{inner}{_member(text, key, value, inner)}{close}{text[place:]}"


def _replaced(text: str, node: Node, entry: Mapping[str, Any]) -> str:
    if node.value == entry:
        return text
    lines = "\n" in text[node.start : node.end]
    inner = _line_indent(text, node.start) if lines else None
    return f"{text[: node.start]}{_rendered(text, entry, inner)}{text[node.end :]}"


def _removed(text: str, members: Sequence[Member], index: int) -> str:
    """The text without one member: its own comma goes, or where it has none the comma before it."""
    member = members[index]
    before = _SPACE_BEFORE.search(text, 0, member.start)
    start = before.start() if before else member.start
    if member.comma is not None:
        return text[:start] + text[member.comma + 1 :]
    if index == 0:
        return text[:start] + text[member.node.end :]
    comma = members[index - 1].comma
    assert comma is not None
    return text[:comma] + text[comma + 1 : start] + text[member.node.end :]


def _is_hollow(text: str, holder: Node) -> bool:
    return holder.is_object and text[holder.start + 1 : holder.end - 1].strip() == ""


def _member(text: str, key: str, value: Mapping[str, Any], indent: str | None) -> str:
    return f"{json.dumps(key, ensure_ascii=False)}: {_rendered(text, value, indent)}"


def _rendered(text: str, value: Mapping[str, Any], indent: str | None) -> str:
    """A value as the lines of the file are written; on one line where the indent is None."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (line_end(text) + indent).join(lines)


def _after_comments(text: str, place: int) -> int:
    """Behind the comments on the rest of this line: they belong to what stands before them."""
    found = _REST_OF_LINE.match(text, place)
    return found.end() if found else place


def _own_indent(text: str, place: int) -> str | None:
    """What stands before a member that begins its line; None where something else does."""
    found = _INDENT.search(text, 0, place)
    start = found.start() if found else place
    return text[start:place] if start > 0 and text[start - 1] in "\r\n" else None


def _line_indent(text: str, place: int) -> str:
    """The white space at the start of the line of a place."""
    start = max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1
    found = re.compile(r"\ufeff?([ \t]*)").match(text, start)
    return found.group(1) if found else ""


def _unit(text: str) -> str:
    """One step of indentation: that of the first indented line, else two spaces."""
    found = re.search(r"[\r\n]([ \t]+)[^ \t\r\n]", text)
    if found is None:
        return "  "
    return "\t" if found.group(1).startswith("\t") else found.group(1)
