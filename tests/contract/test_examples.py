"""The examples of the reference pages, replayed through the real dispatcher: each ends as its tool declares."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cloche_contract.errors import ERRORS
from cloche_contract.kernel.dispatch import dispatch
from cloche_contract.kernel.toolset import ToolSession, ToolSetOptions
from cloche_contract.registry import published_set
from cloche_contract.settings import SETTINGS
from cloche_docker_manager.toolset import open_toolset as open_management
from cloche_sdk.toolset import open_toolset
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.scripted import installed_plane
from tests.contract.sets import EXAMPLES, ROOT, Case


class Call:
    """Takes what a handler tells while it works."""

    async def report(self, progress: float, message: str) -> None:
        return None

    def attach_image(self, media_type: str, data: bytes) -> bool:
        return True


@asynccontextmanager
async def _session(plane: ScriptedPlane, home: Path) -> AsyncGenerator[ToolSession]:
    options = ToolSetOptions(template="base", provider="scripted", environ={"HOME": str(home)})
    with installed_plane(plane):
        async with open_toolset(options) as opened:
            yield opened


@asynccontextmanager
async def _management(home: Path) -> AsyncGenerator[ToolSession]:
    """A manager whose engine does not run: what needs none works, the rest says so."""
    environ = {"HOME": str(home), "DOCKER_HOST": f"unix://{home}/docker.sock"}
    async with open_management(ToolSetOptions(environ=environ)) as opened:
        yield opened


@pytest.mark.parametrize("case", [case for case in EXAMPLES if case.tool.set == "management"], ids=str)
async def test_every_example_of_the_management_tools_ends_as_its_tool_declares(tmp_path: Path, case: Case) -> None:
    """Pitfalls, "Docs drift from behaviour": examples are replayed."""
    async with _management(tmp_path) as session:
        outcome = await dispatch("management", session, case.tool.name, case.arguments, Call())
    if outcome.is_error:
        error = outcome.structured["error"]
        assert error["details"]["code"] in published_set("management").meta[case.tool.name]["errors"]
        assert error["kind"] in ("connection_error", "not_found", "invalid_request")
    else:
        assert set(case.tool.output_schema["required"]) <= set(outcome.structured)


@pytest.mark.parametrize("case", [case for case in EXAMPLES if case.tool.set == "sandbox"], ids=str)
async def test_every_example_ends_as_its_tool_declares(tmp_path: Path, case: Case) -> None:
    """Pitfalls, "Docs drift from behaviour": examples are replayed."""
    # The agent of these tests isolates nothing: what writes to a path of the examples gets no agent at all.
    writes = case.tool.name in ("write_file", "upload_file")
    async with _session(ScriptedPlane(data_plane="none" if writes else "unsandboxed"), tmp_path) as session:
        outcome = await dispatch(case.tool.set, session, case.tool.name, case.arguments, Call())
    if outcome.is_error:
        assert outcome.structured["code"] in published_set(case.tool.set).meta[case.tool.name]["errors"]
        assert outcome.structured["code"] not in ("internal_error", "invalid_argument")
    else:
        assert set(case.tool.output_schema["required"]) <= set(outcome.structured)


def _sources() -> str:
    files = (ROOT / "packages").glob("*/src/**/*.py")
    return "\n".join(path.read_text(encoding="utf-8") for path in files if "_gen" not in path.parts)


def test_every_error_of_the_catalogue_is_raised_by_something() -> None:
    text = _sources()
    assert [code for code, kind in ERRORS.items() if kind.__name__ not in text and f'"{code}"' not in text] == []


def test_every_setting_is_read_by_something() -> None:
    """Decision D10: only what works is listed."""
    text = _sources()
    assert [each.key for each in SETTINGS if f'"{each.key}"' not in text and f'"{each.env}"' not in text] == []
