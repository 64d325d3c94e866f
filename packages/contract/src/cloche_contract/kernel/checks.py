"""Rules that the portable subset of JSON Schema cannot say: bytes, path segments, base64. Data, not code per tool."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Broken: TypeAlias = tuple[str, str, int | None]


def broken_check(checks: Mapping[str, Any], arguments: Mapping[str, Any]) -> Broken | None:
    """Return (field, rule, limit) of the first rule that the arguments break, or None."""
    sizes: dict[str, int] = {}
    for name, value in arguments.items():
        size = _utf8_size(value)
        if size is None:
            return name, "unicode", None
        sizes[name] = size
    for name, rules in cast("Mapping[str, Mapping[str, Any]]", checks["fields"]).items():
        if name in arguments:
            found = _broken_rule(name, rules, arguments[name], sizes[name])
            if found:
                return found
    content = cast("Mapping[str, Any] | None", checks.get("content"))
    return _broken_content(content, arguments, sizes) if content else None


def _utf8_size(value: Any) -> int | None:
    """Bytes of all text in a value; None when some of it is not Unicode, such as a lone surrogate."""
    if isinstance(value, str):
        if value.isascii():
            return len(value)
        try:
            return len(value.encode())
        except UnicodeEncodeError:
            return None
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        return _total([*mapping, *mapping.values()])
    if isinstance(value, list):
        return _total(cast("list[Any]", value))
    return 0


def _total(values: list[Any]) -> int | None:
    total = 0
    for value in values:
        size = _utf8_size(value)
        if size is None:
            return None
        total += size
    return total


def _broken_rule(name: str, rules: Mapping[str, Any], value: Any, size: int) -> Broken | None:
    most = rules.get("max_bytes")
    if most is not None and size > most:
        return name, "maxBytes", most
    total = rules.get("total_bytes")
    if total is not None and size > total:
        return name, "totalBytes", total
    if rules.get("no_parent_segment") and ".." in value and ".." in value.split("/"):
        return name, "parentSegment", None
    decoded = rules.get("base64_bytes")
    return _broken_base64(name, value, decoded) if decoded is not None else None


def _broken_base64(name: str, value: str, most: int) -> Broken | None:
    found = _decoded(value)
    if found is None:
        return name, "base64", None
    return (name, "maxBytes", most) if len(found) > most else None


def _broken_content(
    content: Mapping[str, Any], arguments: Mapping[str, Any], sizes: Mapping[str, int]
) -> Broken | None:
    name, most = content["field"], content["max_bytes"]
    size = sizes[name]
    if arguments.get(content["encoding"]) == "base64":
        decoded = _decoded(arguments[name])
        if decoded is None:
            return name, "base64", None
        size = len(decoded)
    return (name, "maxBytes", most) if size > most else None


def _decoded(text: str) -> bytes | None:
    """The bytes, or None when the text is not exactly what encoding them gives."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    # The decoder lets bits after the last byte pass; they mean that the text was damaged.
    return found if base64.b64encode(found).decode() == text else None
