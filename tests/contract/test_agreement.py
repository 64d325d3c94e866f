"""The gate and the models agree: JSON Schema and pydantic give the same verdict on everything the schemas mention."""

from __future__ import annotations

from typing import Any

import jsonschema
import pydantic
import pytest

from cloche_codegen.examples import CHECKS
from cloche_contract.errors import InvalidArgument
from cloche_contract.kernel.registry import models
from cloche_contract.kernel.validate import check_output, parse, validate_arguments
from tests.contract.sets import BOUNDARIES, COUNTEREXAMPLES, EXAMPLES, Case, tools

# What JSON Schema cannot say: only the gate knows these.
GATE_ONLY = {*CHECKS.values(), "base64"}


def _gate(case: Case) -> InvalidArgument | None:
    try:
        validate_arguments(case.tool.set, case.tool.name, case.arguments)
    except InvalidArgument as refused:
        return refused
    return None


def _model_accepts(case: Case) -> bool:
    try:
        models(case.tool.set, case.tool.name)[0].model_validate(case.arguments)
    except pydantic.ValidationError:
        return False
    return True


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_every_example_passes_gate_and_model(case: Case) -> None:
    assert _gate(case) is None
    request = parse(case.tool.set, case.tool.name, case.arguments)
    assert request.model_dump(mode="json", exclude_unset=True) == case.arguments


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=str)
def test_every_counterexample_is_refused_by_the_rule_it_names(case: Case) -> None:
    """Seed-000: input validation names the invalid field."""
    refused = _gate(case)
    assert refused is not None
    assert (refused.details["field"], refused.details["rule"]) == (case.field, case.rule)


@pytest.mark.parametrize("case", [case for case in COUNTEREXAMPLES if case.rule not in GATE_ONLY], ids=str)
def test_model_refuses_what_the_gate_refuses(case: Case) -> None:
    assert not _model_accepts(case)


@pytest.mark.parametrize("case", BOUNDARIES, ids=str)
def test_gate_and_model_agree_at_every_boundary(case: Case) -> None:
    refused = _gate(case)
    assert (refused is None) == case.valid
    assert _model_accepts(case) == case.valid
    if refused is not None:
        assert refused.details["field"] == case.field


@pytest.mark.parametrize("case", BOUNDARIES, ids=str)
def test_plain_json_schema_differs_from_the_gate_only_where_it_is_listed(case: Case) -> None:
    """Architecture 3.6: JSON Schema calls 1.0 an integer, knows no surrogates; the stricter one wins."""
    plain: Any = jsonschema.Draft202012Validator(case.tool.input_schema)
    listed = case.label.endswith(("-float", "-surrogate", "-enum-newline"))
    if not listed:
        assert plain.is_valid(case.arguments) == (_gate(case) is None)


@pytest.mark.parametrize("name", sorted(tools()))
def test_every_output_example_passes_schema_and_model(name: str) -> None:
    tool = tools()[name]
    for example in tool.output_node["examples"]:
        made = models(tool.set, tool.name)[1].model_validate(example)
        dumped = made.model_dump(mode="json")
        assert dumped == example
        check_output(tool.set, tool.name, dumped)


@pytest.mark.parametrize("name", sorted(tools()))
def test_output_models_refuse_a_field_that_nobody_declared(name: str) -> None:
    """Architecture 3.6: a leaked field raises inside the process, never leaves it."""
    tool = tools()[name]
    example = tool.output_node["examples"][0]
    with pytest.raises(pydantic.ValidationError):
        models(tool.set, tool.name)[1].model_validate({**example, "access_token": "secret"})


@pytest.mark.parametrize("name", sorted(tools()))
def test_a_client_of_today_survives_a_server_of_tomorrow(name: str) -> None:
    tool = tools()[name]
    example = tool.output_node["examples"][0]
    model = models(tool.set, tool.name)[1]
    assert model.model_validate({**example, "new_key": 1}, extra="ignore") == model.model_validate(example)


@pytest.mark.parametrize("name", sorted(tools()))
def test_input_defaults_are_those_of_the_published_schema(name: str) -> None:
    tool = tools()[name]
    made = models(tool.set, tool.name)[0].model_validate(tool.input_node["examples"][0]).model_dump(mode="json")
    properties: dict[str, Any] = tool.input_schema["properties"]
    given = tool.input_node["examples"][0]
    expected = {key: node["default"] for key, node in properties.items() if "default" in node}
    assert made == {**expected, **given}
