"""Failures that real users of such tools hit, through the tools, on the real agent.

The agent runs here without isolation; what a sandbox must keep in is tested with the local provider.
Source: the fault rows that each test names.
"""

from __future__ import annotations

import base64
import hashlib
import resource
from pathlib import Path

import anyio
import pytest

from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.tools import Tools

ALL_BYTES = bytes(range(256))


async def test_t7_a_command_without_a_timeout_has_the_default_one(tools: Tools) -> None:
    """T7: the wait is bounded, and told to the agent (test_data_plane checks the 60 s on the wire)."""
    result = await tools.call("run_command", command="echo done")
    assert (result["stop_reason"], result["timed_out"]) == ("exit", False)


async def test_t8_a_timeout_carries_the_output_so_far(tools: Tools) -> None:
    """T8: data, not an error."""
    result = await tools.call("run_command", command="printf 'one\\ntwo\\n'; sleep 100", timeout=1)
    assert result["stdout"] == "one\ntwo\n"
    assert (result["timed_out"], result["stop_reason"], result["exit_code"]) == (True, "timeout", 137)


async def test_t18_a_working_directory_that_is_gone_says_so(tools: Tools, tmp_path: Path) -> None:
    """T18: named, and the next command without it works."""
    failure = await tools.refused("run_command", command="pwd", cwd=str(tmp_path / "gone"))
    assert failure["code"] == "cwd_not_found"
    assert (await tools.call("run_command", command="echo on"))["stdout"] == "on\n"


async def test_t20_one_timeout_fails_one_command_and_nothing_else(tools: Tools) -> None:
    """T20, T15."""
    await tools.call("run_command", command="echo ready")
    results: list[str] = []

    async def run(command: str, timeout: int) -> None:
        result = await tools.call("run_command", command=command, timeout=timeout)
        results.append(result["stop_reason"])

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for command, timeout in (("sleep 100", 1), ("echo quick", 60), ("echo quick", 60)):
                tasks.start_soon(run, command, timeout)
    assert results == ["exit", "exit", "timeout"]
    assert (await tools.call("run_command", command="echo after"))["stdout"] == "after\n"


async def test_o1_bytes_that_are_no_utf8_are_replaced_and_flagged(tools: Tools) -> None:
    """O1: the exit code is kept."""
    result = await tools.call("run_command", command="printf 'a\\377b'; exit 3")
    assert (result["stdout"], result["replaced"], result["exit_code"]) == ("a\ufffdb", True, 3)
    assert not (await tools.call("run_command", command="printf '☹'"))["replaced"]
    code = await tools.call("run_code", code="import os; os.write(1, b'a\\xffb')")
    assert (code["stdout"], code["replaced"], code["stdout_bytes"]) == ("a\ufffdb", True, 3)


async def test_o4_blank_lines_arrive_as_they_were_written(tools: Tools) -> None:
    """O4."""
    result = await tools.call("run_command", command="printf 'a\\n\\nb\\n\\n\\nc\\n'")
    assert result["stdout"] == "a\n\nb\n\n\nc\n"


async def test_o6_a_burst_before_the_exit_is_counted_to_its_end(tools: Tools) -> None:
    """O6."""
    result = await tools.call("run_command", command="head -c 4194304 /dev/zero | tr '\\0' x; printf end")
    assert result["stdout_bytes"] == 4_194_307
    assert result["stdout"].endswith("xxxend")


async def test_o7_endless_output_is_bounded_while_it_is_read(tools: Tools) -> None:
    """O7: memory stays flat."""
    await tools.call("run_command", command="true")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await tools.call("run_command", command="yes 0123456789012345678901234567890123456789", timeout=2)
    # A quick machine prints all that it may before its time is up.
    assert result["timed_out"] or result["stop_reason"] == "output_limit"
    assert result["stdout_bytes"] > 5_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


@pytest.mark.parametrize("tool", ["run_command", "run_code"])
async def test_o8_long_output_keeps_head_and_tail_with_the_totals(tools: Tools, tool: str) -> None:
    """O8: one rule for commands and code."""
    if tool == "run_command":
        result = await tools.call(tool, command="seq 1 200000")
    else:
        result = await tools.call(tool, code="for n in range(1, 200001): print(n)")
    assert result["stdout"].startswith("1\n2\n3\n")
    assert result["stdout"].endswith("199999\n200000\n")
    assert len(result["stdout"]) < 30_100
    assert result["stdout_bytes"] == 1_288_895


async def test_o9_truncated_output_always_says_so(tools: Tools) -> None:
    """O9: flag, marker and note; none of them for output that is whole."""
    cut = await tools.call("run_command", command="head -c 30001 /dev/zero | tr '\\0' x")
    assert cut["truncated"]
    assert "[... 1 bytes left out ...]" in cut["stdout"]
    assert "cut" in cut["note"]
    whole = await tools.call("run_command", command="head -c 30000 /dev/zero | tr '\\0' x")
    assert not whole["truncated"]
    assert "note" not in whole


async def test_o17_text_outside_ascii_prints(tools: Tools) -> None:
    """O17."""
    assert (await tools.call("run_code", code="print('☹ é')"))["stdout"] == "☹ é\n"
    assert (await tools.call("run_command", command="python3 -c 'print(\"☹ é\")'"))["stdout"] == "☹ é\n"


async def test_f1_every_byte_survives_a_write_and_a_read(tools: Tools, tmp_path: Path) -> None:
    """F1, F2, F6: equal hashes both ways."""
    data = ALL_BYTES * 4096
    path = str(tmp_path / "bytes.bin")
    encoded = base64.b64encode(data).decode()
    written = await tools.call("write_file", path=path, content=encoded, encoding="base64")
    assert written == {"success": True, "bytes_written": len(data)}
    read = await tools.call("read_file", path=path, encoding="base64")
    assert read["content"] == encoded
    listed = await tools.call("run_command", command=f"sha256sum {path}")
    assert listed["stdout"].split()[0] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("content", ["!!!!", "QQ=", "QQ", "QR==", "QUJD\n", "QQ==QQ=="])
async def test_f4_malformed_base64_is_refused_and_the_file_is_untouched(
    tools: Tools, unsandboxed_plane: ScriptedPlane, tmp_path: Path, content: str
) -> None:
    """F4: before any sandbox is touched."""
    path = tmp_path / "file"
    path.write_text("before")
    failure = await tools.refused("write_file", path=str(path), content=content, encoding="base64")
    assert (failure["code"], failure["details"]["field"]) == ("invalid_argument", "content")
    assert path.read_text() == "before"
    assert unsandboxed_plane.alive == []


async def test_f8_the_encoding_decides_how_a_file_is_read(tools: Tools, tmp_path: Path) -> None:
    """F8: and a file that is no text in it says so."""
    path = str(tmp_path / "latin")
    await tools.call("write_file", path=path, content=base64.b64encode(b"caf\xe9").decode(), encoding="base64")
    assert (await tools.call("read_file", path=path, encoding="latin-1"))["content"] == "café"
    assert (await tools.refused("read_file", path=path))["code"] == "not_text"
    wide = base64.b64encode("é".encode("utf-16")).decode()
    await tools.call("write_file", path=path, content=wide, encoding="base64")
    assert (await tools.call("read_file", path=path, encoding="utf-16"))["content"] == "é"


async def test_f14_a_huge_file_is_refused_by_its_size(tools: Tools, tmp_path: Path) -> None:
    """F14: 3 GB, before anything is read."""
    path = str(tmp_path / "huge")
    await tools.call("run_command", command=f"truncate -s 3G {path}")
    with anyio.fail_after(5):
        failure = await tools.refused("read_file", path=path)
    assert failure["code"] == "file_too_large"
    assert failure["details"] == {"size": 3 * 1024**3, "limit": 4_194_304}


@pytest.mark.parametrize("name", ["😀.txt", "résumé.pdf", "a b.txt", "100%.txt", "a?b#c&d=e.txt", "new\nline"])
async def test_f16_any_utf8_name_makes_the_round_trip(tools: Tools, tmp_path: Path, name: str) -> None:
    """F16."""
    path = f"{tmp_path}/{name}"
    await tools.call("write_file", path=path, content="x")
    assert (await tools.call("read_file", path=path))["content"] == "x"
    assert [file["name"] for file in (await tools.call("list_files", path=str(tmp_path)))["files"]] == [name]


async def test_f18_a_mode_can_be_set_and_an_overwrite_keeps_it(tools: Tools, tmp_path: Path) -> None:
    """F18."""
    path = tmp_path / "tool.sh"
    await tools.call("write_file", path=str(path), content="#!/bin/sh\necho ran\n", mode="755")
    assert path.stat().st_mode & 0o7777 == 0o755
    await tools.call("write_file", path=str(path), content="#!/bin/sh\necho again\n")
    assert path.stat().st_mode & 0o7777 == 0o755
    assert (await tools.call("run_command", command=str(path)))["stdout"] == "again\n"


async def test_f23_what_a_call_wrote_the_next_call_reads(tools: Tools, unsandboxed_plane: ScriptedPlane) -> None:
    """F23: one sandbox, and success means that it is there."""
    await tools.call("run_command", command="echo kept > kept.txt")
    home = (await tools.call("run_command", command="pwd"))["stdout"].strip()
    assert (await tools.call("read_file", path=f"{home}/kept.txt"))["content"] == "kept\n"
    assert len(unsandboxed_plane.alive) == 1


async def test_p4_a_write_outside_by_a_relative_path_is_refused(tools: Tools, tmp_path: Path) -> None:
    """P4: the file tools take absolute paths only; what those reach is the sandbox's own tree."""
    failure = await tools.refused("write_file", path="../../etc/cron.d/x", content="x")
    assert failure["details"] == {"field": "path", "rule": "pattern"}


@pytest.mark.parametrize("path", ["/tmp/../etc/passwd", "/..", "relative.txt", "../../etc/cron.d/x", "/a/\0b"])
async def test_p3_a_path_that_leaves_or_wanders_is_refused_before_anything(
    tools: Tools, unsandboxed_plane: ScriptedPlane, path: str
) -> None:
    """P3: for each file tool."""
    for tool in ("read_file", "write_file", "list_files"):
        content = {"content": "x"} if tool == "write_file" else {}
        failure = await tools.refused(tool, path=path, **content)
        assert (failure["code"], failure["details"]["field"]) == ("invalid_argument", "path")
    assert unsandboxed_plane.alive == []


async def test_l1_eight_parallel_first_calls_share_one_sandbox(tools: Tools, unsandboxed_plane: ScriptedPlane) -> None:
    """L1: through the tools."""
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(_run, tools, f"echo {number}")
    assert len(unsandboxed_plane.alive) == 1


async def _run(tools: Tools, command: str) -> None:
    await tools.call("run_command", command=command)


async def test_l5_parallel_commands_do_not_mix_their_output(tools: Tools) -> None:
    """L5: each in a process of its own."""
    await tools.call("run_command", command="true")
    outputs: dict[int, str] = {}

    async def run(number: int) -> None:
        command = f"for i in $(seq 200); do echo {number}; done"
        outputs[number] = (await tools.call("run_command", command=command))["stdout"]

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(run, number)
    assert outputs == {number: f"{number}\n" * 200 for number in range(6)}


async def test_l22_python_keeps_its_variables(tools: Tools) -> None:
    """L22: one context for the session; and another language says that it keeps none."""
    first = await tools.call("run_code", code="x = 41")
    assert first["state_kept"]
    assert (await tools.call("run_code", code="print(x + 1)"))["stdout"] == "42\n"


async def test_l23_an_interpreter_that_died_says_so_and_the_next_call_is_fresh(tools: Tools) -> None:
    """L23: typed, at once, and the state is known to be gone."""
    await tools.call("run_code", code="x = 1")
    died = await tools.call("run_code", code="import os; os.kill(os.getpid(), 9)")
    assert died["stop_reason"] == "interpreter_died"
    assert not died["state_kept"]
    assert "variables are gone" in died["note"]
    fresh = await tools.call("run_code", code="print('x' in globals())")
    assert fresh["stdout"] == "False\n"
    assert "note" not in await tools.call("run_code", code="1")


async def test_l23_an_interpreter_that_dies_between_two_calls_is_told_by_the_next(tools: Tools) -> None:
    """L23: "next call gets a new context, told so"."""
    await tools.call("run_code", code="import os, signal, threading\nx = 1")
    code = "threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()"
    assert (await tools.call("run_code", code=code))["stop_reason"] == "exit"
    with anyio.fail_after(20):
        while "fresh one" not in (told := await tools.call("run_code", code="1")).get("note", ""):
            assert told["stop_reason"] in ("exit", "interpreter_died")
            if told["stop_reason"] == "interpreter_died":
                return


async def test_l25_one_display_is_one_result(tools: Tools) -> None:
    """L25: HTML arrives whole."""
    code = "class Figure:\n    def _repr_html_(self): return '<div>' + 'x' * 20000 + '</div>'\nFigure()"
    results = (await tools.call("run_code", code=code))["results"]
    html = [item for item in results if item["type"] == "html"]
    assert [item["size"] for item in html] == [20_011]
    assert html[0]["text"].endswith("</div>")
