"""Languages that run a program per call."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import Client, PlainAgent, processes_with, running_agent


def _unique(seconds: int) -> str:
    return f"{seconds}.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"


def test_shell_runs_per_call(client: Client) -> None:
    """language shell: bash where there is one; exit code and streams as usual."""
    ran = client.execute("echo out; echo err >&2; echo $ONLY; exit 4", language="shell", env_vars={"ONLY": "x"})
    assert (ran.stdout, ran.text("stderr")) == ("out\nx\n", "err\n")
    assert ran.end["exit_code"] == 4


def test_shell_script_may_be_large_and_reads_no_script_as_input(client: Client) -> None:
    """The code is a file, not an argument and not standard input."""
    code = "cat\n" + "# filler\n" * 40000 + "echo end\n"
    assert client.execute(code, language="bash").stdout == "end\n"


def test_script_leaves_no_file(client: Client, agent: PlainAgent) -> None:
    """The code's file is hidden and removed, and it is no output file."""
    ran = client.execute("touch made-by-shell", language="shell")
    assert [item["name"] for item in ran.end["output_files"]] == ["made-by-shell"]
    assert [name for name in os.listdir(agent.home) if name.startswith(".cloche")] == []


def test_shell_timeout_kills_the_tree_and_keeps_the_output(client: Client) -> None:
    """T1 and T8 for other languages."""
    duration = _unique(300)
    ran = client.execute(f"echo before; sleep {duration} & wait", language="shell", timeout_ms=200)
    assert ran.stdout == "before\n"
    assert (ran.end["stop_reason"], ran.end["exit_code"]) == ("timeout", 137)
    assert processes_with(duration) == []


def test_javascript_runs_where_node_is(client: Client) -> None:
    """language javascript, when the program is there."""
    if "javascript" not in client.call("GET", "/cloche/info").value["languages"]:
        pytest.skip("no node on this machine")
    ran = client.execute("const os = require('os'); console.log([1,2].map(x => x * 2)); process.exit(2)", language="js")
    assert ran.stdout == "[ 2, 4 ]\n"
    assert ran.end["exit_code"] == 2


def test_unsupported_language_lists_what_there_is(tmp_path: Path) -> None:
    """A typed refusal with the languages of this sandbox."""
    with running_agent(tmp_path, "--path", "/nonexistent") as agent, agent.client() as client:
        for language in ("r", "typescript", "cobol"):
            reply = client.call("POST", "/execute", json.dumps({"code": "1", "language": language}).encode())
            assert reply.status == 400
            assert reply.value["cloche"] == {"code": "unsupported_language", "available": ["python"]}
