"""Set and remove one value of ~/.abx/config.toml; every other line stays as it is."""

import re
from typing import Any, cast

from cloche_cli.clients.edit import Broken, Unsafe, line_end, lines_of
from cloche_cli.clients.toml_edit import header, parsed, rendered


def with_value(text: str, dotted: str, value: str | int | None) -> str:
    """The text with the value at `table.key`; without it where the value is None.

    Raises:
        Broken: the text is not TOML.
        Unsafe: the table is written in a way that its lines cannot be edited.
    """
    table, _, key = dotted.rpartition(".")
    wanted = _wanted(parsed(text), table.split("."), key, value)
    lines = lines_of(text)
    start, stop = _section(lines, table.split("."))
    place = _line_of_key(lines, start, stop, key)
    new = [] if value is None else [f"{key} = {rendered(value)}{line_end(text)}"]
    if place is not None:
        lines[place : place + 1] = new
    elif start is not None:
        lines[start + 1 : start + 1] = new
    elif new:
        end = line_end(text)
        lead = "" if not text else end if text.endswith("\n") else end * 2
        lines += [f"{lead}[{table}]{end}", *new]
    edited = "".join(lines)
    try:
        if parsed(edited) == wanted:
            return edited
    except Broken:
        pass
    raise Unsafe("has this value in a way that its line cannot be changed")


def _section(lines: list[str], table: list[str]) -> tuple[int | None, int]:
    """The line of the table's header, and the line behind its last."""
    headers = [(number, keys) for number, line in enumerate(lines) if (keys := header(line)) is not None]
    for index, (number, keys) in enumerate(headers):
        if keys == table:
            return number, headers[index + 1][0] if index + 1 < len(headers) else len(lines)
    return None, 0


def _line_of_key(lines: list[str], start: int | None, stop: int, key: str) -> int | None:
    if start is None:
        return None
    named = re.compile(rf"""[ \t]*["']?{re.escape(key)}["']?[ \t]*=""")
    return next((number for number in range(start + 1, stop) if named.match(lines[number])), None)


def _wanted(document: dict[str, Any], table: list[str], key: str, value: str | int | None) -> dict[str, Any]:
    """The document as it must read afterwards."""
    if not table:
        rest = {name: one for name, one in document.items() if name != key}
        return rest if value is None else {**rest, key: value}
    below: Any = document.get(table[0])
    if below is None and value is None:
        return document
    if below is not None and not isinstance(below, dict):
        raise Unsafe("has a value where a table should be")
    inner = _wanted(cast("dict[str, Any]", below or {}), table[1:], key, value)
    return {**document, table[0]: inner}
