"""The portable subset: every rule of it notices what it is for."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from cloche_codegen.ir import Tool, tool_sets
from cloche_codegen.portable import input_findings, output_findings
from tests.codegen.schemas import real

TOOLS = {tool.name: tool for each in tool_sets(real()) for tool in each.tools}


@pytest.fixture
def tool() -> Tool:
    return copy.deepcopy(TOOLS["create_sandbox"])


def _findings(tool: Tool) -> str:
    return " ".join(input_findings(tool.input_schema, tool.input_node))


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_published_inputs_keep_to_the_subset(name: str) -> None:
    """Decision D8; faults M8, M9, M10."""
    assert _findings(TOOLS[name]) == ""
    assert list(output_findings(TOOLS[name].output_schema)) == []


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize("draft", [jsonschema.Draft7Validator, jsonschema.Draft202012Validator])
def test_published_schemas_are_valid_in_both_dialects_that_clients_use(name: str, draft: Any) -> None:
    draft.check_schema(TOOLS[name].input_schema)
    draft.check_schema(TOOLS[name].output_schema)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_nothing_of_the_repository_is_published(name: str) -> None:
    """x- keywords, titles, examples, references and definitions stay here."""
    for schema in (TOOLS[name].input_schema, TOOLS[name].output_schema):
        text = str(schema)
        for word in ("'x-", "'$ref'", "'$defs'", "'$schema'", "'$id'", "'title'", "'examples'"):
            assert word not in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"type": ["string", "null"]}, "exactly one string type"),
        ({"type": "string", "format": "uri"}, "format"),
        ({"type": "string", "pattern": "[a-z]"}, "anchored"),
        ({"type": "string", "pattern": "^(?=a)b"}, "look-around"),
        ({"type": "integer", "enum": [1, 2]}, "enum is for strings"),
        ({"type": "string", "enum": [""]}, "none of them empty"),
        ({"type": "array"}, "exactly one string type"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "nested object"),
        ({"type": "integer", "exclusiveMinimum": 0}, "exclusiveMinimum"),
        ({"type": "integer", "maximum": 77}, "does not repeat maximum"),
        ({"type": "integer", "default": 77}, "does not repeat the default"),
        ({"type": "string", "const": "a"}, "const"),
        ({"anyOf": [{"type": "string"}]}, "exactly one string type"),
    ],
)
def test_argument_outside_the_subset_is_found(tool: Tool, change: dict[str, Any], said: str) -> None:
    tool.input_schema["properties"]["region"] = {"description": "Region.", **change}
    assert said in _findings(tool)


def test_argument_without_a_description_is_found(tool: Tool) -> None:
    tool.input_schema["properties"]["region"] = {"type": "string", "description": ""}
    assert "a description of 1 to 300 characters" in _findings(tool)


def test_combinator_at_the_root_is_found(tool: Tool) -> None:
    tool.input_schema["anyOf"] = [{}]
    assert "the root of an input" in _findings(tool)


def test_envs_without_its_declared_exception_is_found(tool: Tool) -> None:
    """Decision D8: envs is the one map."""
    assert _findings(tool) == ""
    del tool.input_node["properties"]["envs"]["x-portable-exception"]
    assert "envs" in _findings(tool)


def test_envs_is_the_only_declared_exception() -> None:
    declared = [
        (name, key)
        for name, each in TOOLS.items()
        for key, node in each.input_node["properties"].items()
        if "x-portable-exception" in node
    ]
    assert declared == [("create_sandbox", "envs")]


def test_output_with_a_number_that_javascript_cannot_hold_is_found(tool: Tool) -> None:
    tool.output_schema["properties"]["size"] = {"type": "integer", "maximum": 2**63}
    assert any("2^53" in text for text in output_findings(tool.output_schema))
