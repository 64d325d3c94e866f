"""Every tool of the contract, as tests need it: schemas, models, examples, counter-examples, derived boundaries."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cloche_codegen.examples import expand
from cloche_codegen.ir import Tool, tool_sets
from cloche_codegen.load import load

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def tools() -> dict[str, Tool]:
    """All tools, by `set-tool`, in contract order."""
    sets = tool_sets(load(ROOT / "schemas"))
    return {f"{each.name}-{tool.name}": tool for each in sets for tool in each.tools}


@dataclass(frozen=True)
class Case:
    """Arguments of one tool, and whether they are right."""

    tool: Tool
    label: str
    arguments: Any
    valid: bool
    field: str = ""
    rule: str = ""

    def __str__(self) -> str:
        return f"{self.tool.name}-{self.label}"


def _examples() -> Iterator[Case]:
    for tool in tools().values():
        for index, value in enumerate(tool.input_node["examples"]):
            yield Case(tool, f"example-{index}", expand(value), True)


def _counterexamples() -> Iterator[Case]:
    for tool in tools().values():
        for index, case in enumerate(tool.input_node["x-counterexamples"]):
            label = f"{case['field']}-{case['rule']}-{index}"
            yield Case(tool, label, expand(case["value"]), False, case["field"], case["rule"])


def _boundaries() -> Iterator[Case]:
    """The last value inside and the first outside of every limit, and the types that look alike."""
    for tool in tools().values():
        base = expand(tool.input_node["examples"][0])
        if "x-content" in tool.input_node:
            base[tool.input_node["x-content"]["field"]] = ""  # right in every encoding
        for name, node in cast("dict[str, dict[str, Any]]", tool.input_schema["properties"]).items():
            for label, value, valid in _values(node):
                yield Case(tool, f"{name}-{label}", {**base, name: value}, valid, name)


def _values(node: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    yield "null", None, False
    if node["type"] == "integer":
        yield "lowest", node["minimum"], True
        yield "below", node["minimum"] - 1, False
        yield "highest", node["maximum"], True
        yield "above", node["maximum"] + 1, False
        yield "float", float(node["minimum"]), False
        yield "text", str(node["minimum"]), False
        yield "bool", True, False
        yield "huge", 10**30, False
    elif "enum" in node:
        yield from (("enum-" + value, value, True) for value in node["enum"])
        yield "enum-upper", node["enum"][0].upper(), False
        yield "enum-newline", node["enum"][0] + "\n", False
    elif node["type"] == "string":
        yield "number", 1, False
        yield "list", [], False
        yield "surrogate", "/\ud800", False
        if "minLength" in node:
            yield "empty", "", False
    else:
        yield "list", [], False
        yield "text", "{}", False


EXAMPLES = tuple(_examples())
COUNTEREXAMPLES = tuple(_counterexamples())
BOUNDARIES = tuple(_boundaries())
