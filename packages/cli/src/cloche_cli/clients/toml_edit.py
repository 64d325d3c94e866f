"""Put an entry into a TOML text and take it out again, as whole lines.

The lines are found by their headers, or the places by the braces of a table in one line. Each result is read by
`tomllib` before anybody gets it: where nothing reads as it should afterwards (the entry below a dotted key), the file
stays as it is.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cloche_cli.clients import toml_inline
from cloche_cli.clients.edit import Broken, Edited, Unsafe, line_end, lines_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_HEADER = re.compile(rf"[ \t]*\[\[?[ \t]*({_KEY}(?:[ \t]*\.[ \t]*{_KEY})*)[ \t]*\]\]?[ \t]*(?:#.*)?\Z")
_PLACE = re.compile(r"at line (\d+)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NOTHING = re.compile(r"[ \t]*(?:#.*)?\Z")


class TomlFormat:
    """TOML with one table for each server."""

    def find(self, text: str, path: Sequence[str]) -> Any:
        value: Any = parsed(text)
        for key in path:
            if not isinstance(value, dict):
                raise Unsafe("holds a value where its servers should be")
            value = cast("dict[str, Any]", value).get(key)
            if value is None:
                return None
        return value

    def put(self, text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edited:
        present = self.find(text, path)
        if present == entry:
            return Edited(text)
        wanted = _with(parsed(text), path, entry)
        if present is not None and (shorter := _taken_in_one_line(text, path)) is not None:
            text, present = shorter, None
        if (longer := toml_inline.put(text, path, rendered(entry), lambda tried: _reads(tried, wanted))) is not None:
            return Edited(longer)
        end = line_end(text)
        block = _block(path, entry, end)
        lines = lines_of(text)
        spans = _spans(lines, path)
        if present is not None and spans:
            start = spans[0][0]
            kept = _cut(lines, spans)
            edited = "".join(kept[:start]) + block + "".join(kept[start:])
        else:
            lead = "" if not text.strip("\ufeff") else end if text.endswith(("\n", "\r")) else end * 2
            edited = text + lead + block
        _agrees(edited, path, wanted)
        return Edited(edited)

    def take(self, text: str, path: Sequence[str], made: Sequence[str]) -> str:
        before = parsed(text)
        if self.find(text, path) is None:
            return text
        if (shorter := _taken_in_one_line(text, path)) is not None:
            return shorter
        lines = lines_of(text)
        spans = _spans(lines, path)
        if spans and spans[0][0] > 0 and not lines[spans[0][0] - 1].strip():
            spans[0] = (spans[0][0] - 1, spans[0][1])  # the empty line that `put` wrote
        edited = "".join(_cut(lines, spans))
        _agrees(edited, path, _with(before, path, None))
        return edited

    def new(self, path: Sequence[str], entry: Mapping[str, Any]) -> str:
        return _block(path, entry, "\n")


def parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        line = int(found.group(1)) if found else len(text.splitlines()) or 1
        raise Broken("TOML", line, "cannot be read") from None
    except RecursionError:
        raise Broken("TOML", 1, "is nested too deep") from None


def _spans(lines: Sequence[str], path: Sequence[str]) -> list[tuple[int, int]]:
    """The lines of the tables at and below the path, without empty lines and comments behind them."""
    headers = [(number, keys) for number, line in enumerate(lines) if (keys := header(line)) is not None]
    ends = [*(number for number, _keys in headers[1:]), len(lines)]
    spans: list[tuple[int, int]] = []
    for (start, keys), stop in zip(headers, ends, strict=False):
        if keys[: len(path)] != list(path):
            continue
        while _NOTHING.match(lines[stop - 1].rstrip("\r\n")):
            stop -= 1
        spans.append((start, stop))
    return spans


def header(line: str) -> list[str] | None:
    found = _HEADER.match(line.rstrip("\r\n"))
    if found is None:
        return None
    return [_plain(key) for key in re.findall(_KEY, found.group(1))]


def _plain(key: str) -> str:
    if key.startswith("'"):
        return key[1:-1]
    return next(iter(tomllib.loads(f"{key} = 0"))) if key.startswith('"') else key


def _cut(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[str]:
    gone = {number for start, stop in spans for number in range(start, stop)}
    return [line for number, line in enumerate(lines) if number not in gone]


def _with(document: dict[str, Any], path: Sequence[str], entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """The document as it must read after the edit; tables that hold nothing count as not there."""
    found = {**document}
    if len(path) == 1:
        found.pop(path[0], None)
        return found if entry is None else {**found, path[0]: dict(entry)}
    below = cast("dict[str, Any]", found.get(path[0], {}))
    found[path[0]] = _with(below, path[1:], entry)
    return found


def _taken_in_one_line(text: str, path: Sequence[str]) -> str | None:
    wanted = _with(parsed(text), path, None)
    return toml_inline.take(text, path, lambda tried: _reads(tried, wanted))


def _reads(edited: str, wanted: dict[str, Any]) -> bool:
    try:
        return parsed(edited) == wanted
    except Broken:
        return False


def _agrees(edited: str, path: Sequence[str], wanted: dict[str, Any]) -> None:
    """Raise unless the edited text reads as wanted: then nothing else can have been touched."""
    unsafe = Unsafe("keeps its servers in a way that lines cannot be cut at")
    try:
        read = parsed(edited)
    except Broken:
        raise unsafe from None
    for key in path[:-1]:
        # Without its last server a table has no line of its own any more, and is gone.
        if wanted.get(key) == {} and key not in read:
            wanted = {name: value for name, value in wanted.items() if name != key}
    if read != wanted:
        raise unsafe


def _block(path: Sequence[str], entry: Mapping[str, Any], end: str) -> str:
    name = ".".join(key if _BARE.fullmatch(key) else json.dumps(key) for key in path)
    lines = [f"[{name}]", *(f"{key} = {rendered(value)}" for key, value in entry.items())]
    return "".join(line + end for line in lines)


def rendered(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(rendered(one) for one in cast("list[Any]", value)) + "]"
    if isinstance(value, dict):
        pairs = (f"{_key(key)} = {rendered(one)}" for key, one in cast("dict[str, Any]", value).items())
        return "{ " + ", ".join(pairs) + " }"
    # A JSON string is a TOML one, but for DEL, which TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else rendered(key)
