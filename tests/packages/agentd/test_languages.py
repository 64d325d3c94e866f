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
    seen = client.execute("ls -a; echo $0", language="shell").stdout
    assert f"{agent.home}/.cloche" not in seen
    assert "\n.cloche" not in seen
    assert not os.path.exists(seen.splitlines()[-1])


def test_shell_timeout_kills_the_tree_and_keeps_the_output(client: Client) -> None:
    """T1 and T8 for other languages."""
    duration = _unique(300)
    ran = client.execute(f"echo before; sleep {duration} & wait", language="shell", timeout_ms=200)
    assert ran.stdout == "before\n"
    assert (ran.end["stop_reason"], ran.end["exit_code"]) == ("timeout", 137)
    assert processes_with(duration) == []


def test_unsupported_language_lists_what_there_is(tmp_path: Path) -> None:
    """A typed refusal with the languages of this sandbox."""
    with running_agent(tmp_path, "--path", "/nonexistent") as agent, agent.client() as client:
        for language in ("r", "typescript", "cobol"):
            reply = client.call("POST", "/execute", json.dumps({"code": "1", "language": language}).encode())
            assert reply.status == 400
            assert reply.value["cloche"] == {"code": "unsupported_language", "available": ["python"]}


def _fake(folder: Path, name: str, text: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("programs", "language", "expected"),
    [
        ({"node": "v16.20.2"}, "javascript", "node SCRIPT.cjs"),
        ({"node": "v22.6.0"}, "typescript", "node --no-warnings --experimental-strip-types SCRIPT.ts"),
        ({"node": "v22.12.0", "deno": ""}, "ts", "deno run --quiet --allow-all SCRIPT.ts"),
        ({"bun": ""}, "typescript", "bun run SCRIPT.ts"),
        ({"tsx": ""}, "typescript", "tsx SCRIPT.ts"),
        ({"Rscript": ""}, "r", "Rscript --vanilla SCRIPT.R"),
        ({"sh": ""}, "shell", "sh SCRIPT.sh"),
        ({"sh": "", "bash": ""}, "shell", "bash SCRIPT.sh"),
    ],
)
def test_language_starts_the_program_that_is_there(
    tmp_path: Path, programs: dict[str, str], language: str, expected: str
) -> None:
    """Which program runs a language, by what the PATH of the sandbox has, and how it is called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, version in programs.items():
        show = f'[ "$1" = --version ] && echo {version} && exit' if version else ":"
        _fake(tools, name, f'{show}\nfor last; do :; done\necho {name} "$@"\n/bin/cat "$last"')
    with running_agent(tmp_path, "--path", str(tools)) as agent, agent.client() as client:
        ran = client.execute("the code", language=language)
    assert ran.text("stderr") == ""
    call, code = ran.stdout.splitlines()
    script = next(word for word in call.split() if ".cloche-run-" in word)
    assert call.replace(script.rpartition(".")[0], "SCRIPT") == expected
    assert code == "the code"


def test_node_that_is_too_old_offers_no_typescript(tmp_path: Path) -> None:
    """What would fail on every call is not offered."""
    tools = tmp_path / "tools"
    tools.mkdir()
    _fake(tools, "node", "echo v22.5.1")
    with running_agent(tmp_path, "--path", str(tools)) as agent, agent.client() as client:
        assert client.call("GET", "/cloche/info").value["languages"] == ["python", "javascript"]
