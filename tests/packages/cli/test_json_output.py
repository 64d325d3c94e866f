"""The page about scripts: it names every command, and the members that `--json` really gives.

Source: issue 6, "one look for tables and --json".
"""

import json
import re

import click
import pytest

from cloche_testkit.plane import ScriptedPlane
from tests.architecture.workspace import ROOT
from tests.packages.cli.ran import Abx
from tests.packages.cli.test_cli_help import COMMANDS, find

PAGE = ROOT / "docs/how-to/use-abx-in-scripts.md"
ROWS = dict(re.findall(r"^\| `abx ([^`]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
PLAIN = {name: members.split(", ") for name, members in ROWS.items() if re.fullmatch(r"[\w, ]+", members)}

# In this order: what one makes, another shows.
CALLS = {
    "--version": "--version",
    "sandbox create": "sandbox create",
    "sandbox list": "sandbox list",
    "sandbox get": "sandbox get sb0001",
    "sandbox timeout": "sandbox timeout sb0001 300",
    "sandbox kill": "sandbox kill sb0001",
    "mcp install --print": "mcp install --target cursor --print",
    "mcp install --dry-run": "mcp install --target cursor --dry-run",
    "mcp install": "mcp install --target cursor",
    "mcp install --remove": "mcp install --target cursor --remove",
    "mcp status": "mcp status",
    "mcp tools": "mcp tools",
    "mcp tools NAME": "mcp tools run_code",
    "mcp stop": "mcp stop",
    "mcp deploy": "mcp deploy",
    "audit": "audit",
    "config set": "config set region eu-west-1",
    "config get": "config get region",
    "config list": "config list",
    "config path": "config path",
    "config unset": "config unset region",
    "provider list": "provider list",
    "provider info": "provider info scripted",
    "provider doctor": "provider doctor scripted",
    "doctor": "doctor",
    "completion": "completion bash",
    "template list": "template list",
}


def test_the_page_names_every_command() -> None:
    leaves = {" ".join(path) for path in COMMANDS if not isinstance(find(path), click.Group)}
    assert leaves - set(ROWS) == set(), "describe the document of this command in docs/how-to/use-abx-in-scripts.md"
    assert {" ".join(name.split(" --")[0].split(" NAME")[:1]) for name in ROWS if name != "--version"} <= leaves


def test_the_documents_have_the_members_that_the_page_names(
    abx: Abx, scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABX_PROVIDER", "scripted")
    monkeypatch.delenv("ABX_AUDIT_FILE")
    for name, words in CALLS.items():
        ran = abx(["--json", *words.split()])
        assert (ran.status in (0, 1), ran.out != "") == (True, True), f"{name}: {ran.err}"
        assert list(json.loads(ran.out)) == PLAIN[name], name
