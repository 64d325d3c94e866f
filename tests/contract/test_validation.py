"""A refusal names the argument and the rule, and nothing that the caller sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloche_contract.errors import InvalidArgument, OutputMismatch, envelope
from cloche_contract.kernel.failure import RULES
from cloche_contract.kernel.validate import check_output, validate_arguments
from tests.contract.sets import COUNTEREXAMPLES, Case, tools

MARKER = "hunter2-9f81c3"


def _refusal(tool: str, arguments: Any, toolset: str = "sandbox") -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        validate_arguments(toolset, tool, arguments)
    return caught.value


def _refused(toolset: str, tool: str, arguments: Any) -> InvalidArgument | None:
    try:
        validate_arguments(toolset, tool, arguments)
    except InvalidArgument as refused:
        return refused
    return None


def _strings(value: Any) -> list[str]:
    """Every text in a JSON value, keys included."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        return [text for key, part in mapping.items() for text in (key, *_strings(part))]
    if isinstance(value, list):
        return [text for part in cast("list[Any]", value) for text in _strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=str)
def test_message_holds_no_value_of_a_counterexample(case: Case) -> None:
    """Seed-000: without echoing its value. Decision D12."""
    refused = _refusal(case.tool.name, case.arguments, case.tool.set)
    text = json.dumps(envelope(case.tool.set, refused)) + str(refused) + repr(refused)
    words = {*RULES, *case.tool.input_schema["properties"], case.field, "base64"}
    for value in _strings(case.arguments):
        assert len(value) < 4 or value in words or value not in text


WRAPS: list[Callable[[str], Any]] = [str, lambda text: [text], lambda text: {text: text}, lambda text: {"a": [text]}]


@pytest.mark.parametrize("name", list(tools()))
@pytest.mark.parametrize("wrap", WRAPS, ids=["text", "list", "map", "nested"])
def test_marker_in_any_argument_never_comes_back(name: str, wrap: Callable[[str], Any]) -> None:
    tool = tools()[name]
    for field, node in tool.input_schema["properties"].items():
        broken = wrap(MARKER + "\x00..") if node["type"] == "string" else wrap(MARKER)
        if field == "content" and isinstance(broken, str):
            continue
        base = tool.input_node["examples"][0]
        refused = _refused(tool.set, tool.name, {**base, field: broken})
        if refused is None:
            assert field in ("sandbox_id", "template", "code", "image")
            continue
        assert refused.details["field"] in (field, "")
        assert MARKER not in json.dumps(envelope(tool.set, refused)) + repr(refused) + str(refused.__cause__)


@pytest.mark.parametrize("arguments", [[], "text", 7, None, True, [{}]])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    """Systems 1.5: tool arguments must be an object."""
    refused = _refusal("run_code", arguments)
    assert refused.details == {"field": "", "rule": "type"}
    assert str(refused) == "arguments: has the wrong type."


def test_unknown_argument_is_named_when_it_looks_like_a_name() -> None:
    """Decision D12."""
    assert _refusal("get_sandbox", {"team": 1}).details["field"] == "team"


@pytest.mark.parametrize("name", ["sk-live 12345", "", "a" * 65, "ключ", "x\ny", "{secret}"])
def test_unknown_argument_that_looks_like_a_value_is_not_named(name: str) -> None:
    refused = _refusal("get_sandbox", {name: 1})
    assert refused.details["field"] == ""
    assert not name or name not in json.dumps(envelope("sandbox", refused), ensure_ascii=False)


def test_message_tells_the_limit_that_the_schema_sets() -> None:
    assert str(_refusal("set_sandbox_timeout", {"timeout": 90000})) == "timeout: must be at most 86400."
    assert str(_refusal("set_sandbox_timeout", {})) == "timeout: is required."
    assert str(_refusal("run_code", {"code": "1", "lang": "r"})) == "lang: is not an argument of this tool."


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_is_not_unicode_is_refused(text: str) -> None:
    assert _refusal("run_code", {"code": text}).details == {"field": "code", "rule": "unicode"}
    assert _refusal("create_sandbox", {"envs": {"A": text}}).details == {"field": "envs", "rule": "unicode"}


def test_newline_after_the_end_of_a_pattern_does_not_slip_through() -> None:
    """In Python `$` matches before a last newline."""
    assert _refusal("list_sandboxes", {"region": "eu\n"}).details["rule"] == "pattern"
    assert _refusal("list_sandboxes", {"provider": "local\n"}).details["rule"] == "pattern"
    assert _refusal("write_file", {"path": "/a", "content": "", "mode": "755\n"}).details["rule"] in (
        "pattern",
        "maxLength",
    )


@pytest.mark.parametrize("path", ["/a/../b", "/..", "/../etc", "/a/.."])
def test_parent_segment_in_a_path_is_refused(path: str) -> None:
    assert _refusal("read_file", {"path": path}).details["rule"] == "parentSegment"


@pytest.mark.parametrize("path", ["/a..b", "/...", "/..a/b..", "/a b", "/é"])
def test_dots_inside_a_name_are_allowed(path: str) -> None:
    validate_arguments("sandbox", "read_file", {"path": path})


def test_base64_is_strict_and_its_limit_counts_decoded_bytes() -> None:
    """Decision D9: text content 4 MiB decoded."""
    whole = {"path": "/a", "encoding": "base64"}
    validate_arguments("sandbox", "write_file", {**whole, "content": "QUJD" * (4194304 // 3)})
    for content in ("QUJ", "QU JD", "QUJD\n", "QUJ*", "Q===", "QR==", "QUJDé"):
        assert _refusal("write_file", {**whole, "content": content}).details["rule"] == "base64"
    too_long = "QUJD" * (4194304 // 3 + 1)
    assert _refusal("write_file", {**whole, "content": too_long}).details["rule"] in ("maxBytes", "maxLength")


def test_refused_output_holds_nothing_of_it() -> None:
    with pytest.raises(OutputMismatch) as caught:
        check_output("sandbox", "kill_sandbox", {"success": True, "sandbox_id": "a", "token": MARKER})
    assert MARKER not in str(caught.value) + json.dumps(envelope("sandbox", caught.value))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists)))
def test_any_object_is_judged_without_a_surprise(arguments: dict[str, Any]) -> None:
    """Whatever a client sends: accepted, or InvalidArgument, and nothing else."""
    for tool in ("create_sandbox", "run_command", "write_file"):
        refused = _refused("sandbox", tool, arguments)
        assert refused is None or refused.details["rule"] in ("required", "additionalProperties", "type")
