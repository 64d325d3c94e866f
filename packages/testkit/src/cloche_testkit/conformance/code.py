"""Code runs in an interpreter that remembers."""

import anyio
import pytest

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import KillRequest, SandboxProvider
from cloche_testkit._http import ConnectionCut
from cloche_testkit.agent_client import AgentRefused, CodeOutcome, TestAgent
from cloche_testkit.conformance.base import WITHIN_S, ProviderSuite


class CodeConformance(ProviderSuite):
    """POST /execute."""

    async def test_code_gives_its_output_and_last_value(self, agent: TestAgent) -> None:
        outcome = await agent.run_code("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
        assert (outcome.stdout, outcome.stderr) == ("out\n", "err\n")
        assert [result["text"] for result in outcome.results] == ["42"]
        assert (outcome.end["exit_code"], outcome.end["stop_reason"]) == (0, "exit")

    async def test_l22_a_variable_is_there_in_the_next_call(self, agent: TestAgent) -> None:
        """Fault L22."""
        await agent.run_code("x = 1")
        outcome = await agent.run_code("print(x + 1)")
        assert (outcome.stdout, outcome.end["state_kept"]) == ("2\n", True)

    async def test_an_exception_is_told_and_the_state_is_kept(self, agent: TestAgent) -> None:
        outcome = await agent.run_code("kept = 5\nraise ValueError('wrong')")
        assert outcome.error is not None
        assert (outcome.error["name"], outcome.error["value"]) == ("ValueError", "wrong")
        assert "ValueError: wrong" in outcome.error["traceback"]
        assert outcome.end["exit_code"] == 1
        assert (await agent.run_code("print(kept)")).stdout == "5\n"

    @pytest.mark.parametrize(("code", "status"), [("exit()", 0), ("import sys; sys.exit(42)", 42)])
    async def test_t17_an_exit_gives_its_status_and_the_next_call_works(
        self, agent: TestAgent, code: str, status: int
    ) -> None:
        """Fault T17."""
        outcome = await agent.run_code(code)
        assert (outcome.end["exit_code"], outcome.end["stop_reason"]) == (status, "exit")
        assert (await agent.run_code("print('again')")).stdout == "again\n"

    async def test_t20_a_timeout_interrupts_and_the_next_call_works(self, agent: TestAgent) -> None:
        """Faults T8 and T20: partial output, and whether the state survived."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run_code("y = 7\nprint('before', flush=True)\nwhile True: pass", timeout_s=0.5)
        assert outcome.stdout == "before\n"
        assert (outcome.end["stop_reason"], outcome.end["timed_out"]) == ("timeout", True)
        again = await agent.run_code("print('y' in globals())")
        assert again.stdout == f"{outcome.end['state_kept']}\n"

    async def test_l23_an_interpreter_that_dies_is_told_and_replaced(self, agent: TestAgent) -> None:
        """Fault L23."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run_code("z = 1\nimport os\nos._exit(3)")
        assert (outcome.end["stop_reason"], outcome.end["state_kept"]) == ("interpreter_died", False)
        assert (await agent.run_code("print('z' in globals())")).stdout == "False\n"

    async def test_t16_a_sandbox_killed_during_an_execution_invents_no_status(
        self, provider: SandboxProvider, sandbox: SandboxRecord, agent: TestAgent
    ) -> None:
        """Fault T16."""
        outcome = CodeOutcome()
        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:

                async def kill() -> None:
                    await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))

                try:
                    outcome = await agent.run_code(
                        "print('up', flush=True)\nimport time; time.sleep(300)",
                        timeout_s=300,
                        on_output=lambda: tasks.start_soon(kill),
                    )
                except ConnectionCut:
                    return
        assert outcome.end["stop_reason"] == "sandbox_lost"

    async def test_files_that_the_code_wrote_are_named(self, agent: TestAgent) -> None:
        """Seed 001: output_files[{name, path, size}]."""
        outcome = await agent.run_code("with open('report.csv', 'w') as f: f.write('a,b\\n')")
        (file,) = outcome.end["output_files"]
        assert (file["name"], file["size"]) == ("report.csv", 4)
        assert await agent.read(file["path"]) == b"a,b\n"

    async def test_the_shell_is_always_a_language(self, agent: TestAgent) -> None:
        outcome = await agent.run_code("echo hi; exit 3", language="shell")
        assert (outcome.stdout, outcome.end["exit_code"]) == ("hi\n", 3)

    async def test_a_language_that_is_missing_is_told_with_those_that_are_there(self, agent: TestAgent) -> None:
        with pytest.raises(AgentRefused) as refusal:
            await agent.run_code("DISPLAY 'HI'.", language="cobol")
        assert refusal.value.code == "unsupported_language"
        assert {"python", "shell"} <= set(refusal.value.body["cloche"]["available"])

    async def test_variables_of_the_call_are_gone_after_it(self, agent: TestAgent) -> None:
        first = await agent.run_code("import os; print(os.environ['ONCE'])", envs={"ONCE": "1"})
        second = await agent.run_code("print('ONCE' in os.environ)")
        assert (first.stdout, second.stdout) == ("1\n", "False\n")
