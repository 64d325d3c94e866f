"""The limit of output as users of the SDK and of the tools meet it, on the real agent.

Source: faults O10, O11 (piston#301).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from cloche_contract.errors import InvalidArgument
from cloche_sdk import AsyncSandbox, Doors, load_settings
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.test_tasks import ended, started
from tests.packages.sdk.tools import Tools, open_tools

LIMIT = 100_000
FOREVER = "yes"


@pytest.fixture
async def limited(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[Tools]:
    """Tools of a server whose operator set the limit."""
    settings = load_settings({"ABX_OUTPUT_LIMIT": str(LIMIT)}).override(provider="scripted")
    async with open_tools(Doors(settings=settings, environ={})) as tools:
        yield tools


async def test_o11_each_kind_of_call_takes_a_limit_and_keeps_what_was_printed(sandbox: AsyncSandbox) -> None:
    """The output so far is data, as of every stop reason but a timeout and a loss."""
    with anyio.fail_after(60):
        command = await sandbox.commands.run(FOREVER, output_limit=LIMIT)
        code = await sandbox.run_code("while True: print('y')", output_limit=LIMIT)
        handle = await sandbox.commands.start(FOREVER, output_limit=LIMIT)
        for result in (command, code, await handle.wait()):
            assert (result.stop_reason, result.truncated, len(result.stdout)) == ("output_limit", True, LIMIT)
        terminal = await sandbox.pty.create(FOREVER, output_limit=LIMIT)
        assert (await terminal.wait()).stop_reason == "output_limit"
        task = await sandbox.tasks.start(FOREVER, output_limit=LIMIT)
        while (report := await sandbox.tasks.get(task.task_id)).info.state == "running":
            await sandbox.tasks.get(task.task_id, stdout_offset=report.stdout.size, wait=30)
    assert (report.info.state, report.info.stop_reason, report.stdout.size) == ("failed", "output_limit", LIMIT)


async def test_o10_o11_output_that_is_taken_piece_by_piece_has_no_limit_unless_asked(
    unsandboxed_plane: ScriptedPlane,
) -> None:
    """O10: streaming is whole. Whoever takes each piece sees that there are many."""
    settings = load_settings({"ABX_OUTPUT_LIMIT": "1000"}).override(provider="scripted")
    pieces: list[str] = []
    async with await AsyncSandbox.create(doors=Doors(settings=settings, environ={})) as sandbox:
        ran = await sandbox.commands.run("head -c 300000 /dev/zero | tr '\\0' x", on_stdout=pieces.append)
        assert (ran.stop_reason, len("".join(pieces))) == ("exit", 300_000)
        code = await sandbox.run_code("print('x' * 5000)", on_stdout=pieces.append)
        assert code.stop_reason == "exit"
        asked = await sandbox.commands.run("yes", on_stdout=pieces.append, output_limit=2000)
        assert (asked.stop_reason, len(asked.stdout)) == ("output_limit", 2000)
        assert (await sandbox.commands.run("head -c 5000 /dev/zero", output_limit=0)).stop_reason == "exit"
        assert (await sandbox.commands.run("head -c 5000 /dev/zero")).stop_reason == "output_limit"


@pytest.mark.parametrize(("limit", "rule"), [(-1, "minimum"), (1 << 51, "maximum")])
async def test_a_limit_out_of_range_is_refused_before_anything_runs(
    sandbox: AsyncSandbox, limit: int, rule: str
) -> None:
    for call in (sandbox.commands.run, sandbox.run_code, sandbox.tasks.start, sandbox.commands.start):
        with pytest.raises(InvalidArgument) as refusal:
            await call("true", output_limit=limit)
        assert (refusal.value.details["field"], refusal.value.details["rule"]) == ("output_limit", rule)


async def test_o11_the_operators_limit_holds_for_every_tool_that_runs_something(limited: Tools) -> None:
    """The result says what happened and what to do; it is data, no tool error."""
    command = await limited.call("run_command", command=FOREVER)
    code = await limited.call("run_code", code="while True: print('y')")
    shell = await limited.call("run_code", code=FOREVER, language="shell")
    for found in (command, code, shell):
        assert (found["stop_reason"], found["truncated"], found["stdout_bytes"]) == ("output_limit", True, LIMIT)
        assert found["note"].startswith("It was ended: it printed more in all than it may.")
        assert "file" in found["note"]
    assert (code["state_kept"], command["exit_code"]) == (True, 137)
    task = await ended(limited, await started(limited, FOREVER))
    assert (task["state"], task["stop_reason"], task["stdout_size"]) == ("failed", "output_limit", LIMIT)
    assert task["note"].startswith("It was ended: it printed more in all than it may.")


async def test_o16_code_and_tasks_can_be_shown_as_a_terminal_would(tools: Tools) -> None:
    """O16 for every tool that shows output: the totals stay those of what was written."""
    bar = "for n in range(1000): print(f'\\r\\x1b[32m{n}%\\x1b[0m', end='')\nprint()"
    raw = await tools.call("run_code", code=bar)
    clean = await tools.call("run_code", code=bar, clean=True)
    assert (clean["stdout"], clean["stdout_bytes"]) == ("999%\n", raw["stdout_bytes"])
    assert raw["stdout"].count("\x1b") == 2000
    shell = await tools.call("run_code", code="printf '\\033[1mbold\\033[0m\\n'", language="shell", clean=True)
    assert shell["stdout"] == "bold\n"
    script = "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); printf '\\r\\033[32m%s%%\\033[0m' $i; done; echo"
    made = await started(tools, script)
    found = await ended(tools, made, clean=True)
    assert (found["stdout"], found["stdout_offset"]) == ("1000%\n", found["stdout_size"])
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    middle = await tools.call("get_task", **ids, stdout_offset=found["stdout_size"] - 8, clean=True)
    assert middle["stdout"] == "\n1000%\n"
    assert (await tools.call("cancel_task", **ids, clean=True))["stdout"] == "1000%\n"
