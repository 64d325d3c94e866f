"""Adding a tool takes one schema and one handler method, and forgetting the method is a type error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloche_codegen import newtool
from cloche_codegen.load import SchemaError
from cloche_codegen.plan import outputs, roots
from cloche_codegen.write import write
from tests.codegen.schemas import ROOT

PACKAGES = ("agentd", "contract", "mcp-stdio", "sdk", "testkit")
HANDLER = '''
    async def ping_sandbox(self, request: PingSandboxInput, call: ToolCall) -> PingSandboxOutput:
        """Answer."""
        return PingSandboxOutput(success=True)
'''


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the parts of the repository that a tool lives in."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    shutil.copytree(ROOT / "docs/reference", tmp_path / "docs/reference")
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests/requirements.py", tmp_path / "tests")
    for package in PACKAGES:
        shutil.copytree(ROOT / "packages" / package / "src", tmp_path / "packages" / package / "src", ignore=ignore)
    return tmp_path


def _add_tool(repository: Path) -> None:
    newtool.create(repository, "sandbox", "ping_sandbox")
    write(repository, outputs(repository), roots(repository))


def _add_handler(repository: Path) -> None:
    """One method, and the names that it mentions."""
    file = repository / "packages/sdk/src/cloche_sdk/toolset.py"
    text = file.read_text(encoding="utf-8")
    first = "from __future__ import annotations\n"
    names = "from cloche_contract.sandbox import PingSandboxInput, PingSandboxOutput\n"
    text = text.replace(first, f"{first}\n{names}", 1)
    before = "    async def kill_sandbox("
    assert text.count(before) == 1
    file.write_text(text.replace(before, f"{HANDLER.lstrip(chr(10))}\n{before}"), encoding="utf-8")


def _sources(repository: Path) -> list[str]:
    return [str(repository / "packages" / package / "src") for package in PACKAGES]


def _type_errors(repository: Path) -> list[str]:
    settings = {
        "include": ["packages/sdk/src/cloche_sdk/toolset.py"],
        "extraPaths": _sources(repository),
        "typeCheckingMode": "strict",
    }
    (repository / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(repository)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    return [found["message"] for found in report["generalDiagnostics"] if found["severity"] == "error"]


def _frames(repository: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Speak to a stdio server that runs from the copy."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_sources(repository)), "ABX_PROVIDER": "scripted"}
    command = [sys.executable, "-c", "from cloche_mcp_stdio.main import main; main()", "--set", "sandbox"]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    wanted = sum("id" in request for request in requests)
    with subprocess.Popen(
        command, cwd=repository, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(lines)
        server.stdin.flush()
        found: list[dict[str, Any]] = []
        while sum("id" in frame for frame in found) < wanted:
            found.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.wait(timeout=30) == 0
    return found


def test_a_new_tool_is_one_schema_and_one_method(repository: Path) -> None:
    """Issue 2: new-tool, codegen, a handler; then the tool is called over stdio."""
    _add_tool(repository)
    _add_handler(repository)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    frames = _frames(
        repository,
        [
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
            {"id": 3, "method": "tools/call", "params": {"name": "ping_sandbox", "arguments": {}}},
            {"id": 4, "method": "tools/call", "params": {"name": "ping_sandbox", "arguments": {"team": "a"}}},
        ],
    )
    results = {frame["id"]: frame["result"] for frame in frames if "id" in frame}
    assert results[2]["tools"][-1]["name"] == "ping_sandbox"
    assert results[3]["structuredContent"] == {"success": True}
    assert not results[3].get("isError")
    assert results[4]["isError"]
    refused = json.loads(results[4]["content"][0]["text"])
    assert refused["details"] == {"field": "team", "rule": "additionalProperties"}


def test_a_tool_without_its_method_is_a_type_error(repository: Path) -> None:
    """Decision D10; architecture 0.5: a forgotten handler is a pyright error, not a runtime surprise."""
    _add_tool(repository)
    (found,) = _type_errors(repository)
    assert '"ping_sandbox" is not present' in found
    _add_handler(repository)
    assert _type_errors(repository) == []


def test_a_new_tool_gets_its_place_in_order_and_requirements(repository: Path) -> None:
    _add_tool(repository)
    toolset = json.loads((repository / "schemas/toolsets/sandbox.json").read_text(encoding="utf-8"))
    assert toolset["order"][-1] == "ping_sandbox"
    assert '    "ping_sandbox": Requirement(' in (repository / "tests/requirements.py").read_text(encoding="utf-8")
    assert (repository / "docs/reference/tools/sandbox/ping_sandbox.md").is_file()


@pytest.mark.parametrize(
    ("toolset", "name", "said"),
    [
        ("nothing", "ping_sandbox", "no tool set"),
        ("sandbox", "run_code", "already there"),
        ("sandbox", "Ping", "a name matches"),
        ("sandbox", "../escape", "a name matches"),
        ("sandbox", "a" * 42, "a name matches"),
    ],
)
def test_a_tool_that_cannot_be_is_refused(repository: Path, toolset: str, name: str, said: str) -> None:
    before = (repository / "schemas/toolsets/sandbox.json").read_bytes()
    with pytest.raises(SchemaError, match=said):
        newtool.create(repository, toolset, name)
    assert (repository / "schemas/toolsets/sandbox.json").read_bytes() == before
