"""The smaller parts of the kernel: errors as values, doors, plugins, the registry."""

from __future__ import annotations

import pickle
from datetime import UTC
from importlib.metadata import EntryPoint

import pytest

from cloche_contract.errors import (
    BackendUnavailable,
    ClocheError,
    FileTooLarge,
    InvalidArgument,
    NotFound,
    SandboxNotFound,
    from_code,
)
from cloche_contract.kernel import plugins
from cloche_contract.kernel.doors import RandomIds, SystemClock
from cloche_contract.registry import published_set


def test_error_survives_a_pickle_with_its_details() -> None:
    error = pickle.loads(pickle.dumps(FileTooLarge(size=5, limit=4)))
    assert isinstance(error, FileTooLarge)
    assert error.details == {"size": 5, "limit": 4}


def test_error_is_caught_by_its_category() -> None:
    with pytest.raises(NotFound):
        raise SandboxNotFound


def test_details_that_were_not_given_are_not_there() -> None:
    assert FileTooLarge().details == {}
    assert InvalidArgument(field="a", rule="type").details == {"field": "a", "rule": "type"}


def test_cause_brings_its_own_text_and_its_own_fix() -> None:
    """Decision D22: backend_unavailable with cause and fix."""
    error = BackendUnavailable(cause="user_namespaces_disabled")
    assert str(error).endswith("User namespaces are switched off.")
    assert error.hint.startswith("Set user.max_user_namespaces")
    assert error.hint != BackendUnavailable.suggestion


def test_error_from_a_wire_keeps_only_details_of_the_catalogue() -> None:
    error = from_code("file_too_large", {"size": 9, "message": "secret"})
    assert isinstance(error, FileTooLarge)
    assert error.details == {"size": 9}


@pytest.mark.parametrize("code", ["", "nope", "ClocheError", "E4003"])
def test_code_that_no_catalogue_knows_gives_no_error(code: str) -> None:
    assert from_code(code) is None


def test_base_error_is_an_internal_one() -> None:
    assert ClocheError().code == "internal_error"


def test_clock_tells_its_zone_and_never_runs_backwards() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    first = clock.monotonic()
    assert clock.monotonic() >= first


def test_ids_differ_and_are_hosts_and_file_names() -> None:
    made = {RandomIds().new_id() for _ in range(100)}
    assert len(made) == 100
    assert all((name.isalnum() and name.islower()) or name.isdigit() for name in made)


def test_installed_plugins_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("b", "json:loads", "x"), EntryPoint("a", "json:dumps", "x")]

    def entry_points(*, group: str) -> list[EntryPoint]:
        return points if group == "test.group" else []

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    assert plugins.names("test.group") == ("a", "b")
    assert plugins.load("test.group", "a")(1) == "1"
    with pytest.raises(plugins.PluginMissing):
        plugins.load("test.group", "c")


def test_published_set_answers_by_name() -> None:
    found = published_set("sandbox")
    assert found.tool("run_code") is found.tools[4]
    assert found.tool("nope") is None
    assert found.server_name == "agent-sandbox"


def test_instructions_are_short_and_name_known_tools_only() -> None:
    """MCP page, section 4, rule 10: at most 2,000 characters."""
    found = published_set("sandbox")
    assert 0 < sum(len(part["text"]) + 1 for part in found.instructions) <= 2000
    assert {tool for part in found.instructions for tool in part["tools"]} <= set(found.tool_names)
