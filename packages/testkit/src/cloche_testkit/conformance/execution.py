"""Commands run, end, are ended, and leave nothing."""

import os

import anyio
import pytest

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import CreateRequest, KillRequest, SandboxProvider
from cloche_testkit._http import ConnectionCut
from cloche_testkit.agent_client import CommandOutcome, TestAgent
from cloche_testkit.conformance.base import WITHIN_S, ProviderSuite, agent_of, eventually, nothing_runs


class ExecutionConformance(ProviderSuite):
    """process.Process/Start and what stands around it."""

    async def test_a_command_gives_its_output_and_status(self, agent: TestAgent) -> None:
        outcome = await agent.run("echo out; echo err >&2; exit 42")
        assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (b"out\n", b"err\n", 42)

    async def test_a_command_that_a_signal_ended_gives_128_and_its_number(self, agent: TestAgent) -> None:
        assert (await agent.run("kill -9 $$")).exit_code == 137

    async def test_t12_stdin_is_empty_so_a_reader_ends_at_once(self, agent: TestAgent) -> None:
        """Faults T12 and T14: a program that waits for input."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run("cat; echo read")
        assert (outcome.stdout, outcome.exit_code) == (b"read\n", 0)

    @pytest.mark.parametrize(
        ("command", "stdout"),
        [
            ("echo a && echo b; echo c", b"a\nb\nc\n"),
            ("cat <<EOF\none\ntwo\nEOF", b"one\ntwo\n"),
            ('printf \'%s\' "it\'s \\"quoted\\""', b'it\'s "quoted"'),
            ("for i in 1 2; do echo $i; done | tail -n 1", b"2\n"),
            ("echo 'déjà vu 😀'", "déjà vu 😀\n".encode()),
        ],
    )
    async def test_t32_the_shell_gets_the_command_word_for_word(
        self, agent: TestAgent, command: str, stdout: bytes
    ) -> None:
        """Faults T31 and T32."""
        assert (await agent.run(command)).stdout == stdout

    async def test_t8_a_timeout_keeps_the_output_so_far(self, agent: TestAgent) -> None:
        """Fault T8."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run("echo before; sleep 300; echo after", timeout_s=0.5)
        assert outcome.stdout == b"before\n"
        assert outcome.end is None, "a command that was stopped has no exit status of its own"
        assert outcome.error is not None
        assert outcome.error["code"] == "deadline_exceeded"

    @pytest.mark.parametrize(
        "command",
        [
            "sleep {mark}",
            "sleep {mark} & wait",
            "(sleep {mark} & sleep {mark} & wait) & wait",
            "setsid sleep {mark} & sleep {mark}",
            "trap '' TERM HUP INT; sleep {mark}; sleep {mark}",
        ],
    )
    async def test_t1_t3_a_timeout_leaves_no_process(self, agent: TestAgent, command: str) -> None:
        """Faults T1 and T3: the whole tree dies, also what left the group or ignores SIGTERM."""
        mark = f"30{os.getpid()}.5"
        with anyio.fail_after(WITHIN_S):
            await agent.run(command.format(mark=mark), timeout_s=0.5)
        await eventually(nothing_runs(agent, mark), "no process is left")

    async def test_t6_a_command_in_the_background_does_not_hold_the_call(self, agent: TestAgent) -> None:
        """Faults T6 and T34: it returns at once, and the process lives on."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run("sleep 301 >/dev/null 2>&1 & echo started")
        assert outcome.stdout == b"started\n"
        assert not await nothing_runs(agent, "301")()

    async def test_a_cancelled_call_kills_the_command(self, agent: TestAgent) -> None:
        """Fault M6."""
        mark = f"31{os.getpid()}.5"
        seen = anyio.Event()
        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    await agent.run(f"echo up; sleep {mark}", timeout_s=300, on_output=lambda _: seen.set())

                tasks.start_soon(run)
                await seen.wait()
                tasks.cancel_scope.cancel()
        await eventually(nothing_runs(agent, mark), "the command is dead")

    async def test_t15_a_stuck_command_blocks_no_other(self, agent: TestAgent) -> None:
        """Faults T15, T20 and L5."""
        outputs: list[bytes] = []
        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.run, "sleep 300")
                outputs = [(await agent.run(f"echo {number}")).stdout for number in range(5)]
                tasks.cancel_scope.cancel()
        assert outputs == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]

    async def test_t16_a_sandbox_killed_during_a_command_invents_no_status(
        self, provider: SandboxProvider, sandbox: SandboxRecord, agent: TestAgent
    ) -> None:
        """Fault T16."""
        seen = anyio.Event()
        outcome = CommandOutcome()

        async def kill() -> None:
            await seen.wait()
            await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))

        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                try:
                    outcome = await agent.run("echo up; sleep 300", timeout_s=300, on_output=lambda _: seen.set())
                except ConnectionCut:
                    return
        assert outcome.end is None or outcome.end.get("stopReason") == "sandbox_lost"

    async def test_a_missing_folder_is_told_before_anything_runs(self, agent: TestAgent) -> None:
        """Fault T18."""
        outcome = await agent.run("echo ran", cwd="/no/such/folder")
        assert (outcome.error_code, outcome.stdout) == ("cwd_not_found", b"")

    async def test_o1_bytes_that_are_no_text_arrive(self, agent: TestAgent) -> None:
        """Faults O1 and O4."""
        outcome = await agent.run(r"printf '\377\000\200a\n\nb\n\n\nc\n'")
        assert outcome.stdout == b"\xff\x00\x80a\n\nb\n\n\nc\n"

    async def test_o6_a_burst_arrives_whole(self, agent: TestAgent) -> None:
        """Fault O6: 4 MiB, then exit."""
        with anyio.fail_after(WITHIN_S):
            outcome = await agent.run("head -c 4194304 /dev/zero | tr '\\0' x")
        assert len(outcome.stdout) == 4194304
        assert set(outcome.stdout) == {ord("x")}

    async def test_variables_of_create_and_of_the_call_reach_the_command(
        self, provider: SandboxProvider, template: str
    ) -> None:
        request = CreateRequest(template=template, timeout=120, envs={"FIRST": "a b", "SECOND": "x=y"})
        agent = await agent_of(provider, (await provider.create(request)).sandbox_id)
        outcome = await agent.run('echo "$FIRST|$SECOND|$THIRD"', envs={"SECOND": "call", "THIRD": "3"})
        assert outcome.stdout == b"a b|call|3\n"

    async def test_e1_variables_of_this_process_do_not_reach_the_command(
        self, provider: SandboxProvider, template: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fault E1: the server's keys."""
        monkeypatch.setenv("CLOCHE_SECRET_OF_THE_SERVER", "visible-only-outside")
        record = await provider.create(CreateRequest(template=template, timeout=120))
        agent = await agent_of(provider, record.sandbox_id)
        outcome = await agent.run("env; cat /proc/self/environ; cat /proc/$PPID/environ")
        assert b"visible-only-outside" not in outcome.stdout

    async def test_a_request_without_the_token_is_refused(self, agent: TestAgent) -> None:
        target = "/process.Process/List"
        assert await agent.status_of("POST", target, token=None) == 401
        assert await agent.status_of("POST", target, token="wrong") == 401
