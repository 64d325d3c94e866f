"""Checks a result that user code's process sent, and gives it the shape of the interpreter protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from . import limits

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
_ANY_JSON: Final = frozenset({"json", "data", "chart"})
_MOST_TYPES: Final = 32


def result_line(frame: Mapping[str, object]) -> tuple[dict[str, object] | None, list[str]]:
    """Return the result line, None when nothing of it is usable, and the paths of payloads kept in files."""
    line: dict[str, object] = {"type": "result"}
    extra: dict[str, object] = {}
    for media_type, payload in list(_object(frame.get("data")).items())[:_MOST_TYPES]:
        key = _KEYS.get(media_type)
        if key is None:
            extra[media_type[: limits.NAME_BYTES]] = payload
        elif isinstance(payload, str):
            line[key] = _unquoted(payload) if key == "text" else payload
        elif key in _ANY_JSON:
            line[key] = payload
    files = {
        media_type[: limits.NAME_BYTES]: path
        for media_type, path in list(_object(frame.get("files")).items())[:_MOST_TYPES]
        if isinstance(path, str) and len(path) <= limits.PATH_BYTES
    }
    if extra:
        line["extra"] = extra
    paths = [str(path) for path in files.values()]
    if len(line) == 1:
        return None, paths
    line["is_main_result"] = frame.get("main") is True
    return line, paths


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {}
    return cast("dict[str, object]", value)  # JSON objects have string keys


def _unquoted(text: str) -> str:
    """Return the text of a shown string without the quotes of its repr, as notebooks' clients expect."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
