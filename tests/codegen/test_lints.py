"""Each rule over the schemas holds today, and notices what it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloche_codegen import lint
from cloche_codegen.load import SchemaError
from tests.codegen.schemas import bent, broken, real

TIMEOUT = "tools/sandbox/set_sandbox_timeout.json"
COMMAND = "tools/sandbox/run_command.json"
CATALOG = "errors/catalog.json"
SETTINGS = "config/settings.json"


def _input(data: dict[str, Any]) -> dict[str, Any]:
    return next(node for name, node in data["$defs"].items() if name.endswith("Input"))


def _output(data: dict[str, Any]) -> dict[str, Any]:
    return next(node for name, node in data["$defs"].items() if name.endswith("Output"))


def test_the_schemas_of_the_repository_break_no_rule() -> None:
    lint.check(real())


@pytest.mark.parametrize("rule", sorted(lint.RULES))
def test_every_rule_has_a_sentence_that_explains_it(rule: str) -> None:
    assert (lint.RULES[rule].__doc__ or "").strip().endswith(".")


def test_l01_nested_object_outside_defs_is_found() -> None:
    nested: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    found = broken("L01", TIMEOUT, lambda data: _output(data)["properties"].update(extra=nested))
    assert found
    assert "extra" in found[0]


def test_l01_object_with_another_title_is_found() -> None:
    assert broken("L01", TIMEOUT, lambda data: _input(data).update(title="Argument1"))


def test_l02_description_without_a_full_stop_is_found() -> None:
    found = broken("L02", TIMEOUT, lambda data: _output(data)["properties"]["timeout"].update(description="Lifetime"))
    assert found
    assert "timeout" in found[0]


def test_l03_number_without_a_unit_is_found() -> None:
    found = broken("L03", TIMEOUT, lambda data: _output(data)["properties"]["timeout"].pop("x-unit"))
    assert found
    assert "timeout" in found[0]


def test_l04_object_that_is_silent_about_more_properties_is_found() -> None:
    assert broken("L04", TIMEOUT, lambda data: _input(data).pop("additionalProperties"))


def test_l05_argument_without_a_maximum_is_found() -> None:
    found = broken("L05", COMMAND, lambda data: _input(data)["properties"]["command"].pop("maxLength"))
    assert found
    assert "command" in found[0]


def test_l05_list_from_the_agent_without_a_maximum_is_found() -> None:
    path = "agent/filesystem.json"
    found = broken("L05", path, lambda data: data["$defs"]["ListDirResponse"]["properties"]["entries"].pop("maxItems"))
    assert found
    assert "entries" in found[0]


def test_l06_enum_inside_a_tool_is_found() -> None:
    stray = {"type": "string", "enum": ["a", "b"], "description": "Letters."}
    assert broken("L06", TIMEOUT, lambda data: _input(data)["properties"].update(letters=stray))


def test_l06_same_enum_twice_is_found() -> None:
    path = "common/files.json"
    twin = {"type": "string", "enum": ["base64", "utf-8"], "description": "Twin."}
    found = broken("L06", path, lambda data: data["$defs"].update(Twin=twin))
    assert found
    assert "Twin" in found[0] + found[-1]


def test_l07_error_that_no_catalogue_knows_is_found() -> None:
    found = broken("L07", TIMEOUT, lambda data: data["x-tool"]["errors"].append("bad_weather"))
    assert found == [f"{TIMEOUT}: bad_weather is not in the catalogue"]


def test_l07_error_that_nothing_uses_is_found() -> None:
    found = broken("L07", "errors/catalog.json", lambda data: data["errors"]["internal_error"].pop("used_by"))
    assert found == []
    found = broken("L07", "errors/catalog.json", lambda data: data["errors"]["output_mismatch"].pop("used_by"))
    assert found == ["errors/catalog.json: nothing uses output_mismatch"]


def test_l07_error_number_that_is_there_twice_is_found() -> None:
    found = broken("L07", "errors/catalog.json", lambda data: data["errors"]["disk_full"].update(code="E1000"))
    assert found == ["errors/catalog.json: E1000 is there twice"]


def test_l08_result_field_that_forgot_its_disclosure_is_internal_and_found() -> None:
    """Forgetting x-disclosure fails closed."""
    found = broken("L08", TIMEOUT, lambda data: _output(data)["properties"]["timeout"].pop("x-disclosure"))
    assert found
    assert "internal is above the ceiling model" in found[0]


def test_l08_url_without_its_declared_exception_is_found() -> None:
    """Decision D3: create_sandbox.url is the one exception."""
    path = "tools/sandbox/create_sandbox.json"
    found = broken("L08", path, lambda data: _output(data)["properties"]["url"].pop("x-disclosure-exception"))
    assert found
    assert "operator is above the ceiling model" in found[0]


def test_l08_internal_field_inside_a_shared_object_is_found() -> None:
    path = "common/files.json"
    found = broken("L08", path, lambda data: data["$defs"]["FileEntry"]["properties"]["path"].pop("x-disclosure"))
    assert any("list_files" in line for line in found)


def test_l09_input_without_an_example_is_found() -> None:
    assert broken("L09", TIMEOUT, lambda data: _input(data).pop("examples"))


def test_l09_example_that_fails_is_found() -> None:
    found = broken("L09", TIMEOUT, lambda data: _input(data)["examples"].append({"timeout": 0}))
    assert found
    assert "breaks minimum" in found[0]


def test_l09_constraint_without_a_counterexample_is_found() -> None:
    found = broken("L09", TIMEOUT, lambda data: _input(data).update({"x-counterexamples": []}))
    assert any("no counter-example for maximum of timeout" in line for line in found)


def test_l09_counterexample_that_passes_is_found() -> None:
    case = {"value": {"timeout": 5}, "field": "timeout", "rule": "minimum"}
    found = broken("L09", TIMEOUT, lambda data: _input(data)["x-counterexamples"].append(case))
    assert found
    assert "does not break it" in found[0]


def test_l10_input_that_is_no_object_is_found() -> None:
    assert broken("L10", TIMEOUT, lambda data: _input(data).update(type="array"))


def test_l11_untagged_union_is_found() -> None:
    union = {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "Either."}
    assert broken("L11", TIMEOUT, lambda data: _output(data)["properties"].update(either=union))


def test_l11_one_of_without_a_tag_is_found_and_with_one_is_not() -> None:
    def branch(tag: str | None) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": tag} if tag else {"type": "string"}}}

    for tags, expected in ((("a", None), 1), (("a", "b"), 0)):
        union = {"oneOf": [branch(tag) for tag in tags], "description": "Either."}
        found = broken("L11", TIMEOUT, lambda data, union=union: _output(data)["properties"].update(either=union))
        assert len(found) == expected


def test_l12_argument_with_an_awkward_name_is_found() -> None:
    case = {"type": "string", "maxLength": 5, "description": "Text."}
    assert broken("L12", TIMEOUT, lambda data: _input(data)["properties"].update({"sandboxId": case}))


def test_l13_description_with_another_default_is_found() -> None:
    change = {"description": "Seconds until it is killed, 1 to 3600, default 30."}
    found = broken("L13", COMMAND, lambda data: _input(data)["properties"]["timeout"].update(change))
    assert any("the description says default 30" in line for line in found)


def test_l13_tool_description_with_another_default_is_found() -> None:
    found = broken("L13", COMMAND, lambda data: data.update(description="Run it, default 61."))
    assert found == [f"{COMMAND}: the description says default 61"]


def test_order_that_forgets_a_tool_is_found() -> None:
    found = broken("ORDER", "toolsets/sandbox.json", lambda data: data["order"].remove("run_code"))
    assert found == ["toolsets/sandbox.json: run_code is not in the order"]


MISTAKES: list[tuple[str, str, Callable[[dict[str, Any]], object]]] = [
    ("unknown-keyword", TIMEOUT, lambda data: data.update({"x-colour": "red"})),
    ("missing-fact", TIMEOUT, lambda data: data["x-tool"].pop("annotations")),
    ("unknown-unit", TIMEOUT, lambda data: _input(data)["properties"]["timeout"].update({"x-unit": "fortnight"})),
    ("no-type", TIMEOUT, lambda data: _input(data)["properties"]["timeout"].update({"type": "whole"})),
    ("placeholder", CATALOG, lambda data: data["errors"]["disk_full"].update(message="Disk {name} is full.")),
    ("secret-toml", SETTINGS, lambda data: data["settings"]["sandbox_api_key"].update(toml="core.key")),
    ("ceiling", "toolsets/sandbox.json", lambda data: data.update(disclosure_ceiling="secret")),
    ("id", "common/files.json", lambda data: data.update({"$id": "https://example.org/files.json"})),
]


@pytest.mark.parametrize(("path", "change"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_meta_schemas_refuse_what_they_do_not_know(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(SchemaError, match=path):
        lint.check(bent(path, change))
