"""A server that a client starts, maybe twice to learn its era, imports what an answer to tools/list needs."""

import subprocess
import sys

import pytest

LATER = ("httpx", "jsonschema", "rich", "cloche_sdk.toolset", "cloche_local", "cloche_contract._gen.models.sandbox")


def imported_by(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


MAKE_A_SERVER = """
from cloche_contract.serving import ToolServer, installed_session
from cloche_contract.kernel.toolset import ToolSetOptions
ToolServer("sandbox", installed_session("sandbox", ToolSetOptions()))
"""


@pytest.mark.parametrize("program", ["import cloche_mcp_stdio.server", MAKE_A_SERVER])
def test_nothing_is_imported_that_only_a_call_needs(program: str) -> None:
    """Goal: process start to answered tools/list at most 1.1 times the bare library."""
    loaded = imported_by(program)
    assert "mcp" in loaded
    assert [name for name in LATER if name in loaded] == []


def test_the_wire_is_reserved_before_anything_that_might_print_is_imported() -> None:
    """Fault M1: import-time prints too."""
    loaded = imported_by("from cloche_mcp_stdio import main")
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert {"mcp", "anyio", "pydantic", "cloche_contract"} & foreign == set()
