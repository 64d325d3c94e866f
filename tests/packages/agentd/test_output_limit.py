"""More output than a request allows ends what prints it, wherever output is read.

Source: faults O11 (piston#301): SIGKILL without a reason; here a typed stop reason, with the output so far.
"""

from __future__ import annotations

import uuid
from typing import cast

import pytest

from cloche_agentd.execution import Run
from cloche_agentd.output_budget import OutputBudget
from cloche_agentd.sink import ExecutionSink
from tests.packages.agentd.plain_agent import Client, PlainAgent, Ran, processes_with
from tests.packages.agentd.test_tasks import ended, output, refusal, start

FOREVER = "trap '' TERM; yes | cat"
PRINT_FOREVER = "while True: print('y' * 99)"


def stopped(ran: Ran) -> tuple[object, object]:
    return ran.end["stopReason"], ran.end["exitCode"]


def test_o11_a_command_that_prints_for_ever_is_ended_with_its_tree(client: Client) -> None:
    """Exactly the limit arrives; a child that prints nothing is gone as well."""
    ran = client.run(f"echo first; sleep 1234.11 & {FOREVER}", cloche_output_limit="100000")
    assert stopped(ran) == ("output_limit", 137)
    assert (len(ran.stdout), ran.stdout[:6]) == (100_000, b"first\n")
    assert processes_with("1234.11") == []


def test_o11_both_streams_count_together(client: Client) -> None:
    ran = client.run(f"({FOREVER}) & ({FOREVER}) >&2", cloche_output_limit="50000")
    assert stopped(ran) == ("output_limit", 137)
    assert len(ran.stdout) + len(ran.stderr) == 50_000


def test_o11_last_words_beyond_the_limit_are_told_like_the_rest(client: Client) -> None:
    """piston#301: 1,025 characters where 1,024 are allowed. The program has ended by itself; nothing depends on it."""
    program = "head -c {} /dev/zero | tr '\\0' x"
    ran = client.run(program.format(1025), cloche_output_limit="1024")
    assert stopped(ran) == ("output_limit", 137)
    assert ran.stdout == b"x" * 1024
    ran = client.run(program.format(1024), cloche_output_limit="1024")
    assert (ran.end["stopReason"], ran.stdout) == ("exit", b"x" * 1024)


def test_o11_a_terminal_has_the_same_limit(client: Client) -> None:
    size = {"pty": {"size": {"cols": 80, "rows": 24}}}
    ran = client.run(FOREVER, more=size, cloche_output_limit="40000")
    assert (*stopped(ran), len(ran.pty)) == ("output_limit", 137, 40_000)


def test_o11_a_task_is_ended_and_its_log_says_so(client: Client) -> None:
    task = start(client, f"sleep 1234.12 & echo first; {FOREVER}", output_limit=100_000)
    report = ended(client, task)
    told = {key: report["task"][key] for key in ("state", "stop_reason", "exit_code")}
    assert told == {"state": "failed", "stop_reason": "output_limit", "exit_code": 137}
    assert (report["stdout"]["size"], output(report)[:6]) == (100_000, b"first\n")
    assert processes_with("1234.12") == []


def test_o11_last_words_of_a_task_count_too(client: Client) -> None:
    report = ended(client, start(client, "head -c 2000 /dev/zero", output_limit=1000))
    assert (report["task"]["state"], report["task"]["stop_reason"]) == ("failed", "output_limit")
    assert output(report) == bytes(1000)
    assert ended(client, start(client, "head -c 1000 /dev/zero", output_limit=1000))["task"]["state"] == "succeeded"


def test_o11_the_same_task_with_another_limit_is_another_task(client: Client) -> None:
    task = start(client, "true", task_id=uuid.uuid4().hex, output_limit=1000)
    again = {"task_id": task, "command": "true", "timeout": 60, "output_limit": 1001}
    assert refusal(client, "Start", again)[1] == "idempotency_conflict"


def test_o11_python_is_interrupted_and_keeps_its_state(client: Client) -> None:
    """As at a timeout: what the code had computed is of use to whoever wants less output."""
    client.execute("kept = 41")
    ran = client.execute(f"print('first')\n{PRINT_FOREVER}", output_limit=100_000)
    assert (ran.end["stop_reason"], ran.end["exit_code"], ran.end["state_kept"]) == ("output_limit", 130, True)
    assert (ran.end["stdout_bytes"], ran.stdout[:6]) == (100_000, "first\n")
    after = client.execute("kept + 1")
    assert (after.results[0]["text"], after.stdout) == ("42", "")
    assert "context_restarted" not in after.end


def test_o11_code_that_ignores_interrupts_loses_its_interpreter_and_the_next_call_is_told(
    fresh_agent: PlainAgent,
) -> None:
    stubborn = "while True:\n    try:\n        print('y' * 99)\n    except KeyboardInterrupt:\n        pass"
    with fresh_agent.client() as client:
        ran = client.execute(stubborn, output_limit=100_000)
        assert (ran.end["stop_reason"], ran.end["exit_code"], ran.end["state_kept"]) == ("output_limit", 137, False)
        assert client.execute("1").end["context_restarted"] == "output_limit"


def test_o11_last_words_of_code_count_and_cost_no_state(client: Client) -> None:
    """The end of the code arrives just behind the output that was too much; it must not be waited for in vain."""
    ran = client.execute("last = 5\nprint('x' * 5000)", output_limit=1000)
    assert (ran.end["stop_reason"], ran.end["state_kept"], ran.stdout) == ("output_limit", True, "x" * 1000)
    assert client.execute("last").results[0]["text"] == "5"


def test_o11_what_is_displayed_for_ever_counts_too(client: Client) -> None:
    ran = client.execute("while True: display('z' * 999)", output_limit=100_000)
    assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("output_limit", True)
    assert len(ran.results) == 99


def test_o11_a_program_that_code_started_is_gone(client: Client) -> None:
    ran = client.execute("import os\n_ = os.system('sleep 1234.13 & yes')", output_limit=100_000)
    assert ran.end["stop_reason"] == "output_limit"
    assert processes_with("1234.13") == []


def test_o11_a_language_that_runs_per_call_is_ended(client: Client) -> None:
    ran = client.execute(f"sleep 1234.14 & {FOREVER}", language="shell", output_limit=100_000)
    assert (ran.end["stop_reason"], ran.end["exit_code"], len(ran.stdout)) == ("output_limit", 137, 100_000)
    assert processes_with("1234.14") == []
    ran = client.execute("head -c 2000 /dev/zero | tr '\\0' x", language="shell", output_limit=1000)
    assert (ran.end["stop_reason"], ran.stdout) == ("output_limit", "x" * 1000)


def test_without_a_limit_nothing_is_counted(client: Client) -> None:
    """Clients of E2B's protocol name none: their output is whole (faults O10)."""
    assert len(client.run("head -c 3000000 /dev/zero", cloche_output_limit="0").stdout) == 3_000_000


@pytest.mark.parametrize("value", ["-1", "x", "99999999999999999"])
def test_a_limit_that_is_no_number_is_refused(client: Client, value: str) -> None:
    assert client.run("true", cloche_output_limit=value).failure == "invalid_argument"


def test_the_budget_tells_once() -> None:
    told: list[str] = []
    budget = OutputBudget(3, lambda: told.append("spent"))
    assert [budget.take(piece) for piece in (b"ab", b"c", b"de", b"f")] == [b"ab", b"c", b"", b""]
    assert told == ["spent"]


async def test_an_end_that_comes_behind_too_much_output_is_not_waited_for_in_vain() -> None:
    """What was printed last arrives just before the end; an interrupt for it would find nothing to interrupt."""
    run = Run(cast("ExecutionSink", None), 1)  # nothing is written here
    run.budget.take(b"ab")
    run.tell(("done", {}))
    assert await run.wait(None) == ("output_limit", None)
    run.again()
    assert await run.wait(0) == ("done", {})
