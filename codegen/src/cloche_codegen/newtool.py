"""`new-tool SET NAME`: a schema that passes every rule, its place in the order, its line in the requirements."""

import json
from pathlib import Path
from typing import Any, cast

from cloche_codegen.ir import camel
from cloche_codegen.load import JsonObject, SchemaError
from cloche_codegen.portable import NAME

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"$ref": "../../common/sandbox.json#/$defs/SandboxRef"}


def create(repository: Path, toolset: str, name: str) -> list[Path]:
    """Write the skeleton; return the files that were made or changed."""
    set_file = repository / "schemas" / "toolsets" / f"{toolset}.json"
    file = repository / "schemas" / "tools" / toolset / f"{name}.json"
    if not set_file.is_file():
        raise SchemaError(f"there is no tool set {toolset}")
    if not NAME.match(name) or len(name) > 40:
        raise SchemaError(f"{name}: a name matches {NAME.pattern}, at most 40 characters")
    if file.exists():
        raise SchemaError(f"{file.relative_to(repository)} is already there")
    facts = cast(JsonObject, json.loads(set_file.read_text(encoding="utf-8")))
    facts["order"].append(name)
    _write(set_file, facts)
    version = (repository / "schemas" / "CONTRACT_VERSION").read_text(encoding="utf-8").strip()
    _write(file, _skeleton(toolset, name, version))
    return [file, set_file, *_require(repository, name)]


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _require(repository: Path, name: str) -> list[Path]:
    """Add the tool to the requirements, which a test holds against the tools that there are."""
    manifest = repository / "tests" / "requirements.py"
    marker = "    # new tools above this line\n"
    text = manifest.read_text(encoding="utf-8") if manifest.is_file() else ""
    if marker not in text:
        return []
    entry = f'    "{name}": Requirement("Say in a sentence what {name} must do.", "schemas"),\n'
    manifest.write_text(text.replace(marker, entry + marker), encoding="utf-8")
    return [manifest]


def _skeleton(toolset: str, name: str, version: str) -> JsonObject:
    words = name.replace("_", " ")
    return {
        "$schema": _DIALECT,
        "$id": f"https://cloche.invalid/schemas/tools/{toolset}/{name}.json",
        "title": name,
        "description": f"Say in a sentence what {name} does, with its limits and defaults.",
        "x-tool": {
            "set": toolset,
            "title": words.capitalize(),
            "since": version,
            "stability": "experimental",
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": True,
            },
            "errors": ["internal_error", "invalid_argument"],
            "docs": {"when": ["Say when a model should call it."], "source": ["schemas"]},
        },
        "$defs": {f"{camel(name)}Input": _input(name), f"{camel(name)}Output": _output(name)},
    }


def _input(name: str) -> JsonObject:
    return {
        "title": f"{camel(name)}Input",
        "description": f"Arguments of {name}.",
        "type": "object",
        "properties": {"sandbox_id": _REFERENCE},
        "required": [],
        "additionalProperties": False,
        "examples": [{}, {"sandbox_id": "sb7f3a"}],
        "x-counterexamples": [
            {"value": {"sandbox_id": ""}, "field": "sandbox_id", "rule": "minLength"},
            {"value": {"sandbox_id": {"x-repeat": ["a", 1025]}}, "field": "sandbox_id", "rule": "maxLength"},
            {"value": {"sandbox_id": 7}, "field": "sandbox_id", "rule": "type"},
            {"value": {"team": "a"}, "field": "team", "rule": "additionalProperties"},
        ],
    }


def _output(name: str) -> JsonObject:
    success = {"const": True, "description": "Always true: a failure is an error.", "x-disclosure": "model"}
    return {
        "title": f"{camel(name)}Output",
        "description": f"Result of {name}.",
        "type": "object",
        "properties": {"success": success},
        "required": ["success"],
        "additionalProperties": False,
        "examples": [{"success": True}],
    }
