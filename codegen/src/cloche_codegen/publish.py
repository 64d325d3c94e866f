"""The published view of a schema: references inlined, `x-` keywords, titles and examples gone."""

from collections.abc import Mapping
from typing import Any, cast

from cloche_codegen.load import JsonObject, Library

_DROPPED = ("title", "examples", "$comment")
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs")


def inline(library: Library, node: Any, base: str, seen: tuple[str, ...] = ()) -> Any:
    """Replace every `$ref` by what it names; keys next to it win over the keys of its target."""
    if isinstance(node, list):
        return [inline(library, item, base, seen) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    mapping = cast(JsonObject, node)
    if isinstance(mapping.get("$ref"), str):
        path, name, target = library.resolve(mapping["$ref"], base)
        key = f"{path}#{name}"
        if key in seen:
            raise RecursionError(f"{base}: {key} contains itself")
        resolved = cast(JsonObject, inline(library, target, path, (*seen, key)))
        beside = {k: inline(library, v, base, seen) for k, v in mapping.items() if k != "$ref"}
        return {**resolved, **beside}
    return {key: _kept(library, key, value, base, seen) for key, value in mapping.items()}


def _kept(library: Library, key: str, value: Any, base: str, seen: tuple[str, ...]) -> Any:
    if key in ("examples", "x-counterexamples", "default", "const", "enum"):
        return value
    return inline(library, value, base, seen)


def strip(node: Any, in_map: bool = False) -> Any:
    """Drop what only the repository needs."""
    if isinstance(node, list):
        return [strip(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    return {
        key: value if key in ("default", "const", "enum") else strip(value, key in _SCHEMA_MAPS)
        for key, value in cast(JsonObject, node).items()
        if in_map or not (key.startswith("x-") or key in _DROPPED)
    }


def published(library: Library, node: Mapping[str, Any], base: str) -> JsonObject:
    """What a client receives, with the keys in one fixed order."""
    bare = cast(JsonObject, strip(inline(library, dict(node), base)))
    bare.pop("description", None)
    first = {"type": "object", "properties": bare.pop("properties", {}), "required": bare.pop("required", [])}
    bare.pop("type", None)
    return {**first, **bare}


def checks(library: Library, node: Mapping[str, Any], base: str) -> JsonObject:
    """The rules that JSON Schema cannot say, as data for `kernel.validate`."""
    found: JsonObject = {}
    for name, prop in cast("Mapping[str, Any]", node.get("properties", {})).items():
        check = cast(JsonObject, inline(library, prop, base)).get("x-check")
        if check:
            found[name] = check
    return {"fields": found, "content": node["x-content"]} if "x-content" in node else {"fields": found}
