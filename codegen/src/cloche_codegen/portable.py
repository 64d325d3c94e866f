"""The portable subset: what every MCP client and model API accepts in an input schema, checked on what is published.

Source: decision D8, and the evidence in the design's page on MCP, section 4.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from cloche_codegen.ir import Tool, tool_sets
from cloche_codegen.load import JsonObject, Library

NAME = re.compile(r"^[a-z][a-z0-9_]{2,40}$")
_TYPES = {"string", "integer", "number", "boolean", "array", "object"}
_ANNOTATIONS = {"type", "description", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern"}
_LISTS = {"items", "minItems", "maxItems", "properties", "required", "additionalProperties"}
_ROOT = {"type", "properties", "required", "additionalProperties"}
_MAP = {"propertyNames", "maxProperties"}
_SAFE_INTEGER = 2**53 - 1
_DEFAULT = re.compile(r"default (?:is )?([0-9]+|/[^\s,.;]*|utf-8|python)(?=[\s,.;]|$)")
_UNSAFE_PATTERN = re.compile(r"\(\?[=!<]|\\[1-9]|\\[uUpP]")


def defaults_in(description: str) -> list[str]:
    """Every default value that a description mentions."""
    return _DEFAULT.findall(description)


def findings(library: Library) -> Iterator[str]:
    """Every published input keeps to the subset, every published output to the rules for outputs."""
    sets = tool_sets(library)
    for each in sets:
        if len(each.tools) > 20:
            yield f"{each.schema}: more than 20 tools"
        for tool in each.tools:
            yield from (f"{tool.schema}: {text}" for text in _tool(tool))
    if sum(len(each.tools) for each in sets) > 40:
        yield "more than 40 tools in all sets"


def _tool(tool: Tool) -> Iterator[str]:
    if not NAME.match(tool.name) or len(tool.name) > 40:
        yield "the name of the tool is not portable"
    if not 0 < len(tool.description) <= 1024:
        yield "the description of the tool has 1 to 1024 characters"
    yield from input_findings(tool.input_schema, tool.input_node)
    yield from output_findings(tool.output_schema)


def input_findings(schema: JsonObject, source: JsonObject) -> Iterator[str]:
    """Rules 1 to 10 on one published input; `source` holds the declared exceptions."""
    if set(schema) != _ROOT or schema["type"] != "object" or schema["additionalProperties"] is not False:
        yield "the root of an input has exactly type, properties, required and additionalProperties false"
        return
    declared = cast("dict[str, JsonObject]", source["properties"])
    for name, node in cast("dict[str, JsonObject]", schema["properties"]).items():
        if not NAME.match(name) or len(name) > 40:
            yield f"the argument name {name} is not portable"
        if not 0 < len(node.get("description", "")) <= 300:
            yield f"{name}: a description of 1 to 300 characters"
        yield from _repeated(name, node)
        yield from (f"{name}: {text}" for text in _node(node, "x-portable-exception" in declared[name], 1))


def _repeated(name: str, node: JsonObject) -> Iterator[str]:
    """Clients drop keywords, so a description repeats the default and the limits."""
    description = cast(str, node["description"])
    default = node.get("default")
    said = json.dumps(default) if isinstance(default, bool) else default
    if "default" in node and f"default {said}" not in description.replace("default is", "default"):
        yield f"{name}: the description does not repeat the default"
    for rule in ("minimum", "maximum"):
        if rule in node and str(node[rule]) not in description and not (rule == "minimum" and node[rule] == 0):
            yield f"{name}: the description does not repeat {rule}"


def _node(node: Any, excepted: bool, depth: int) -> Iterator[str]:
    mapping = cast(JsonObject, node) if isinstance(node, dict) else {}
    kind: Any = mapping.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        yield "every node has exactly one string type"
        return
    extra = set(mapping) - _ANNOTATIONS - _LISTS - (_MAP if excepted else set())
    if extra:
        yield f"not portable: {', '.join(sorted(extra))}"
    if depth > 5:
        yield "deeper than 5 levels"
    yield from _enum(mapping)
    pattern = cast(str, mapping.get("pattern", "^"))
    if not pattern.startswith("^") or _UNSAFE_PATTERN.search(pattern):
        yield "a pattern is anchored and has neither look-around nor back references"
    if mapping["type"] == "array":
        yield from _node(mapping.get("items"), excepted, depth + 1)
    if mapping["type"] == "object" and not excepted:
        yield from _object(mapping, depth)


def _enum(mapping: JsonObject) -> Iterator[str]:
    values = cast("list[Any]", mapping.get("enum", ["x"]))
    if "enum" in mapping and mapping["type"] != "string":
        yield "enum is for strings"
    if len(values) > 100 or not all(isinstance(value, str) and value for value in values):
        yield "an enum has at most 100 values, none of them empty"


def _object(mapping: JsonObject, depth: int) -> Iterator[str]:
    if mapping.get("additionalProperties") is not False or "properties" not in mapping or "required" not in mapping:
        yield "a nested object has properties, required and additionalProperties false"
        return
    for name, inner in cast(JsonObject, mapping["properties"]).items():
        yield from (f"{name}: {text}" for text in _node(inner, False, depth + 1))


def output_findings(schema: JsonObject) -> Iterator[str]:
    """Rule 11: root object, no references, numbers that every language can hold."""
    if schema.get("type") != "object":
        yield "the root of an output is an object"
    yield from _output_node(schema)


def _output_node(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _output_node(item)
    elif isinstance(node, dict):
        mapping = cast(JsonObject, node)
        if "$ref" in mapping or "$defs" in mapping:
            yield "an output has no references"
        for key in ("minimum", "maximum"):
            if isinstance(mapping.get(key), int) and abs(mapping[key]) > _SAFE_INTEGER:
                yield f"{key} is beyond 2^53-1"
        for key, value in mapping.items():
            if key not in ("enum", "const", "default"):
                yield from _output_node(value)
