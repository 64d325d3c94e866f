"""Background tasks belong to the sandbox; where an agent has none, they are refused."""

import os
import uuid
from collections.abc import Awaitable, Callable

import anyio
import pytest

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import KillRequest, ProbeReport, SandboxProvider
from cloche_testkit._http import ConnectionCut
from cloche_testkit.agent_client import AgentRefused, TestAgent
from cloche_testkit.conformance.base import WITHIN_S, ProviderSuite, agent_of, eventually, has_itself, nothing_runs

Reach = Callable[[], Awaitable[TestAgent]]

# Where programs share files at once: a task may see the working directory as it was at its start.
_PIPE = '"${HOME:-/tmp}/go"'


class TaskConformance(ProviderSuite):
    """cloche.Tasks: Start, Get, Cancel, List. Capability `tasks`."""

    @pytest.fixture
    def task_id(self) -> str:
        return uuid.uuid4().hex

    @pytest.fixture
    async def worker(self, report: ProbeReport, agent: TestAgent, task_id: str) -> TestAgent:
        """The agent, where it has tasks; else the test ends once they were refused."""
        if has_itself(report, "tasks"):
            return agent
        with pytest.raises(AgentRefused) as refusal:
            await agent.start_task(task_id, "true")
        assert refusal.value.status in (404, 405, 501)
        pytest.skip("this provider has no tasks, and refuses them")

    @pytest.fixture
    def reach(self, provider: SandboxProvider, sandbox: SandboxRecord) -> Reach:
        """Another connection to the same sandbox."""
        return lambda: agent_of(provider, sandbox.sandbox_id)

    @pytest.mark.parametrize(("status", "state"), [(0, "succeeded"), (7, "failed")])
    async def test_a_task_starts_at_once_and_is_read_when_it_has_ended(
        self, worker: TestAgent, task_id: str, status: int, state: str
    ) -> None:
        """Faults T27 and O19: its state, its exit code and both streams stay readable."""
        with anyio.fail_after(WITHIN_S):
            begun = await worker.start_task(task_id, f"echo out; echo err >&2; exit {status}")
            assert begun["task_id"] == task_id
            for found in (await worker.ended_task(task_id), await worker.read_task(task_id)):
                assert (found.state, found.exit_code, found.stop_reason) == (state, status, "exit")
                assert (found.stdout, found.stderr) == (b"out\n", b"err\n")

    async def test_t34_a_task_outlives_the_connection_that_started_it(
        self, reach: Reach, worker: TestAgent, task_id: str
    ) -> None:
        """Another client reads it, also while it runs."""
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, f"mkfifo {_PIPE}; echo begun; cat {_PIPE}; echo done")
            other = await reach()
            while (found := await other.read_task(task_id, wait_ms=20_000)).stdout != b"begun\n":
                assert found.state == "running"
            await other.run(f"echo now > {_PIPE}")
            assert (await other.ended_task(task_id)).stdout == b"begun\nnow\ndone\n"

    async def test_pages_by_byte_offset_put_together_are_the_stream(self, worker: TestAgent, task_id: str) -> None:
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, "seq 2000")
            size = (await worker.ended_task(task_id)).stdout_size
            read = b""
            while len(read) < size:
                read += (await worker.read_task(task_id, stdout_offset=len(read), limit=1000)).stdout
        assert read == b"".join(b"%d\n" % number for number in range(1, 2001))

    async def test_a_long_log_is_drained_and_counted(self, worker: TestAgent, task_id: str) -> None:
        """Checklist 307: more than is kept neither blocks nor fails the task; the beginning and the end are there."""
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last")
            found = await worker.ended_task(task_id)
            assert (found.state, found.stdout_size) == ("succeeded", 3_000_011)
            assert found.stdout.startswith(b"first\nx")
            assert (await worker.read_task(task_id, stdout_offset=found.stdout_size - 6)).stdout == b"xlast\n"

    async def test_o11_a_task_that_prints_too_much_is_ended_with_a_reason(
        self, worker: TestAgent, task_id: str
    ) -> None:
        """Fault O11."""
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, "yes", output_limit=100_000)
            found = await worker.ended_task(task_id)
        assert (found.state, found.stop_reason, found.stdout_size) == ("failed", "output_limit", 100_000)

    @pytest.mark.parametrize("how", ["cancel", "timeout", "end"])
    async def test_t3_every_end_takes_the_descendants_along(self, worker: TestAgent, task_id: str, how: str) -> None:
        """Checklist 305 and 306: also what ignores SIGTERM or has left the session and its streams."""
        mark = f"32{os.getpid()}.5"
        left = f"(trap '' TERM; exec sleep {mark}) & setsid sleep {mark} < /dev/null > /dev/null 2>&1 & echo up; "
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(
                task_id, left + ("true" if how == "end" else "wait"), timeout_s=60 if how != "timeout" else 1
            )
            while (found := await worker.read_task(task_id, wait_ms=20_000)).stdout_size < 3:
                pass
            found = await (worker.cancel_task(task_id) if how == "cancel" else worker.ended_task(task_id))
        assert found.state == {"cancel": "cancelled", "timeout": "timed_out", "end": "succeeded"}[how]
        await eventually(nothing_runs(worker, mark), "no process is left")

    async def test_a_cancel_again_changes_nothing(self, worker: TestAgent, task_id: str) -> None:
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, "sleep 300")
            first = await worker.cancel_task(task_id)
            assert (first.state, first.stop_reason) == ("cancelled", "cancelled")
            assert await worker.cancel_task(task_id) == first

    async def test_l4_a_start_that_is_sent_again_is_the_same_task(self, worker: TestAgent, task_id: str) -> None:
        """A client that lost the answer asks again; another command under that id is refused."""
        command = "echo x >> started; sleep 300"
        with anyio.fail_after(WITHIN_S):
            for _ in range(2):
                assert (await worker.start_task(task_id, command))["state"] == "running"
            with pytest.raises(AgentRefused) as refusal:
                await worker.start_task(task_id, "other")
            await worker.cancel_task(task_id)
            assert (await worker.run("cat started")).stdout == b"x\n"
        assert refusal.value.code == "idempotency_conflict"

    async def test_a_task_that_is_not_there_has_its_own_error(self, worker: TestAgent, task_id: str) -> None:
        for call in (worker.read_task, worker.cancel_task):
            with pytest.raises(AgentRefused) as refusal:
                await call(task_id)
            assert refusal.value.code == "task_not_found"

    async def test_a_kill_of_the_sandbox_ends_its_tasks_and_those_who_wait(
        self, provider: SandboxProvider, sandbox: SandboxRecord, worker: TestAgent, task_id: str
    ) -> None:
        """Checklist 313; fault T16: whoever waits learns it, or sees the connection end."""
        with anyio.fail_after(WITHIN_S):
            await worker.start_task(task_id, "echo up; sleep 300")
            await worker.read_task(task_id, wait_ms=20_000)
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    try:
                        found = await worker.read_task(task_id, wait_ms=60_000, stdout_offset=3)
                    except (AgentRefused, ConnectionCut):
                        return
                    assert found.stop_reason == "sandbox_lost"

                tasks.start_soon(wait)
                await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))
