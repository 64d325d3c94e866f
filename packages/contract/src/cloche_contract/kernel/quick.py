"""A short cut for values that are plainly right; whatever it does not accept at once goes to jsonschema.

jsonschema looks up a dozen keywords for each property of each call. Here the keywords of a schema become one function,
made once. It only ever says yes: a refusal, and its rule, is always jsonschema's.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

Accepts: TypeAlias = Callable[[Any], bool]

_KNOWN = frozenset(
    {"type", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum", "const", "description", "default"}
)


@cache
def compiled(pattern: str) -> Callable[[str], object]:
    """The search of a pattern; `$` is the end of the text, as in every dialect but Python's."""
    strict = f"{pattern[:-1]}\\Z" if pattern.endswith("$") and not pattern.endswith("\\$") else pattern
    return re.compile(strict).search


def acceptor(schema: Mapping[str, Any]) -> Accepts | None:
    """A function that is true for values that certainly fit, or None when the schema is not a plain one."""
    kind = schema.get("type")
    if not _KNOWN.issuperset(schema):
        return None
    if "const" in schema or "enum" in schema:
        allowed = frozenset([schema["const"]] if "const" in schema else schema["enum"])
        plain = bool if "const" in schema and isinstance(schema["const"], bool) else str
        return lambda value: type(value) is plain and value in allowed
    if kind == "string":
        return _text(schema)
    if kind == "integer":
        low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
        return lambda value: type(value) is int and low <= value <= high
    return (lambda value: type(value) is bool) if kind == "boolean" else None


def _text(schema: Mapping[str, Any]) -> Accepts:
    low, high = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    if "pattern" not in schema:
        return lambda value: type(value) is str and low <= len(value) <= high
    search = compiled(schema["pattern"])
    return lambda value: type(value) is str and low <= len(value) <= high and bool(search(value))
