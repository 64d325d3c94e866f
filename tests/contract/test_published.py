"""What a client receives, and what a result may hold: frozen, so that a change shows in review."""

from __future__ import annotations

import importlib
import json
from typing import Any, cast

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from cloche_contract import lifecycle, settings
from cloche_contract.errors import ERRORS, ClocheError, envelope
from cloche_contract.kernel.failure import RULES
from cloche_contract.registry import CONTRACT_VERSION, published_set
from tests.contract.sets import ROOT, tools
from tests.requirements import MANAGEMENT_TOOLS, TOOLS

SETS = ("management", "sandbox")
IN_ORDER = (
    "create_sandbox list_sandboxes get_sandbox set_sandbox_timeout run_code run_command read_file write_file "
    "list_files kill_sandbox start_task get_task cancel_task upload_file download_file"
)


@pytest.fixture
def frozen(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


@pytest.mark.parametrize("name", sorted(tools()))
def test_published_tool_is_what_clients_know(frozen: SnapshotAssertion, name: str) -> None:
    toolset, _, tool = name.partition("-")
    assert published_set(toolset).tool(tool) == frozen


@pytest.mark.parametrize("toolset", SETS)
def test_tools_list_order_is_what_clients_know(frozen: SnapshotAssertion, toolset: str) -> None:
    assert list(published_set(toolset).tool_names) == frozen


def test_the_tools_come_in_contract_order() -> None:
    """Issue 2; seed-000, lines 1 to 3."""
    assert published_set("sandbox").tool_names == tuple(IN_ORDER.split())


def test_every_tool_says_what_it_must_do() -> None:
    """The requirements list exactly the tools there are."""
    assert sorted(TOOLS) == sorted(published_set("sandbox").tool_names)
    assert sorted(MANAGEMENT_TOOLS) == sorted(published_set("management").tool_names)


@pytest.mark.parametrize("name", sorted(tools()))
def test_every_tool_has_a_title_four_annotations_and_an_object_output(name: str) -> None:
    """Decision D8."""
    toolset, _, tool = name.partition("-")
    entry = published_set(toolset).tool(tool)
    assert entry is not None
    assert entry["title"]
    assert set(entry["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert entry["outputSchema"]["type"] == "object"
    assert entry["inputSchema"]["additionalProperties"] is False


def test_contract_version_is_the_one_in_the_schemas() -> None:
    version = (ROOT / "schemas/CONTRACT_VERSION").read_text(encoding="utf-8").strip()
    assert version == CONTRACT_VERSION
    assert published_set("sandbox").contract_version == version


def test_disclosure_table_shows_who_may_see_each_field(frozen: SnapshotAssertion) -> None:
    """A reviewer sees one line turn from internal to model."""
    assert {name: dict(fields) for name, fields in lifecycle.DISCLOSURE.items()} == frozen


def test_settings_table_is_what_operators_know(frozen: SnapshotAssertion) -> None:
    assert [vars(setting) for setting in settings.SETTINGS] == frozen


def test_no_secret_is_read_from_the_configuration_file() -> None:
    """Systems 2.6: secrets never come from TOML."""
    assert [setting.key for setting in settings.SETTINGS if setting.secret and setting.toml] == []
    secret = {setting.key for setting in settings.SETTINGS if setting.secret}
    assert secret == {"mcp_auth_token", "mcp_oauth_client_secret", "sandbox_api_key"}


def _sample(kind: type[ClocheError]) -> ClocheError:
    catalogue: dict[str, Any] = json.loads((ROOT / "schemas/errors/catalog.json").read_text(encoding="utf-8"))
    values = {"string": "x", "integer": 7, "boolean": True, "array": ("a", "b")}
    known = {
        "Capability": "files",
        "BackendCause": "kernel_too_old",
        "BaseProblem": "changing",
        "ExportProblem": "torn",
        "ManagedState": "creating",
        "StartProblem": "no_answer",
        "LimitResource": "memory",
        "Language": ("r",),
        "RecordProblem": "newer",
    }
    details = {
        key: known[node["enum"]] if "enum" in node else values[node["type"]]
        for key, node in catalogue["errors"][kind.code]["details"].items()
    }
    made: Any = kind
    return made(**details)


@pytest.mark.parametrize("toolset", SETS)
@pytest.mark.parametrize("code", sorted(ERRORS))
def test_error_envelope_is_what_clients_know(frozen: SnapshotAssertion, code: str, toolset: str) -> None:
    """Seed-000: a fixed category, an HTTP status when there is one, a static suggestion."""
    assert envelope(toolset, _sample(ERRORS[code])) == frozen


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_error_is_json_and_belongs_to_its_category(code: str) -> None:
    kind = ERRORS[code]
    found = envelope("sandbox", _sample(kind))
    assert json.loads(json.dumps(found)) == found
    assert kind.code == code
    parent = kind.__mro__[1]
    assert issubclass(parent, ClocheError)
    assert parent.category == kind.category
    assert 1 <= kind.exit_code <= 6
    assert issubclass(kind, ClocheError)


def test_exit_codes_are_those_of_the_command_line() -> None:
    """Issue 2, cli: 2 configuration, 3 authentication, 4 not found, 5 timeout, 6 quota, else 1."""
    special = {"configuration": 2, "authentication": 3, "not_found": 4, "timeout": 5, "quota": 6}
    assert {kind.category: kind.exit_code for kind in ERRORS.values() if kind.exit_code != 1} == special


def test_every_rule_has_words() -> None:
    named = {case["rule"] for tool in tools().values() for case in tool.input_node["x-counterexamples"]}
    assert named <= set(RULES)


PUBLIC = (
    "agent",
    "client",
    "common",
    "errors",
    "http",
    "lifecycle",
    "management",
    "provider",
    "registry",
    "sandbox",
    "settings",
)


@pytest.mark.parametrize("facade", PUBLIC)
def test_public_names_are_a_decision(frozen: SnapshotAssertion, facade: str) -> None:
    module = importlib.import_module(f"cloche_contract.{facade}")
    names = cast("list[str]", vars(module)["__all__"])
    assert sorted(names) == frozen
    for name in names:
        assert getattr(module, name) is not None


PACKAGES = ("cloche_agentd", "cloche_contract.serving", "cloche_mcp_stdio", "cloche_sdk")


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_of_each_package_are_a_decision(frozen: SnapshotAssertion, package: str) -> None:
    """Style S16: adding to __all__ is an API decision."""
    assert sorted(cast("list[str]", vars(importlib.import_module(package))["__all__"])) == frozen


def test_every_hand_written_module_at_the_top_is_a_known_facade() -> None:
    there = {path.stem for path in (ROOT / "packages/contract/src/cloche_contract").glob("*.py")}
    assert there == {*PUBLIC, "__init__"}
