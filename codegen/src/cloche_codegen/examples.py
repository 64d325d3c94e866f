"""Examples must pass and counter-examples must fail, each on the rule that it names."""

from collections.abc import Iterator
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from cloche_codegen.load import Document, JsonObject, Library
from cloche_codegen.publish import inline

CHECKS = {
    "max_bytes": "maxBytes",
    "total_bytes": "totalBytes",
    "no_parent_segment": "parentSegment",
    "base64_bytes": "base64",
}
_CONSTRAINTS = (
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "enum",
    "minItems",
    "maxItems",
    "maxProperties",
    "propertyNames",
    "type",
)


def expand(value: Any) -> Any:
    """Write out the long values that a schema file abbreviates."""
    if isinstance(value, list):
        return [expand(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    mapping = cast(JsonObject, value)
    if "x-repeat" in mapping:
        text, count = mapping["x-repeat"]
        return text * count
    if "x-keys" in mapping:
        prefix, count, item = mapping["x-keys"]
        return {f"{prefix}{index}": expand(item) for index in range(count)}
    return {key: expand(item) for key, item in mapping.items()}


def _errors(schema: JsonObject, value: Any) -> list[ValidationError]:
    validator: Any = Draft202012Validator(schema)
    return list(validator.iter_errors(value))


def failed_rules(schema: JsonObject, value: Any) -> set[tuple[str, str]]:
    """Every (argument, rule) that the value breaks."""
    found: set[tuple[str, str]] = set()
    for error in _errors(schema, value):
        rule, path = str(error.validator), [str(part) for part in error.absolute_path]
        if "propertyNames" in map(str, error.absolute_schema_path):
            rule = "propertyNames"
        names = [path[0]] if path else _missing_or_extra(rule, error)
        found |= {(name, rule) for name in names}
    return found


def _missing_or_extra(rule: str, error: ValidationError) -> list[str]:
    instance, schema = cast(JsonObject, error.instance), cast(JsonObject, error.schema)
    if rule == "required":
        return [name for name in schema["required"] if name not in instance]
    return [name for name in instance if name not in schema.get("properties", {})]


def l09(library: Library) -> Iterator[str]:
    """Every result and argument object has an example; every constraint of an input has a counter-example."""
    for folder in ("tools", "provider", "lifecycle", "agent", "common", "layerstack"):
        for doc in library.under(folder):
            for name, node in doc.defs.items():
                resolved = cast(JsonObject, inline(library, node, doc.path))
                yield from _examples(f"{doc.path}#{name}", resolved, name)
                if folder == "tools" and name.endswith("Input"):
                    yield from _counterexamples(f"{doc.path}#{name}", resolved)


def _examples(path: str, node: JsonObject, name: str) -> Iterator[str]:
    if name.endswith(("Input", "Output", "Request")) and not node.get("examples"):
        yield f"{path}: needs an example"
    for index, example in enumerate(node.get("examples", [])):
        for error in _errors(node, expand(example)):
            yield f"{path}: example {index} breaks {error.validator}"


def _counterexamples(path: str, node: JsonObject) -> Iterator[str]:
    given = cast("list[JsonObject]", node.get("x-counterexamples", []))
    named = {(case["field"], case["rule"]) for case in given}
    for field, rule in sorted(set(required_cases(node)) - named):
        yield f"{path}: no counter-example for {rule} of {field}"
    plain = {*CHECKS.values(), "base64"}
    for case in given:
        failed = failed_rules(node, expand(case["value"]))
        if case["rule"] in plain:
            if failed:
                yield f"{path}: the counter-example for {case['rule']} of {case['field']} breaks another rule first"
        elif (case["field"], case["rule"]) not in failed:
            yield f"{path}: the counter-example for {case['rule']} of {case['field']} does not break it"


def required_cases(node: JsonObject) -> Iterator[tuple[str, str]]:
    """Every (argument, rule) that an input can break."""
    for name in node.get("required", []):
        yield name, "required"
    for name, prop in cast("dict[str, JsonObject]", node["properties"]).items():
        inner = cast(JsonObject, prop.get("additionalProperties") or {})
        for rule in _CONSTRAINTS:
            if rule in prop or (rule in inner and rule != "type"):
                yield name, rule
        for check in prop.get("x-check", {}):
            yield name, CHECKS[check]
    content = node.get("x-content")
    if content:
        yield content["field"], "base64"
        yield content["field"], "maxBytes"


def documents_with_examples(library: Library) -> Iterator[tuple[Document, str, JsonObject]]:
    """Every definition that has examples, resolved."""
    for path in sorted(library.documents):
        doc = library.documents[path]
        for name, node in doc.defs.items():
            if isinstance(node, dict) and "examples" in node:
                yield doc, name, cast(JsonObject, inline(library, node, path))
