"""What publishes the server: the entry of the MCP registry and the bundle. Their official tools read them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from cloche_contract.registry import published_set
from cloche_contract.settings import SETTINGS
from tests import inspector
from tests.architecture.workspace import ROOT

GENERATED = ROOT / "packages" / "cli" / "_gen"
BUNDLE = GENERATED / "bundle"
BY_VARIABLE = {setting.env: setting for setting in SETTINGS}


def entry() -> dict[str, Any]:
    return json.loads((GENERATED / "server.json").read_text())


def manifest() -> dict[str, Any]:
    return json.loads((BUNDLE / "manifest.json").read_text())


def test_the_official_tool_accepts_the_bundle_and_packs_it(tmp_path: Path) -> None:
    """Issue 6, part 7: `mcpb validate` and `mcpb pack`."""
    validate = inspector.mcpb("validate", str(BUNDLE / "manifest.json"))
    pack = inspector.mcpb("pack", str(BUNDLE), str(tmp_path / "cloche.mcpb"))
    if validate is None or pack is None:
        pytest.skip("the tool for bundles is not installed; nox -s tests installs it")
    for command in (validate, pack):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "cloche.mcpb").stat().st_size > 0


def test_the_bundle_lists_the_tools_of_the_contract_and_asks_for_known_settings() -> None:
    found = manifest()
    assert [tool["name"] for tool in found["tools"]] == list(published_set("sandbox").tool_names)
    assert all(tool["description"].endswith(".") for tool in found["tools"])
    assert set(found["server"]["mcp_config"]["env"]) <= set(BY_VARIABLE)
    secret = {name for name, asked in found["user_config"].items() if asked.get("sensitive")}
    assert secret == {name for name in found["user_config"] if BY_VARIABLE[f"ABX_{name.upper()}"].secret}


async def test_the_server_of_the_bundle_answers_a_client_with_every_setting_left_blank(tmp_path: Path) -> None:
    """A client fills in what its user did not set as nothing."""
    config = manifest()["server"]
    blank = {name: manifest()["user_config"][name]["default"] for name in manifest()["user_config"]}
    environ = {name: blank[value[len("${user_config.") : -1]] for name, value in config["mcp_config"]["env"].items()}
    server = StdioServerParameters(
        command=sys.executable,
        args=[str(BUNDLE / config["entry_point"])],
        env={**environ, "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    with anyio.fail_after(60):
        async with Client(server) as client:
            assert len((await client.list_tools()).tools) == 15


def test_the_entry_of_the_registry_keeps_the_rules_of_its_schema() -> None:
    """Schema 2025-12-11 of the registry: names, lengths, one exact version, arguments of one form."""
    found = entry()
    assert found["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", found["name"])
    assert 3 <= len(found["name"]) <= 200
    assert 1 <= len(found["description"]) <= 100
    assert 1 <= len(found["title"]) <= 100
    (package,) = found["packages"]
    assert (package["registryType"], package["identifier"], package["version"]) == ("pypi", "cloche", found["version"])
    assert package["transport"] == {"type": "stdio"}
    assert all(set(one) == {"type", "value"} for one in package["packageArguments"])
    assert all(set(one) == {"type", "name", "value"} for one in package["runtimeArguments"])
    for variable in package["environmentVariables"]:
        assert variable.get("isSecret", False) is BY_VARIABLE[variable["name"]].secret
        assert set(variable) <= {"name", "description", "isRequired", "isSecret", "choices", "default"}


def test_the_readme_names_the_entry_that_may_publish_it() -> None:
    """The registry looks for this line in the package's description before it takes an entry."""
    assert f"<!-- mcp-name: {entry()['name']} -->" in (ROOT / "packages/cli/README.md").read_text()
    assert entry()["version"] == manifest()["version"]
