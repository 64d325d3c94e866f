"""Checks a result that user code's process sent, and gives it the shape of the interpreter protocol."""

from __future__ import annotations

import binascii
import json
from typing import Final, cast

from . import limits
from .control import Frame

_KEYS: Final = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}
_FORMS: Final = {"png": "binary", "jpeg": "binary", "pdf": "binary", "json": "json", "data": "json", "chart": "json"}


def result_line(frame: Frame) -> tuple[dict[str, object] | None, list[str]]:
    """Return the result line, None when nothing of it is usable, and the paths of payloads kept in files."""
    line: dict[str, object] = {"type": "result"}
    extra: dict[str, object] = {}
    for (media_type, form), part in zip(_types(frame), frame.parts, strict=False):
        key = _KEYS.get(media_type)
        value = _value(part, form if key is None else _FORMS.get(key, "text"))
        if value is None:
            continue
        if key is None:
            extra[media_type] = value
        else:
            line[key] = _unquoted(cast("str", value)) if key == "text" else value
    if extra:
        line["extra"] = extra
    files = _files(frame)
    if len(line) == 1:
        return None, files
    line["is_main_result"] = frame.header.get("main") is True
    return line, files


def _types(frame: Frame) -> list[tuple[str, str]]:
    """Return media type and form of each part, as far as they are told in the right shape."""
    told = frame.header.get("types")
    found: list[tuple[str, str]] = []
    for pair in cast("list[object]", told if isinstance(told, list) else []):
        names = cast("list[object]", pair) if isinstance(pair, list) else []
        if len(names) != 2 or not isinstance(names[0], str) or not isinstance(names[1], str):
            return []
        found.append((names[0][: limits.NAME_BYTES], names[1]))
    return found


def _value(part: bytes, form: str) -> object:
    if form == "binary":
        return binascii.b2a_base64(part, newline=False).decode()
    if form != "json":
        return part.decode("utf-8", "replace")
    if len(part) > limits.RESULT_JSON_BYTES:
        return None
    try:
        # NaN and Infinity are Python's words, not JSON's: a strict reader would refuse the whole line.
        return json.loads(part, parse_constant=lambda _word: None)
    except (ValueError, RecursionError):
        return None


def _files(frame: Frame) -> list[str]:
    told = frame.header.get("files")
    paths = cast("list[object]", told if isinstance(told, list) else [])[: limits.RESULT_TYPES]
    return [path for path in paths if isinstance(path, str) and len(path) <= limits.PATH_BYTES and "\0" not in path]


def _unquoted(text: str) -> str:
    """Return the text of a shown string without the quotes of its repr, as notebooks' clients expect."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
