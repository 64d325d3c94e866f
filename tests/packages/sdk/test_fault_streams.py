"""Failures around timeouts, prompts and output, through the tools and the SDK, on the real agent.

Source: the fault rows that each test names.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_sdk import AsyncSandbox, CommandResult, CommandTimeout
from cloche_sdk.output import OutputCallback
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.tools import Tools

LAST = 86_400


@pytest.fixture
async def sandbox(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[AsyncSandbox]:
    """A sandbox of the SDK, on the real agent, WITHOUT ISOLATION."""
    del unsandboxed_plane
    async with await AsyncSandbox.create(provider="scripted") as sandbox:
        yield sandbox


@pytest.mark.parametrize(("tool", "given"), [("run_command", {"command": "true"}), ("run_code", {"code": "1"})])
async def test_t9_a_timeout_is_honoured_or_refused_with_the_maximum(
    tools: Tools, tool: str, given: dict[str, Any]
) -> None:
    """T9, MassGen#743: the largest value goes through as it is; one more is refused, and the refusal says how much."""
    assert (await tools.call(tool, **given, timeout=3600))["timed_out"] is False
    refused = await tools.refused(tool, **given, timeout=3601)
    assert (refused["code"], refused["details"]["field"]) == ("invalid_argument", "timeout")
    assert refused["details"]["limit"] == 3600
    short = {"run_command": {"command": "sleep 100"}, "run_code": {"code": "import time; time.sleep(100)"}}[tool]
    assert (await tools.call(tool, **short, timeout=1))["timed_out"] is True


async def test_t10_a_command_past_its_timeout_is_a_typed_error(sandbox: AsyncSandbox) -> None:
    """T10, microsandbox#468: not a result with exit code -1; what it printed is in the error."""
    with pytest.raises(CommandTimeout) as caught:
        await sandbox.commands.run("echo before; sleep 100", timeout=1)
    result = caught.value.result
    assert result is not None
    assert (result.stdout, result.stop_reason, result.exit_code) == ("before\n", "timeout", 137)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("run_command", {"command": "printf 'package name: '; read answer || exit 1"}),
        ("run_command", {"command": "printf 'Proceed? [Y/n] ' >&2; exit 1"}),
        ("run_command", {"command": "python3 -c 'input()'"}),
        ("run_code", {"code": "input('name? ')"}),
        ("run_command", {"command": "printf 'Password: '; sleep 100", "timeout": 1}),
    ],
)
async def test_t14_a_program_that_asks_ends_and_the_result_says_so(
    tools: Tools, tool: str, given: dict[str, Any]
) -> None:
    """T14, agentuity/sdk#1176, evalscope#1685: the end of input at once, and a note on what to do instead."""
    with anyio.fail_after(30):
        result = await tools.call(tool, **given)
    assert result["exit_code"] != 0
    assert "waited for input" in result["note"]


@pytest.mark.parametrize("command", ["echo 'done:'; exit 1", "printf 'name: '", "exit 1"])
async def test_t14_what_asks_nothing_is_not_said_to(tools: Tools, command: str) -> None:
    """T14: a plain failure, and a question that needed no answer."""
    assert "waited for input" not in (await tools.call("run_command", command=command)).get("note", "")


async def test_t23_a_day_of_lifetime_is_kept_and_told(tools: Tools) -> None:
    """T23, E2B#879: not shortened in silence; beyond it a refusal with the maximum."""
    made = await tools.call("create_sandbox", timeout=LAST)
    told = await tools.call("get_sandbox", sandbox_id=made["sandbox_id"])
    lifetime = _moment(told["end_at"]) - _moment(told["started_at"])
    assert timedelta(seconds=LAST - 60) <= lifetime <= timedelta(seconds=LAST)
    refused = await tools.refused("create_sandbox", timeout=LAST + 1)
    assert refused["details"]["field"] == "timeout"
    assert refused["details"]["limit"] == LAST


@pytest.mark.parametrize("name", ["timeout_ms", "Timeout", "max_time"])
async def test_t25_an_unknown_option_is_refused_and_named(tools: Tools, name: str, tmp_path: Path) -> None:
    """T25, smithers#738: nothing runs under a timeout that nobody reads."""
    refused = await tools.refused("run_command", command=f"touch {tmp_path}/ran", **{name: 1})
    assert (refused["code"], refused["details"]["field"]) == ("invalid_argument", name)
    assert not (tmp_path / "ran").exists()


async def test_t25_a_cancelled_call_ends_its_process(tools: Tools, tmp_path: Path) -> None:
    """T25: the cancellation reaches the tree in the sandbox."""
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    pidfd = -1

    async def call() -> None:
        await tools.call("run_command", command=f"sleep 100 & echo $! > {fifo}; wait", timeout=600)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        pidfd = os.pidfd_open(int(await anyio.to_thread.run_sync(fifo.read_text)))
        tasks.cancel_scope.cancel()
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


async def test_t26_the_outer_deadline_leaves_the_partial_output_its_time(tools: Tools) -> None:
    """T26, dust#28004: a tree that is slow to die is still told with what it printed, not as a lost call."""
    stubborn = "trap '' TERM INT; for n in 1 2 3 4 5 6 7 8; do (trap '' TERM INT; sleep 100) & done; echo partial; wait"
    result = await tools.call("run_command", command=stubborn, timeout=1)
    assert (result["stdout"], result["stop_reason"]) == ("partial\n", "timeout")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x1c"])
@pytest.mark.parametrize("tool", ["run_command", "run_code"])
async def test_o3_only_the_framing_ends_a_line_of_the_stream(tools: Tools, tool: str, separator: str) -> None:
    """O3, OpenSandbox PR#1444: what Unicode calls a line end is a character of the output."""
    text = f"one{separator}two"
    given = {
        "run_command": {"command": f"printf '%s' '{text}'"},
        "run_code": {"code": f"print({text!r}, end='')"},
    }[tool]
    assert (await tools.call(tool, **given))["stdout"] == text


async def test_o10_streamed_output_is_whole_and_the_kept_copy_bounded(sandbox: AsyncSandbox) -> None:
    """O10, huggingface_hub#4839: callbacks get every byte, the result its head and tail."""
    size = 3_000_000

    async def command(take: OutputCallback) -> CommandResult:
        return await sandbox.commands.run(f"head -c {size} /dev/zero | tr '\\0' x", on_stdout=take)

    async def code(take: OutputCallback) -> CommandResult:
        return await sandbox.run_code(f"print('x' * {size}, end='')", on_stdout=take)

    for run in (command, code):
        taken: list[str] = []
        result = await run(taken.append)
        assert sum(map(len, taken)) == size
        assert result.truncated is True
        assert len(result.stdout) < size / 2
        assert result.stdout_captured.total_bytes == size


@pytest.mark.parametrize("tool", ["run_command", "run_code"])
async def test_o14_the_two_streams_stay_apart(tools: Tools, tool: str) -> None:
    """O14, Daytona#2067, #2241: interleaved writes, separate results."""
    given = {
        "run_command": {"command": "for n in 1 2 3; do echo out$n; echo err$n >&2; done"},
        "run_code": {
            "code": "import sys\nfor n in 1, 2, 3:\n    print(f'out{n}')\n    print(f'err{n}', file=sys.stderr)"
        },
    }[tool]
    result = await tools.call(tool, **given)
    assert (result["stdout"], result["stderr"]) == ("out1\nout2\nout3\n", "err1\nerr2\nerr3\n")


async def test_o16_clean_shows_the_last_state_of_a_progress_bar(tools: Tools) -> None:
    """O16, NexAU#8: no colours, no earlier frames; by default every byte is as it was written."""
    bar = "for n in 1 2 3; do printf '\\r\\033[2K\\033[32m%s0%%\\033[0m' $n; done; printf '\\ndone\\n'"
    clean = await tools.call("run_command", command=bar, clean=True)
    assert clean["stdout"] == "30%\ndone\n"
    raw = await tools.call("run_command", command=bar)
    assert raw["stdout"].count("\x1b") == 9
    assert clean["stdout_bytes"] == raw["stdout_bytes"]
    assert clean["truncated"] is False


async def test_d7_images_beyond_the_bound_become_files(tools: Tools) -> None:
    """D7: at most four, of 1 MiB each; the rest is listed, and nothing travels as text."""
    code = (
        "class Picture:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def __repr__(self): return 'picture'\n"
        "    def _repr_png_(self): return b'\\x89PNG' + bytes(self.size)\n"
        "for size in (10, 2_000_000, 10, 10, 10, 10, 10): display(Picture(size))"
    )
    result = await tools.call("run_code", code=code)
    pictures = [item for item in result["results"] if item["type"] == "png"]
    assert [item["attached"] for item in pictures] == [True] * len(tools.last_call.images)
    assert len(tools.last_call.images) == 3
    assert len(result["output_files"]) == 4
    assert all("text" not in item for item in pictures)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
