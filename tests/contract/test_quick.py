"""The short cut of the gate says yes only where JSON Schema says yes."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloche_contract.kernel.quick import acceptor
from tests.contract.sets import BOUNDARIES, tools

SCHEMAS: dict[str, dict[str, Any]] = {
    f"{tool.name}-{side}-{name}": node
    for tool in tools().values()
    for side, schema in (("in", tool.input_schema), ("out", tool.output_schema))
    for name, node in schema["properties"].items()
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-2, 3),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["python", "utf-8", "exit", "running", "755", "/a", "local", "", "\n", "local\n", "/a\n"]),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
)


@settings(max_examples=300, deadline=None)
@given(value=VALUES)
@example(value=1.0)
@example(value=True)
@example(value=1)
def test_it_accepts_nothing_that_json_schema_refuses(value: Any) -> None:
    for name, node in SCHEMAS.items():
        accepts = acceptor(node)
        if accepts is not None and accepts(value):
            validator: Any = jsonschema.Draft202012Validator(node)
            assert validator.is_valid(value), name


@pytest.mark.parametrize("case", [case for case in BOUNDARIES if not case.valid], ids=str)
def test_it_accepts_nothing_on_the_wrong_side_of_a_boundary(case: Any) -> None:
    accepts = acceptor(case.tool.input_schema["properties"][case.field])
    # A surrogate is text to JSON Schema; the check of Unicode comes after it.
    assert accepts is None or case.label.endswith("surrogate") or not accepts(case.arguments[case.field])


UNKNOWN: list[dict[str, Any]] = [
    {"type": ["string", "null"]},
    {"type": "string", "format": "uri"},
    {"type": "array"},
    {},
    {"not": {}},
]


@pytest.mark.parametrize("schema", UNKNOWN, ids=str)
def test_it_leaves_what_it_does_not_know_to_json_schema(schema: dict[str, Any]) -> None:
    assert acceptor(schema) is None


def test_it_decides_about_most_properties() -> None:
    """Otherwise it is not worth its lines."""
    decided = sum(acceptor(node) is not None for node in SCHEMAS.values())
    assert decided / len(SCHEMAS) > 0.75
