"""What a newcomer is told: three commands, of the version that the tests run, and a page for every name of the SDK."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import cloche_sdk
from cloche_codegen.emit.sync import SDK
from tests.architecture.workspace import ROOT
from tests.docs.newcomer import commands
from tests.inspector import VERSION


def test_the_way_to_a_tool_call_takes_three_commands() -> None:
    """Issue 6: from a bare machine to a tool call from the Inspector in three commands; `nox -s newcomer` runs them."""
    clone, bootstrap, call = commands()
    assert clone.startswith("git clone ")
    assert bootstrap == "./bootstrap"
    assert f"@modelcontextprotocol/inspector@{VERSION} --cli .venv/bin/abx mcp start --method tools/call" in call


def test_every_public_name_of_the_sdk_has_its_place_on_the_page(site: Path) -> None:
    """Issue 6: generated reference; a name without a docstring stops the build of the site."""
    text = (site / "python.html").read_text(encoding="utf-8")
    shown = {*re.findall(r"<h2>(\w+)", text), *re.findall(r"<p>And <code[^>]*><span[^>]*>(\w+)", text)}
    assert set(cloche_sdk.__all__) - shown == set()


def test_a_docstring_that_tells_of_an_argument_that_is_gone_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(ROOT / SDK, tmp_path / SDK)
    source = tmp_path / SDK / "sandbox.py"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("    timeout: its", "    lifetime: its"), encoding="utf-8")
    program = f"import pathlib, sdk_page; sdk_page.write(pathlib.Path({str(tmp_path)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "docs", capture_output=True, text=True, timeout=60, check=False
    )
    assert "LookupError" in done.stderr
    assert "AsyncSandbox.create tells of arguments that it does not have: lifetime" in done.stderr
