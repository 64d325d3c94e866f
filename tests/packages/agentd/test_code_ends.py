"""How code ends: by itself, late, or with its interpreter; and what user code cannot forge."""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import TOKEN, Client, PlainAgent, alive, peak_kb, processes_with, running_agent


def _unique(seconds: int) -> str:
    return f"{seconds}.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"


def test_timeout_interrupts_and_keeps_the_state(client: Client) -> None:
    """Timeout: SIGINT first. The call tells that the variables are still there."""
    client.execute("before = 1")
    ran = client.execute("print('so far')\nimport time\ntime.sleep(60)", timeout_ms=200)
    assert ran.stdout == "so far\n"
    assert ran.end["stop_reason"] == "timeout"
    assert ran.end["timed_out"] is True
    assert ran.end["exit_code"] == 130
    assert ran.end["state_kept"] is True
    assert client.execute("before").results[0]["text"] == "1"


def test_timeout_ends_code_that_ignores_interrupts(fresh_agent: PlainAgent) -> None:
    """Timeout: SIGKILL 2 s later, and the next call is told that it has a new interpreter."""
    code = "import time\nx = 1\nwhile True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass"
    with fresh_agent.client() as client:
        started = time.monotonic()
        ran = client.execute(code, timeout_ms=100)
        assert 1.9 < time.monotonic() - started < 6
        assert ran.end["stop_reason"] == "timeout"
        assert ran.end["state_kept"] is False
        after = client.execute("'x' in globals()")
        assert after.results[0]["text"] == "False"
        assert after.end["context_restarted"] == "timeout"
        assert "context_restarted" not in client.execute("1").end


def test_timeout_interrupts_awaiting_code(client: Client) -> None:
    """Top-level await is interrupted like anything else, and can be used again."""
    client.execute("waited = 1")
    ran = client.execute("import asyncio\nawait asyncio.sleep(60)", timeout_ms=100)
    assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("timeout", True)
    assert client.execute("await asyncio.sleep(0, waited)").results[0]["text"] == "1"


def test_timeout_interrupts_a_program_that_code_waits_for(client: Client) -> None:
    """os.system() shields its caller, so the program is interrupted with it, and the state stays."""
    client.execute("kept_on = 1")
    ran = client.execute("import os\n_ = os.system('sleep 60')", timeout_ms=100)
    assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("timeout", True)
    assert client.execute("kept_on").results[0]["text"] == "1"


def test_code_of_a_client_that_left_the_queue_does_not_run(agent: PlainAgent, client: Client) -> None:
    """Cancelled while waiting for its turn: never started."""
    with agent.client() as first, agent.client() as second:
        lines = first.lines("import time\nprint('busy')\ntime.sleep(0.4)")
        while next(lines)["type"] != "stdout":
            pass
        body = json.dumps({"code": "ran_anyway = True"}).encode()
        second.connection.request("POST", "/execute", body, {"x-access-token": TOKEN})
        second.connection.close()
        list(lines)
    assert client.execute("'ran_anyway' in globals()").results[0]["text"] == "False"


def test_t3_programs_of_late_code_are_gone(client: Client) -> None:
    """T3 for code: what the execution started is killed, what an earlier one started lives."""
    earlier, late = _unique(300), _unique(301)
    client.execute(
        f"import subprocess, time\nserver = subprocess.Popen(['sleep', '{earlier}'], start_new_session=True)"
    )
    time.sleep(0.05)  # start times have a resolution of 10 ms
    ran = client.execute(
        f"subprocess.Popen(['sleep', '{late}'], start_new_session=True)\n"
        f"subprocess.run('sleep {late}; true', shell=True)",
        timeout_ms=300,
    )
    assert ran.end["state_kept"] is True
    assert processes_with(late) == []
    assert len(processes_with(earlier)) == 1
    client.execute("server.kill(); server.wait()")


def test_l23_memory_error_is_told(client: Client) -> None:
    """L23: an allocation that fails is an error of the code, and the session lives."""
    ran = client.execute("raise MemoryError")
    assert ran.error is not None
    assert ran.error["name"] == "MemoryError"
    assert ran.end["stop_reason"] == "memory_limit"
    assert ran.end["state_kept"] is True


def test_l23_dead_interpreter_is_told_and_replaced(fresh_agent: PlainAgent) -> None:
    """L23, jupyter/help#418: no hanging, a reason, and the next call gets a new context and is told so."""
    with fresh_agent.client() as client:
        client.execute("x = 1")
        ran = client.execute("import os, signal\nprint('last words')\nos.kill(os.getpid(), signal.SIGKILL)")
        assert ran.stdout == "last words\n"
        assert ran.error is not None
        assert "memory" in ran.error["value"]
        assert ran.end["stop_reason"] == "interpreter_died"
        assert ran.end["exit_code"] == 137
        assert ran.end["state_kept"] is False
        after = client.execute("'x' in globals()")
        told = after.lines[0]
        assert (told["type"], told["reason"], told["exit_code"]) == ("context_restarted", "died", 137)
        assert "SIGKILL" in told["text"]
        assert "memory" in told["text"]
        assert after.results[0]["text"] == "False"
        assert after.end["context_restarted"] == "died"


def test_l23_hard_exit_keeps_its_code(fresh_agent: PlainAgent) -> None:
    """os._exit is no memory problem."""
    with fresh_agent.client() as client:
        ran = client.execute("import os\nos._exit(7)")
        assert ran.end["exit_code"] == 7
        after = client.execute("1")
        assert (after.lines[0]["reason"], after.lines[0]["exit_code"]) == ("died", 7)
        assert "memory" not in after.lines[0]["text"]


def test_interpreter_that_dies_between_calls_is_replaced(fresh_agent: PlainAgent) -> None:
    """A death that nobody waits for is told by the next call."""
    with fresh_agent.client() as client:
        pid = int(client.execute("import os; print(os.getpid())").stdout)
        os.kill(pid, signal.SIGKILL)
        client.run(f"while kill -0 {pid} 2>/dev/null; do sleep 0.01; done", connect_timeout_ms="5000")
        after = client.execute("2")
        assert after.results[0]["text"] == "2"
        assert after.end["context_restarted"] == "died"


def test_disconnect_interrupts_the_code(agent: PlainAgent, client: Client) -> None:
    """agent-protocol 3: the client's leaving interrupts; the next call does not wait for it."""
    with agent.client() as other:
        lines = other.lines("import time\nprint('go')\ntime.sleep(60)")
        next(lines)
        other.connection.sock.close()
        del lines
    started = time.monotonic()
    assert client.execute("3").results[0]["text"] == "3"
    assert time.monotonic() - started < 10


def test_executions_of_a_context_take_turns(agent: PlainAgent) -> None:
    """agent-protocol 3: one lock per context."""
    first, second = agent.client(), agent.client()
    with first, second:
        lines = first.lines("import time\nprint('one')\ntime.sleep(0.3)\nturn = 1")
        while next(lines)["type"] != "stdout":
            pass
        assert second.execute("turn").results[0]["text"] == "1"
        assert [line["type"] for line in lines] == ["end_of_execution"]


def test_user_code_that_breaks_the_channel_only_hurts_itself(fresh_agent: PlainAgent) -> None:
    """The keeper trusts nothing on the control channel."""
    with fresh_agent.client() as client:
        for code in (
            "import os; os.write(3, b'\\xff\\xff\\xff\\xff')",
            "import os; os.write(3, b'\\0\\0\\0\\5[1,2]')",
            "import os; os.close(3)",
            "import os; os.write(3, b'\\0\\0\\0\\2{}' * 1000); os.write(3, b'\\0\\0\\0\\7{nope!}')",
        ):
            ran = client.execute(code)
            assert ran.end["state_kept"] is False, code
            assert client.execute("1").results[0]["text"] == "1"


@pytest.mark.parametrize(
    "header",
    [
        {"types": [["image/png", 5]], "parts": [2]},
        {"types": "x", "parts": [2]},
        {"types": [["application/json", "text"]], "parts": [2]},
        {"types": [["text/plain", "text"]]},
        {"types": None, "files": "no", "main": "yes"},
        {"n": "x"},
    ],
)
def test_forged_results_are_dropped(client: Client, header: dict[str, object]) -> None:
    """A result that is no result makes no line, and the session goes on."""
    text = json.dumps({"t": "result", **header}).encode()
    frame = struct.pack(">I", len(text)) + text + (b"{x" if "parts" in header else b"")
    code = f"import os\n_ = os.write(3, {frame!r})"
    ran = client.execute(code)
    assert ran.results == []
    assert ran.end["state_kept"] is True


def test_json_of_user_code_costs_the_keeper_little(fresh_agent: PlainAgent) -> None:
    """Large payloads are never parsed: a few MiB of brackets would become hundreds of MiB of objects."""
    code = (
        "class B:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/plain': 'b', 'text/html': '[],' * 2500000, 'application/json': [[]] * 400000}\nB()"
    )
    with fresh_agent.client() as client:
        client.execute("1")
        before = peak_kb(fresh_agent.process.pid)
        ran = client.execute(code)
        assert peak_kb(fresh_agent.process.pid) - before < 120 * 1024
    assert len(ran.results[0]["html"]) == 7500000
    assert [item["name"] for item in ran.end["output_files"]] == ["result-2-1.json"]


def test_death_of_the_agent_takes_interpreters_along(tmp_path: Path) -> None:
    """Nothing of a sandbox outlives its agent, busy or not."""
    with running_agent(tmp_path) as agent, agent.client() as client:
        idle = int(client.execute("import os; print(os.getpid())").stdout)
        command = client.start("sleep 300")
        agent.process.kill()
        agent.process.wait(10)
        deadline = time.monotonic() + 10
        while alive(idle) or alive(command.ran.pid):
            assert time.monotonic() < deadline


def test_context_that_cannot_start_is_a_typed_refusal(client: Client) -> None:
    """An answer that has not begun can still be an error."""
    reply = client.call("POST", "/contexts", json.dumps({"cwd": "/no/such"}).encode())
    assert (reply.status, reply.value["cloche"]["code"]) == (400, "cwd_not_found")
    folder = "/tmp/cloche-gone-" + _unique(1)
    client.run(f"mkdir {folder}")
    made = client.call("POST", "/contexts", json.dumps({"cwd": folder}).encode()).value["id"]
    client.call("POST", f"/contexts/{made}/restart")
    client.run(f"rmdir {folder}")
    refused = client.call("POST", "/execute", json.dumps({"code": "1", "context_id": made}).encode())
    assert (refused.status, refused.value["cloche"]["code"]) == (400, "cwd_not_found")
    client.call("DELETE", f"/contexts/{made}")


def test_client_that_reads_slowly_keeps_its_state_after_a_timeout(agent: PlainAgent, client: Client) -> None:
    """Results that wait for a slow reader do not hide that the code has stopped."""
    client.execute("slow = 1")
    code = "while True: display(HTML_ * 200000)"
    client.execute("HTML_ = 'x'")
    with agent.client() as other:
        lines = other.lines(code, timeout_ms=300)
        next(lines)
        client.run("sleep 0.8")
        last = list(lines)[-1]
    assert (last["stop_reason"], last["state_kept"]) == ("timeout", True)
    assert client.execute("slow").results[0]["text"] == "1"


def test_interrupt_in_the_middle_of_a_large_result_keeps_the_session(client: Client) -> None:
    """A frame is sent whole or not at all: the timeout waits for its end, not for the next one's."""
    client.execute("class Big:\n    def _repr_html_(self): return 'x' * 7_000_000\nbig = Big()")
    for _ in range(6):
        ran = client.execute("while True: display(big)", timeout_ms=60)
        assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("timeout", True)
    assert client.execute("big is not None").results[0]["text"] == "True"
